//! Passes that we issue, by the admin API and by the command line; and what is said of needs.

use crate::support::buyers::passes::{FACTS_AND_PASSES, ShowingBuyer, in_s, needs};
use crate::support::processes::command_line::CommandOutput;
use crate::support::processes::programs::scratch;
use crate::support::world::{Answer, World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::{Value, json};

async fn world(set: &[&str]) -> (World, SaleId) {
    let world = World::with(&Role::ALL, &[&FACTS_AND_PASSES[..], set].concat()).await;
    let needed = needs(&json!({ "tier": ["gold"], "pass": true }));
    let sale = world.sale_with("vip", 20, |sale| sale.needs = needed).await;
    (world, sale)
}

/// A file of these lines.
fn file(name: &str, lines: &str) -> String {
    let path = scratch("pass-issue").join(name);
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Issues the passes of a file.
fn issue(world: &World, file: &str) -> CommandOutput {
    world.cli(&["--set", FACTS_AND_PASSES[1], "pass", "issue", "--file", file])
}

#[test]
fn an_operator_issues_a_pass_on_record_and_it_is_good() {
    run(async {
        let (world, sale) = world(&[]).await;
        let admin = world.admin_port();
        let asked = json!({ "sub": "买家", "sale": "vip", "tier": "gold", "valid_s": 600, "by": "Li Wei" });
        let issued = admin.post("/passes", asked).await;
        assert_eq!((issued.status, &issued.json["sale"], issued.text("sub")), (200, &json!("vip"), "买家".to_owned()));
        assert!(issued.json["exp"].as_i64().unwrap() > in_s(0) && issued.text("jti").len() == 32, "{issued:?}");
        let answer = ShowingBuyer::new(&world, "买家").with_pass(issued.text("pass")).buy(&sale).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let act = "action = 'pass.issue' AND target_type = 'buyer' AND target_id = '买家' AND sale_id = 'vip'";
        assert_eq!(world.rows("operator_acts", act).await, 1);
        let leaked = format!("{act} AND after_json LIKE '%{}%'", issued.text("pass"));
        assert_eq!(world.rows("operator_acts", &leaked).await, 0, "a pass is not in the record");
        for (body, said, chinese) in [
            (json!({ "sale": "vip", "valid_s": 1 }), "sub: expected the buyer", "sub：应为买家"),
            (json!({ "sub": "a", "sale": "vip" }), "exp: expected the end", "exp：应为到期时间"),
            (json!({ "sub": "a", "sale": "vip", "valid_s": 1, "Tier": 1 }), "Tier: expected sub", "Tier：应为"),
            (json!({ "sub": "a", "sale": "vip", "valid_s": 1, "tier": [] }), "tier: expected a text", "tier：应为"),
        ] {
            let refused = admin.post("/passes", body.clone()).await;
            assert!(refused.status == 422 && refused.text("detail").starts_with(said), "{refused:?}");
            let refused = admin.post_in("zh", "/passes", body).await;
            assert!(refused.text("detail").starts_with(chinese), "{refused:?}");
        }
        world.finish().await;
        let without = World::with(&[], &[]).await;
        let refused = without.admin_port().post("/passes", json!({ "sub": "a", "sale": "s", "valid_s": 1 })).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "CONFLICT"), "{refused:?}");
        assert!(refused.text("detail").contains("passes.secrets is empty"), "{refused:?}");
        without.stop().await;
    });
}

#[test]
fn many_passes_are_issued_from_a_file_of_lines() {
    run(async {
        let (world, sale) = world(&[]).await;
        let line = |n: u32| format!(r#"{{"sub":"b{n}","drop":"other","tier":["gold",{n}],"valid_s":600}}"#);
        let mut lines: String = (0..2_000).map(|n| line(n) + "\n").collect();
        lines.push_str(&format!("\n  {{\"sub\":\"last\",\"sale\":\"vip\",\"tier\":\"gold\",\"exp\":{}}}", in_s(600)));
        let out = issue(&world, &file("many.ndjson", &lines)).exits(0);
        let passes: Vec<Value> = out.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(passes.len(), 2_001);
        assert!(out.err.contains("2001 passes issued"), "{}", out.err);
        for (n, pass) in passes.iter().take(2_000).enumerate() {
            assert_eq!((&pass["sub"], &pass["drop"]), (&json!(format!("b{n}")), &json!("other")));
        }
        let last = ShowingBuyer::new(&world, "last").with_pass(passes[2_000]["pass"].as_str().unwrap());
        assert_eq!(last.buy(&sale).await.status, 202);
        let of_other = ShowingBuyer::new(&world, "b0").with_pass(passes[0]["pass"].as_str().unwrap());
        of_other.is_refused(&sale, "PASS_INVALID").await;
        world.finish().await;
    });
}

#[test]
fn a_bad_line_is_named_and_no_pass_is_issued() {
    run(async {
        let (world, _sale) = world(&[]).await;
        let good = r#"{"sub":"a","sale":"vip","valid_s":60}"#;
        let issued = |name: &str, lines: &str| issue(&world, &file(name, lines));
        for (lines, said) in [
            (
                format!("{good}\n{good}\n{{\"sub\":\"a\"}}\n"),
                "line 3: sale: expected a sale, or a drop in the field drop",
            ),
            (format!("{good}\n\nnonsense\n"), "line 3: expected"),
            (format!("{{\"sub\":7}}\n{good}\n"), "line 1: invalid type: integer `7`, expected a string"),
            (format!("{good}\n{good} {good}\n"), "line 2: trailing characters"),
            (
                format!(
                    "{good}\n{{\"sub\":\"a\",\"sale\":\"vip\",\"valid_s\":1,\"x\":\"{}\"}}\n{{}}",
                    "x".repeat(20_000)
                ),
                "line 2: has more than 16384 bytes",
            ),
            ("\n \n".to_owned(), "has no line, expected one for each pass"),
        ] {
            let refused = issued("bad.ndjson", &lines).exits(64);
            assert!(refused.err.contains(said), "{said}: {}", refused.err);
            assert_eq!(refused.out, "", "{said}");
        }
        let many = issued("all-bad.ndjson", &"{}\n".repeat(50)).exits(64);
        assert!(many.err.contains("line 10: sub") && many.err.contains("and perhaps more"), "{}", many.err);
        assert!(!many.err.contains("line 11"), "{}", many.err);
        for (name, said) in [("missing", "No such file"), (".", "is no regular file")] {
            let path = scratch("pass-none").join(name);
            let refused = issue(&world, path.to_str().unwrap()).exits(64);
            assert!(refused.err.contains(said), "{}", refused.err);
        }
        let path = file("good.ndjson", good);
        let refused = world.cli(&["pass", "issue", "--file", &path]).exits(64);
        assert!(refused.err.contains("passes.secrets is empty"), "{}", refused.err);
        world.finish().await;
    });
}

/// A sale to come with these needs, as a file or a body says it.
fn needing(id: &str, needs: &Value) -> Value {
    json!({
        "sale_id": id, "product_id": "p", "title": "t", "stock": 5, "needs": needs,
        "starts_at": "2030-01-01T10:00:00Z", "ends_at": "2030-01-01T12:00:00Z"
    })
}

#[test]
fn needs_are_created_shown_and_cloned_and_never_change() {
    run(async {
        let world = World::with(&[Role::Api], &FACTS_AND_PASSES).await;
        let admin = world.admin_port();
        let needed = json!({ "pass": true, "tier": ["gold", "platinum"] });
        let created = admin.post("/sales", needing("needy", &needed)).await;
        assert_eq!((created.status, &created.json["sale"]["needs"]), (200, &needed), "{created:?}");
        for (bad, said) in [
            (json!({}), "needs: expected 1 to 16 facts"),
            (json!({ "tier": "gold" }), "needs: expected for each fact a list"),
            (json!({ "exp": ["1"] }), "needs: expected names of facts"),
        ] {
            let refused = admin.post("/sales", needing("bad", &bad)).await;
            assert!(refused.status == 422 && refused.text("detail").starts_with(said), "{refused:?}");
        }
        let edited = admin.post("/sales/needy/edit", json!({ "title": "other" })).await;
        assert_eq!((edited.status, &edited.json["sale"]["needs"]), (200, &needed), "{edited:?}");
        let edited = admin.post("/sales/needy/edit", json!({ "needs": null })).await;
        assert!(edited.status == 400 && edited.text("detail").contains("unknown field `needs`"), "{edited:?}");
        let window = ["--starts-at", "2031-01-01T10:00:00Z", "--ends-at", "2031-01-01T12:00:00Z"];
        let clone = [&["sale", "clone", "needy", "--id", "copy"][..], &window].concat();
        world.cli(&clone).exits(0);
        assert_eq!(world.cli(&["sale", "show", "copy", "--json"]).exits(0).json()["sale"]["needs"], needed);
        let shown = world.cli(&["sale", "show", "needy"]).exits(0).out;
        assert!(shown.contains("tier gold or platinum, and a pass"), "{shown}");
        let create = ["sale", "create", "--id", "cli", "--product", "p", "--title", "t", "--stock", "5"];
        let times = ["--starts-at", "2030-01-01T10:00:00Z", "--ends-at", "2030-01-01T12:00:00Z", "--needs"];
        world.cli(&[&create[..], &times, &[r#"{"tier": ["gold"]}"#]].concat()).exits(0);
        assert_eq!(world.stored(&SaleId::parse("cli").unwrap()).await.needs, needs(&json!({ "tier": ["gold"] })));
        let refused = world.cli(&[&create[..], &times, &["tier=gold"]].concat()).exits(64);
        assert!(refused.err.contains("expected JSON"), "{}", refused.err);
        world.stop().await;
    });
}

#[test]
fn the_file_of_a_drop_says_what_its_sales_need() {
    run(async {
        let world = World::with(&[Role::Api], &FACTS_AND_PASSES).await;
        let (admin, needed) = (world.admin_port(), json!({ "pass": true, "tier": ["gold", "platinum"] }));
        let drop = |needs: &Value| {
            let sales = [needing("m", needs), needing("l", &Value::Null)];
            json!({ "drop_id": "d", "title": "d", "limit": 1, "sales": sales })
        };
        let path = file("drop.json", &drop(&needed).to_string());
        for _ in 0..2 {
            world.cli(&["drop", "create", "--file", &path]).exits(0);
        }
        let other = file("other.json", &drop(&json!({ "tier": ["gold"] })).to_string());
        assert!(
            world.cli(&["drop", "create", "--file", &other]).exits(1).err.contains("exists"),
            "other needs, another drop"
        );
        let shown = admin.get("/drops/d").await;
        assert_eq!((&shown.json["sales"][0]["needs"], &shown.json["sales"][1]["needs"]), (&needed, &Value::Null));
        assert!(world.cli(&["drop", "show", "d"]).exits(0).out.contains("tier gold or platinum, and a pass"));
        eventually("buyers see it", async || {
            let public = Answer::of(world.http.get(format!("{}/v1/drops/d", world.api))).await;
            public.json["sales"][0]["needs"] == needed
        })
        .await;
        world.stop().await;
    });
}

#[test]
fn what_a_later_version_needs_no_buyer_has() {
    run(async {
        let (world, sale) = world(&[]).await;
        world.sql("UPDATE sales SET needs = '{\"tier\": {\"at_least\": 3}}' WHERE sale_id = 'vip'").await;
        world.servers.redis.sale_cache.forget(&sale).await.unwrap();
        let fresh = world.second_world(&[Role::Api], &FACTS_AND_PASSES).await;
        let gold = ShowingBuyer::new(&fresh, "alice").with_claims(json!({ "membership": "gold" }));
        gold.is_refused(&sale, "P1-Q1").await;
        let listed = Answer::of(fresh.http.get(format!("{}/v1/sales", fresh.api))).await;
        assert_eq!(listed.status, 200, "{listed:?}");
        fresh.stop().await;
        world.finish().await;
    });
}
