//! Entries of a line: once a buyer or person, judged as purchases are, and none behind the close.

use crate::support::buyers::passes::{FACTS_AND_PASSES, ShowingBuyer, needs};
use crate::support::processes::programs::scratch;
use crate::support::world::parts::mysql_store::session_of;
use crate::support::world::{Answer, World, eventually, run};
use diesel_async::SimpleAsyncConnection;
use futures::future::join_all;
use reqwest::Method;
use seckill::domain::policy::{LimitBy, PurchasePolicy};
use seckill::roles::Role::Api;
use serde_json::{Value, json};

#[test]
fn a_buyer_is_in_a_line_once_with_a_receipt() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("once", |_, _| ()).await;
        let first = world.enter_line(&sale, "ann", 1).await;
        assert_eq!((first.status, first.text("state"), first.code()), (201, "WAITING".into(), "P6-W0".into()));
        assert_eq!(first.header("location"), "/v1/sales/once/entries/mine");
        let (id, receipt) = (first.text("entry_id"), first.text("receipt"));
        let mine = world.entry_of(&sale, "ann").await;
        assert_eq!((mine.status, &mine.json), (200, &first.json), "the same, with the same receipt");
        assert_eq!(first.json["rank"], Value::Null);
        let again = world.enter_line(&sale, "ann", 1).await;
        assert_eq!((again.status, again.code(), again.text("entry_id")), (409, "ALREADY_ENTERED".into(), id.clone()));
        assert_eq!(world.entry_of(&sale, "bob").await.code(), "ENTRY_NOT_FOUND");

        let said = world.cli(&["line", "receipt", &receipt]).exits(0).json();
        assert_eq!((&said["entry_id"], &said["buyer"], &said["quantity"]), (&json!(id), &json!("ann"), &json!(1)));
        let forged = receipt.replace(receipt.chars().last().unwrap(), "_");
        world.cli(&["line", "receipt", &forged]).exits(2);

        // Of a crowd that clicks three times each, every buyer is there once; entries that come together are one group.
        let clicks = (0..60).map(|no| (no, format!("b{}", no % 20)));
        let answers = join_all(clicks.map(|(_, buyer)| {
            let (world, sale) = (&world, &sale);
            async move { world.enter_line(sale, &buyer, 1).await.status }
        }))
        .await;
        let count = |status| answers.iter().filter(|answer| **answer == status).count();
        assert_eq!((count(201), count(409)), (20, 40), "{answers:?}");
        assert_eq!(world.rows("line_entries", "sale_id = 'once' AND listed = 1").await, 21);
        assert_eq!(world.number("SELECT entries_count AS n FROM sale_lines WHERE sale_id = 'once'").await, 21);
        world.finish().await;
    });
}

#[test]
fn accounts_of_one_person_are_in_a_line_once() {
    run(async {
        let world = World::with(&[Api], &FACTS_AND_PASSES).await;
        let sale = world.raffle("person", |sale, _| sale.limit_by = LimitBy::Person).await;
        let account = |buyer| ShowingBuyer::new(&world, buyer).with_claims(json!({ "pid": "p 1" }));
        assert_eq!(account("one").enter_line(&sale).await.status, 201);
        let other = account("two").enter_line(&sale).await;
        assert_eq!((other.status, other.code()), (409, "ALREADY_ENTERED".to_owned()));
        assert_eq!(other.json["entry_id"], Value::Null, "it is another account's: {other:?}");
        assert!(account("one").enter_line(&sale).await.json["entry_id"].is_string(), "its own");
        let unnamed = ShowingBuyer::new(&world, "three").enter_line(&sale).await;
        assert_eq!((unnamed.status, unnamed.code()), (403, "P1-Q1".to_owned()));
        assert_eq!(world.entry_of(&sale, "one").await.status, 200, "the access token alone finds it");
        assert_eq!(world.entry_of(&sale, "two").await.status, 404);
        world.finish().await;
    });
}

#[test]
fn what_a_purchase_needs_an_entry_needs() {
    run(async {
        let world = World::with(&[Api], &[&FACTS_AND_PASSES[..], &["lines.entries_max=1"]].concat()).await;
        let sale = world
            .raffle("needs", |sale, _| {
                sale.needs = needs(&json!({ "tier": ["gold"] }));
                sale.policy = PurchasePolicy::from_limit(Some(2));
            })
            .await;
        let plain = world.sale("plain", 10, Some(1)).await;
        let none = world.enter_line(&plain, "ann", 1).await;
        assert_eq!((none.status, none.code()), (404, "NO_LINE".to_owned()), "{none:?}");
        let unknown =
            Answer::of(world.request(Method::POST, "/v1/sales/unknown/entries", "ann").json(&json!({}))).await;
        assert_eq!(unknown.code(), "P1-S3");
        assert_eq!(world.enter_line(&sale, "ann", 1).await.code(), "P1-Q1");
        let gold = |buyer| ShowingBuyer::new(&world, buyer).with_claims(json!({ "membership": "gold" }));
        world.cli(&["block", "add", "eve", "--reason", "r"]).exits(0);
        eventually("blocked", async || gold("eve").enter_line(&sale).await.code() == "P1-Q2").await;
        assert_eq!(world.rows("line_entries", "sale_id = 'needs' AND user_id <> 'eve'").await, 0);
        world.sql("DELETE FROM line_entries; UPDATE sale_lines SET entries_count = 0").await;
        assert_eq!(gold("ann").enter_line(&sale).await.status, 201);
        let full = gold("bob").enter_line(&sale).await;
        assert_eq!((full.status, full.code()), (503, "LINE_FULL".to_owned()), "{full:?}");

        let any = world.raffle("any", |sale, _| sale.policy = PurchasePolicy::from_limit(Some(2))).await;
        for (quantity, status) in [(3, 409), (0, 422), (1_001, 422)] {
            assert_eq!(world.enter_line(&any, "bob", quantity).await.status, status, "{quantity}");
        }
        for body in ["", "[1]", r#"{"units":1}"#] {
            let request = world.request(Method::POST, "/v1/sales/any/entries", "bob");
            let bad = Answer::of(request.header("content-type", "application/json").body(body)).await;
            assert_eq!(bad.status, 400, "{body}: {bad:?}");
        }
        let anonymous = Answer::of(world.http.post(format!("{}/v1/sales/any/entries", world.api))).await;
        assert_eq!(anonymous.status, 401);
        assert_eq!(world.rows("line_entries", "sale_id = 'any'").await, 0);
        assert_eq!(world.enter_line(&any, "bob", 2).await.json["quantity"], 2);
        world.finish().await;
    });
}

#[test]
fn who_leaves_before_the_close_is_not_in_the_list_and_may_enter_again() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("leaves", |_, _| ()).await;
        let mut ids = Vec::new();
        for buyer in ["ann", "bob", "eve", "joe"] {
            ids.push(world.entered(&sale, buyer).await);
        }
        assert_eq!(world.leave_line(&sale, "ann", &ids[1]).await.status, 404, "another buyer's");
        assert_eq!(world.leave_line(&sale, "ann", "1").await.code(), "ENTRY_NOT_FOUND");
        for _ in 0..2 {
            assert_eq!(world.leave_line(&sale, "ann", &ids[0]).await.status, 204);
            assert_eq!(world.leave_line(&sale, "bob", &ids[1]).await.status, 204);
        }
        assert_eq!(world.entry_of(&sale, "ann").await.text("state"), "LEFT");
        let again = world.entered(&sale, "ann").await;
        assert_ne!(again, ids[0], "another entry");
        assert_eq!(world.leave_line(&sale, "ann", &ids[0]).await.status, 404, "the old one is gone");
        world.line_is_over(&sale).await;
        world.keep_lines().await;
        let draw = world.draw_once(&sale, "DRAWN").await;
        assert_eq!(draw.json["entries"], 3, "{draw:?}");
        let list = world.list_of(&sale).await;
        let mut listed = vec![again, ids[2].clone(), ids[3].clone()];
        listed.sort_by_key(|id| id.parse::<u64>().unwrap());
        assert_eq!(list.body.lines().collect::<Vec<_>>(), listed);

        // Behind the seal the list stays what it is.
        assert_eq!(world.leave_line(&sale, "eve", &ids[2]).await.status, 204);
        let mine = world.entry_of(&sale, "eve").await;
        assert_eq!((mine.text("state"), mine.json["rank"].is_u64()), ("LEFT".to_owned(), true), "{mine:?}");
        assert_eq!(world.entry_of(&sale, "bob").await.json["rank"], Value::Null);
        world.sql("UPDATE line_entries SET state = 'OFFERED' WHERE user_id = 'joe'").await;
        let offered = world.leave_line(&sale, "joe", &ids[3]).await;
        assert_eq!((offered.status, offered.code()), (409, "ENTRY_OFFERED".to_owned()));
        assert_eq!(world.rows("line_entries", "listed = 1").await, 3);
        world.finish().await;
    });
}

#[test]
fn an_entry_that_stalls_until_the_line_is_closed_is_refused() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("stalled", |_, _| ()).await;
        world.entered(&sale, "ann").await;
        let mut closing = session_of(world.settings.mysql.url.expose()).await;
        let close = "BEGIN; UPDATE sale_lines SET state = 'CLOSED', closed_at = NOW(3) WHERE sale_id = 'stalled'";
        closing.batch_execute(close).await.unwrap();
        let (late, ()) = tokio::join!(world.enter_line(&sale, "bob", 1), async {
            let waits = "trx_state = 'LOCK WAIT' AND trx_query LIKE '%sale_lines%'";
            eventually("it waits", async || world.rows("information_schema.innodb_trx", waits).await > 0).await;
            closing.batch_execute("COMMIT").await.unwrap();
        });
        assert_eq!((late.status, late.code()), (410, "LINE_CLOSED".to_owned()), "{late:?}");
        assert_eq!(world.rows("line_entries", "sale_id = 'stalled'").await, 1);
        // By the database's clock, before any process has closed it.
        let over = world.raffle("over", |_, _| ()).await;
        world.line_is_over(&over).await;
        assert_eq!(world.enter_line(&over, "bob", 1).await.code(), "LINE_CLOSED");
        assert_eq!(world.rows("line_entries", "sale_id = 'over'").await, 0);
        world.finish().await;
    });
}

fn file(name: &str, text: &Value) -> String {
    let path = scratch("lines").join(name);
    std::fs::write(&path, text.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_sale_is_created_with_a_line_by_each_way() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = |id: &str, more: Value| {
            let mut sale = json!({
                "sale_id": id, "product_id": "p", "title": "t", "stock": 5, "line": "raffle",
                "starts_at": "2098-01-01T10:00:00+08:00", "ends_at": "2098-01-01T12:00:00+08:00"
            });
            sale.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            sale
        };
        let later = json!({ "line_closes_at": "2098-01-01T11:00:00+08:00", "line_beacon": true });
        let drop = json!({ "drop_id": "d", "title": "t", "sales": [sale("m", json!({})), sale("l", later)] });
        let path = file("drop.json", &drop);
        let flags =
            ["sale", "create", "--id", "f", "--product", "p", "--title", "t", "--stock", "1", "--line", "raffle"];
        let times = ["--starts-at", "2098-01-01T10:00:00+08:00", "--ends-at", "2098-01-01T12:00:00+08:00"];
        let create = [&flags[..], &times].concat();
        world.cli(&create).exits(0);
        for _ in 0..2 {
            world.cli(&["drop", "create", "--file", &path]).exits(0);
        }
        let shown = world.cli(&["drop", "show", "d", "--json"]).exits(0).json();
        assert_eq!(shown["sales"][0]["line_closes_at"], "2098-01-01T02:00:00.000Z", "at the start");
        assert_eq!((&shown["sales"][1]["line"], &shown["sales"][1]["line_beacon"]), (&json!("raffle"), &json!(true)));
        let shown = world.cli(&["sale", "show", "f", "--json"]).exits(0).json();
        assert_eq!(shown["line"]["kind"], "raffle", "{shown}");
        let lines = "commitment = UNHEX(SHA2(seed, 256)) AND state = 'OPEN' AND digest IS NULL";
        assert_eq!(world.rows("sale_lines", lines).await, 3);
        assert_eq!(world.number("SELECT COUNT(DISTINCT seed) AS n FROM sale_lines").await, 3);
        assert_eq!(world.rows("sales", "line_kind = 'raffle' AND by_line = 1").await, 3);
        let queue = [&create[..10], &["--line", "queue"], &create[12..]].concat();
        assert!(world.cli(&queue).exits(64).err.contains("raffle or waitlist"), "an unknown kind");
        world.finish().await;
    });
}
