//! `seckill drop`: a drop is created from a file, whole or not at all, and steered as one.

use crate::support::processes::programs::scratch;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
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
        assert_eq!(world.buy(&sales[1], "bob", 1, None).await.status, 202);
        assert_eq!(world.settled(&sales[0]).await.counted.ordered, 1);

        let shown: Value =
            serde_json::from_str(&world.cli(&["drop", "show", "sneaker", "--json"]).exits(0).out).unwrap();
        assert_eq!((&shown["limit"], &shown["sales"][1]["sale_id"]), (&json!(1), &json!("eu-42")), "{shown}");
        let alone = world.cli(&["sale", "close", "eu-41"]).exits(1);
        assert!(alone.err.contains("closed together"), "{}", alone.err);
        world.cli(&["drop", "close", "sneaker"]).exits(0);
        assert_eq!(world.rows("sales", "status = 'closed'").await, 2);
        assert!(world.cli(&["drop", "show", "unknown"]).exits(1).err.contains("there is no drop unknown"));
        world.finish().await;
    });
}
