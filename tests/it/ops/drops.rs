//! `seckill drop`: a drop is created from a file, whole or not at all, and steered as one.

use super::archive::{AUDITS, archive, gone_from_redis};
use crate::support::processes::programs::{Folder, scratch};
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::operator::Actor;
use seckill::p5_reconcile::archive::Removed;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::runtime::now_ms;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Writes a drop to a file; `change` what is wrong with it.
fn file(name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let at = |ms: i64| chrono::DateTime::from_timestamp_millis(now_ms() + ms).unwrap().to_rfc3339();
    // To the second, so that a second file of the same test has the same times.
    let (starts, ends) = ("2026-01-01T10:00:00+08:00".to_owned(), at(3_600_000)[..14].to_owned() + "59:59+00:00");
    let sale = |id: &str, stock: i64| {
        json!({
            "sale_id": id, "product_id": id, "title": id, "stock": stock, "price_cents": 19_900, "currency": "EUR",
            "limit": 1, "starts_at": starts, "ends_at": ends, "hidden": true
        })
    };
    let sales = [sale("eu-41", 5), sale("eu-42", 7)];
    let mut drop = json!({ "drop_id": "sneaker", "title": "Sneaker 26", "limit": 1, "sales": sales });
    change(&mut drop);
    let path = scratch("drops").join(name);
    std::fs::write(&path, drop.to_string()).unwrap();
    path
}

#[test]
fn a_drop_is_created_whole_steered_as_one_and_closed() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let good = file("good.json", |_drop| ());
        let (good, sales) = (good.to_str().unwrap(), ["eu-41", "eu-42"].map(|id| SaleId::parse(id).unwrap()));
        let bad = file("bad.json", |drop| drop["sales"][1]["price_cents"] = (-1).into());
        let refused = world.cli(&["drop", "create", "--file", bad.to_str().unwrap()]).exits(64);
        assert!(refused.err.contains("sale eu-42: price_cents: expected 0 to"), "{}", refused.err);
        assert_eq!(world.rows("sales", "1 = 1").await, 0, "nothing of it is there");

        assert!(world.cli(&["drop", "create", "--file", good]).exits(0).out.contains("created sneaker with 2 sales"));
        assert!(world.cli(&["drop", "create", "--file", good, "--warm"]).exits(0).out.contains("is there already"));
        for sale in ["eu-41", "eu-42"] {
            let warmed = format!("action = 'sale.warm' AND outcome = 'ok' AND sale_id = '{sale}'");
            assert_eq!(world.rows("operator_acts", &warmed).await, 1, "{sale}");
        }
        let other = file("other.json", |drop| drop["limit"] = 2.into());
        let exists = world.cli(&["drop", "create", "--file", other.to_str().unwrap()]).exits(1);
        assert!(exists.err.contains("drop sneaker exists already"), "{}", exists.err);
        assert_eq!(world.rows("operator_acts", "action = 'sale.create' AND outcome = 'ok'").await, 2, "one a sale");

        assert_eq!(world.buy(&sales[0], "ann", 1, None).await.status, 404, "hidden");
        world.cli(&["drop", "publish", "sneaker"]).exits(0);
        world.cli(&["drop", "publish", "sneaker"]).exits(0);
        eventually("seen", async || world.buy(&sales[0], "ann", 1, None).await.status == 202).await;
        eventually("the other, too", async || world.buy(&sales[1], "ann", 1, None).await.code() == "P2-R5").await;
        world.cli(&["drop", "pause", "sneaker"]).exits(0);
        assert_eq!(world.buy(&sales[1], "bob", 1, None).await.code(), "P1-S7");
        world.cli(&["drop", "resume", "sneaker"]).exits(0);
        eventually("sold again", async || world.buy(&sales[1], "bob", 1, None).await.status == 202).await;
        assert_eq!(world.settled(&sales[0]).await.counted.ordered, 1);

        let shown: Value =
            serde_json::from_str(&world.cli(&["drop", "show", "sneaker", "--json"]).exits(0).out).unwrap();
        assert_eq!((&shown["limit"], &shown["sales"][1]["sale_id"]), (&json!(1), &json!("eu-42")), "{shown}");
        assert_eq!(shown["progress"][0]["status"], "warmed", "{shown}");
        assert!(world.cli(&["drop", "list"]).exits(0).out.contains("eu-41 eu-42"));
        let alone = world.cli(&["sale", "close", "eu-41"]).exits(1);
        assert!(alone.err.contains("closed together"), "{}", alone.err);
        world.cli(&["drop", "close", "sneaker"]).exits(0);
        assert_eq!(world.rows("sales", "status = 'closed'").await, 2);
        assert!(world.cli(&["drop", "show", "unknown"]).exits(1).err.contains("there is no drop unknown"));
        world.finish().await;
    });
}

async fn edited_before_it_is_warmed(world: &World, port: &AdminPort) {
    let edited = port.post("/drops/sneaker/edit", json!({ "title": "Sneaker 27", "limit": null })).await;
    assert_eq!(
        (edited.status, &edited.json["title"], &edited.json["limit"]),
        (200, &json!("Sneaker 27"), &json!(null))
    );
    world.cli(&["drop", "edit", "sneaker", "--limit", "1"]).exits(0);
    assert_eq!(port.post("/drops/sneaker/edit", json!({ "limit": 0 })).await.status, 422);
    assert_eq!(port.post("/drops/sneaker/edit", json!({ "limit": 1, "sales": [] })).await.status, 400);
}

async fn edited_until_it_is_about_to_start(world: &World, port: &AdminPort) {
    // The script gets the new limit of a drop that is warmed.
    world.cli(&["drop", "edit", "sneaker", "--limit", "2"]).exits(0);
    let meta = world.servers.redis.keys.meta(0, &"eu-41".parse().unwrap());
    assert_eq!(world.redis(&["HGET", &meta, "drop"]).await.as_str(), Some("2 eu-42"));
    world.sql("UPDATE sales SET starts_at = NOW(3) + INTERVAL 20 SECOND WHERE sale_id = 'eu-42'").await;
    let late = port.post("/drops/sneaker/edit", json!({ "limit": 3 })).await;
    assert_eq!((late.status, late.code()), (409, "CONFLICT".to_owned()), "{late:?}");
}

/// A field of the drop, and one of its second sale.
async fn refused_by_field(port: &AdminPort, drop: &Value) {
    let mut wrong = drop.clone();
    wrong["limit"] = json!(0);
    let refused = port.post_in("zh", "/drops", wrong).await;
    assert_eq!((refused.status, refused.text("detail")), (422, "limit：应为从 1 起的整数，或留空不限".to_owned()));
    assert_eq!((&refused.json["field"], &refused.json["sale_id"]), (&json!("limit"), &Value::Null));
    let mut wrong = drop.clone();
    wrong["sales"][1]["price_cents"] = json!(-1);
    let refused = port.post("/drops", wrong).await;
    let at = (refused.status, &refused.json["field"], &refused.json["sale_id"]);
    assert_eq!(at, (422, &json!("price_cents"), &json!("eu-42")), "{refused:?}");
}

#[test]
fn a_drop_is_created_shown_and_steered_over_http() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let port = world.admin_port();
        // They start late, so that no process warms them by itself.
        let late = |drop: &mut Value| {
            for sale in drop["sales"].as_array_mut().unwrap() {
                (sale["starts_at"], sale["ends_at"]) = (json!("2099-01-01T10:00:00Z"), json!("2099-01-01T12:00:00Z"));
            }
        };
        let drop: Value = serde_json::from_slice(&std::fs::read(file("http.json", late)).unwrap()).unwrap();
        let with = |field: &str, value: Value| {
            let mut drop = drop.clone();
            drop[field] = value;
            drop
        };
        refused_by_field(&port, &drop).await;
        let of_sale = with("sales", json!([drop["sales"][0], { "sale_id": "l" }]));
        assert_eq!(port.post("/drops", of_sale).await.status, 400);
        assert_eq!(port.get("/drops").await.json["drops"], json!([]));

        for _ in 0..2 {
            let created = port.post("/drops", with("by", json!("ann"))).await;
            assert_eq!((created.status, &created.json["drop_id"]), (200, &json!("sneaker")), "{created:?}");
            assert_eq!(created.json["progress"][1]["status"], "draft");
        }
        assert_eq!(port.post("/drops", with("limit", json!(2))).await.status, 409);
        assert_eq!(port.get("/drops").await.json["drops"][0]["sale_ids"], json!(["eu-41", "eu-42"]));
        assert_eq!(port.get("/drops/unknown").await.code(), "DROP_NOT_FOUND");
        assert_eq!(port.post("/drops/unknown/warm", json!({})).await.code(), "DROP_NOT_FOUND");
        let early = port.post("/drops/sneaker/pause", json!({})).await;
        assert_eq!((early.status, &early.json["failed_count"]), (200, &json!(2)), "{early:?}");
        let problem = early.json["sales"][0]["problem"].as_str().unwrap();
        assert!(problem.contains("has not been warmed"), "{problem}");

        edited_before_it_is_warmed(&world, &port).await;
        for (verb, status) in [("warm", "warmed"), ("publish", "warmed"), ("pause", "paused"), ("resume", "warmed")] {
            let done = port.post(&format!("/drops/sneaker/{verb}"), json!({ "by": "ann" })).await;
            assert_eq!((done.status, &done.json["failed_count"]), (200, &json!(0)), "{verb}: {done:?}");
            assert_eq!(done.json["drop"]["progress"][1]["status"], status, "{verb}");
        }
        let acts = "action = 'sale.pause' AND outcome = 'ok' AND actor_name = 'ann'";
        assert_eq!(world.rows("operator_acts", acts).await, 2);

        edited_until_it_is_about_to_start(&world, &port).await;
        let public = async || world.http.get(format!("{}/v1/drops/sneaker", world.api)).send().await.unwrap();
        eventually("seen", async || public().await.status() == 200).await;
        let seen = public().await;
        assert_eq!(seen.headers()["cache-control"], "public, max-age=1");
        let seen: Value = seen.json().await.unwrap();
        let sales: Vec<_> =
            seen["sales"].as_array().unwrap().iter().map(|sale| sale["sale_id"].as_str().unwrap()).collect();
        assert_eq!((&seen["limit"], sales), (&json!(2), vec!["eu-41", "eu-42"]), "{seen}");
        assert_eq!((&seen["sales"][0]["drop_id"], &seen["sales"][0]["remaining"]), (&json!("sneaker"), &json!(5)));
        let unknown = world.http.get(format!("{}/v1/drops/unknown", world.api)).send().await.unwrap();
        assert_eq!(unknown.status(), 404);

        let closed = port.post("/drops/sneaker/close", json!({})).await;
        assert_eq!((closed.status, &closed.json["progress"][0]["status"]), (200, &json!("closed")), "{closed:?}");
        eventually("not listed", async || public().await.status() == 404).await;
        world.finish().await;
    });
}

#[test]
fn what_buyers_have_in_a_drop_goes_with_the_last_of_its_sales() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], AUDITS).await;
        let sales = world.drop_of(2, &["l", "m"], |_sale| ()).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        for sale in &sales {
            world.bought(sale, "ann").await;
            assert!(world.settled(sale).await.consistent());
        }
        world.cli(&["drop", "close", "drop"]).exits(0);
        for sale in &sales {
            gone_from_redis(&world, sale).await;
        }
        let folder = Folder::new("archive-drop");
        let actor = Actor::at_the_terminal("ann");
        for (sale, rows) in sales.iter().zip([1, 0]) {
            archive(&world, sale, folder.path()).export().await.unwrap();
            assert_eq!(archive(&world, sale, folder.path()).remove(&actor, 100).await.unwrap(), Removed::All);
            assert_eq!(world.rows("drop_purchases", "TRUE").await, rows, "after {sale}");
            world.cli(&["audit", "--now"]).exits(0);
        }
        world.cli(&["drop", "show", "drop"]).exits(0);
        world.stop_roles().await;
        world.finish().await;
    });
}

#[test]
fn a_drop_is_archived_by_one_command_that_may_be_repeated() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], AUDITS).await;
        let sales = world.drop_of(2, &["l", "m"], |_sale| ()).await;
        for sale in &sales {
            world.sale_control().warm(sale).await.unwrap();
            world.bought(sale, "ann").await;
            assert!(world.settled(sale).await.consistent());
        }
        let folder = Folder::new("archive-whole-drop");
        let to = folder.path().to_str().unwrap();
        let (export, remove) =
            (["drop", "archive", "drop", "--to", to], ["drop", "archive", "drop", "--to", to, "--remove"]);
        assert!(world.cli(&["drop", "archive", "none", "--to", to]).exits(1).err.contains("there is no drop none"));
        let refused = world.cli(&export).exits(1).err;
        assert!(refused.contains("l: ") && refused.contains("m: ") && refused.contains("2 of the sales"), "{refused}");
        world.cli(&["drop", "close", "drop"]).exits(0);
        gone_from_redis(&world, &sales[0]).await;
        gone_from_redis(&world, &sales[1]).await;
        assert!(world.cli(&remove).exits(1).err.contains("without --remove first"));
        world.cli(&export).exits(0);
        // As after a crash between two of its sales.
        world.cli(&["sale", "archive", "l", "--to", to, "--remove"]).exits(0);
        let said = world.cli(&remove).exits(0).out;
        assert!(said.contains("l was archived before") && said.contains("the rows are gone"), "{said}");
        assert_eq!((world.rows("sales", "TRUE").await, world.rows("drop_purchases", "TRUE").await), (0, 0));
        assert_eq!(world.rows("archived_sales", "TRUE").await, 2);
        world.cli(&remove).exits(0);
        world.cli(&["audit", "--now"]).exits(0);
        world.stop_roles().await;
        world.finish().await;
    });
}
