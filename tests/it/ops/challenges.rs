//! The challenge of a sale as operators say it: created, shown, edited, cloned, imported, in the file of a drop.

use crate::support::processes::programs::scratch;
use crate::support::world::{Answer, World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::{Value, json};

/// A sale to come with this challenge, as a file or a body says it.
fn challenged(id: &str, challenge: &Value) -> Value {
    json!({
        "sale_id": id, "product_id": "p", "title": "t", "stock": 5, "challenge": challenge,
        "starts_at": "2030-01-01T10:00:00Z", "ends_at": "2030-01-01T12:00:00Z"
    })
}

fn file(name: &str, text: &str) -> String {
    let path = scratch("challenges").join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_challenge_is_created_shown_edited_taken_away_and_cloned() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let admin = world.admin_port();
        let created = admin.post("/sales", challenged("hard", &json!("pow:16"))).await;
        assert_eq!((created.status, &created.json["sale"]["challenge"]), (200, &json!("pow:16")), "{created:?}");
        for bad in ["pow:0", "pow:25", "pow:016", "captcha", "", "HOOK"] {
            let refused = admin.post("/sales", challenged("bad", &json!(bad))).await;
            let said = "challenge: expected pow:N with N from 1 to 24";
            assert!(refused.status == 422 && refused.text("detail").starts_with(said), "{bad}: {refused:?}");
            let refused = admin.post("/sales/hard/edit", json!({ "challenge": bad })).await;
            assert!(refused.status == 422 && refused.text("detail").starts_with(said), "{bad}: {refused:?}");
        }
        let chinese = admin.post_in("zh", "/sales", challenged("bad", &json!("pow:99"))).await;
        assert!(chinese.text("detail").starts_with("challenge：应为pow:N"), "{chinese:?}");
        for (edit, shown) in [
            (json!({ "title": "other" }), json!("pow:16")),
            (json!({ "challenge": "pow:20" }), json!("pow:20")),
            (json!({ "challenge": null }), Value::Null),
            (json!({ "challenge": "hook" }), json!("hook")),
        ] {
            let edited = admin.post("/sales/hard/edit", edit).await;
            assert_eq!((edited.status, &edited.json["sale"]["challenge"]), (200, &shown), "{edited:?}");
        }
        world.cli(&["sale", "edit", "hard", "--challenge", "pow:18"]).exits(0);
        let window = ["--starts-at", "2031-01-01T10:00:00Z", "--ends-at", "2031-01-01T12:00:00Z"];
        world.cli(&[&["sale", "clone", "hard", "--id", "copy"][..], &window].concat()).exits(0);
        assert!(world.cli(&["sale", "show", "copy"]).exits(0).out.contains("pow:18"));
        world.cli(&["sale", "edit", "hard", "--challenge", "none"]).exits(0);
        assert_eq!(world.stored(&SaleId::parse("hard").unwrap()).await.challenge, None);
        let create = ["sale", "create", "--id", "cli", "--product", "p", "--title", "t", "--stock", "5", "--challenge"];
        let refused = world.cli(&[&create[..], &["pow:30"], &window].concat()).exits(64);
        assert!(refused.err.contains("N from 1 to 24"), "{}", refused.err);
        world.cli(&[&create[..], &["hook"], &window].concat()).exits(0);
        assert_eq!(world.cli(&["sale", "show", "cli", "--json"]).exits(0).json()["sale"]["challenge"], "hook");
        world.stop().await;
    });
}

/// The door of a warmed sale in Redis follows an edit of its challenge.
#[test]
fn a_challenge_sets_the_door_and_its_end_opens_it() {
    run(async {
        let world = World::with(&Role::ALL, &[]).await;
        let admin = world.admin_port();
        let mut body = challenged("door", &Value::Null);
        body["warm"] = json!(true);
        assert_eq!(admin.post("/sales", body).await.status, 200);
        let meta = world.servers.redis.keys.meta(0, &SaleId::parse("door").unwrap());
        let door = async || world.redis(&["HGET", &meta, "door"]).await.as_str().map(str::to_owned).unwrap_or_default();
        assert_eq!(door().await, "open");
        assert_eq!(admin.post("/sales/door/edit", json!({ "challenge": "pow:4" })).await.status, 200);
        assert_eq!(door().await, "token");
        assert_eq!(admin.post("/sales/door/edit", json!({ "challenge": null })).await.status, 200);
        assert_eq!(door().await, "open");
        world.stop().await;
    });
}

#[test]
fn files_of_drops_and_imports_say_challenges() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let drop = |challenge: &str| {
            let sales = [challenged("m", &json!(challenge)), challenged("l", &Value::Null)];
            json!({ "drop_id": "d", "title": "d", "limit": 1, "sales": sales })
        };
        let path = file("drop.json", &drop("pow:12").to_string());
        for _ in 0..2 {
            world.cli(&["drop", "create", "--file", &path]).exits(0);
        }
        let other = world.cli(&["drop", "create", "--file", &file("other.json", &drop("pow:13").to_string())]).exits(1);
        assert!(other.err.contains("exists"), "another challenge, another drop: {}", other.err);
        let shown = world.admin_port().get("/drops/d").await;
        assert_eq!(
            (&shown.json["sales"][0]["challenge"], &shown.json["sales"][1]["challenge"]),
            (&json!("pow:12"), &Value::Null)
        );
        eventually("buyers see it", async || {
            let public = Answer::of(world.http.get(format!("{}/v1/drops/d", world.api))).await;
            public.json["sales"][0]["challenge"] == "pow:12"
        })
        .await;
        let import = |name: &str, challenge: &str| {
            world.cli(&[
                "sale",
                "import",
                "--file",
                &file(name, &challenged("imported", &json!(challenge)).to_string()),
            ])
        };
        let refused = import("bad.json", "pow:99").exits(64);
        assert!(refused.err.contains("challenge") && refused.err.contains("N from 1 to 24"), "{}", refused.err);
        import("good.json", "hook").exits(0);
        import("again.json", "hook").exits(0);
        let differs = import("differs.json", "pow:5");
        assert!(differs.err.contains("challenge"), "{}", differs.err);
        world.stop().await;
    });
}
