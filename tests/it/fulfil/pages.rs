//! Lists of orders' money, of deliveries and of acts end nowhere but at their last row, in the API and on the command line.

use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, run};
use seckill::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use seckill::events::webhooks::rows::DELIVERIES_COUNTED_MAX;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The values of `id` in all pages of a list.
async fn walked(admin: &AdminPort, list: &str, rows: &str, id: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = admin.get(&format!("{list}{cursor}")).await;
        assert_eq!(page.status, 200, "{page:?}");
        found.extend(page.json[rows].as_array().unwrap().iter().map(|row| row[id].clone()));
        match page.text("next") {
            next if next.is_empty() => return found,
            next => cursor = format!("&cursor={next}"),
        }
    }
}

async fn refunds_due(world: &World, payments: u32) {
    // Seven of each moment.
    let row = |n: u32| {
        let sale = if n.is_multiple_of(2) { "'even'" } else { "NULL" };
        let at = format!("'2026-01-01 00:00:00' + INTERVAL {} SECOND", n / 7);
        format!("('pi-{n}', {}, {sale}, 150, 'KWD', 'REFUND_NEEDED', 'NO_ORDER', {at})", n + 1)
    };
    let rows: Vec<String> = (0..payments).map(row).collect();
    world
        .sql(&format!(
            "INSERT INTO payments (payment_id, request_id, sale_id, amount_cents, currency, state, reason, state_at) VALUES {}",
            rows.join(",")
        ))
        .await;
}

#[test]
fn money_that_has_to_go_back_is_listed_to_its_last_payment() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        refunds_due(&world, 1_203).await;
        let first = admin.get("/refunds").await.json;
        assert_eq!((first["payments"].as_array().unwrap().len(), &first["count"]), (1_000, &json!(1_203)));
        for limit in [1_000, 500, 401] {
            let found = walked(&admin, &format!("/refunds?limit={limit}"), "payments", "payment_id").await;
            let all: BTreeSet<_> = found.iter().map(|id| id.as_str().unwrap()).collect();
            assert_eq!((found.len(), all.len()), (1_203, 1_203), "{limit}: each once");
        }
        assert_eq!(walked(&admin, "/refunds?limit=100&sale=even", "payments", "payment_id").await.len(), 602);
        let count = admin.get("/refunds?limit=0").await.json;
        assert_eq!(count, json!({ "payments": [], "count": 1_203, "next": null }));
        for bad in ["limit=1001", "cursor=7", "cursor=7-zz"] {
            assert_eq!(admin.get(&format!("/refunds?{bad}")).await.status, 422, "{bad}");
        }

        let page = world.cli(&["order", "refunds", "--limit", "3", "--json"]).exits(0).json();
        let next = page["next"].as_str().unwrap();
        assert_eq!(page["payments"][0]["told_at"].as_str().map(str::len), Some(24), "{page}");
        // A place stays one when the payment there is done with.
        let last = page["payments"][2]["payment_id"].as_str().unwrap();
        world
            .sql(&format!("UPDATE payments SET state = 'REFUNDED', state_at = NOW(3) WHERE payment_id = '{last}'"))
            .await;
        let second = world.cli(&["order", "refunds", "--limit", "4", "--cursor", next]).exits(0);
        assert!(second.out.contains("0.150 KWD") && second.out.contains("4 of 1202"), "{second:?}");
        assert!(second.err.contains("--cursor "), "{second:?}");
        assert!(!second.out.contains(&format!("{last} ")), "{second:?}");
        world.stop_roles().await;
    });
}

#[test]
fn deliveries_are_listed_to_their_last_one() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let row = |n: u32| {
            let (webhook, at) = (["a-shop", "b"][n as usize % 2], format!("'2026-01-01' + INTERVAL {} SECOND", n / 9));
            format!("('{webhook}', {}, 'order.paid', '{{}}', 'DEAD', {at}, {at})", n + 1)
        };
        let rows: Vec<String> = (0..605).map(row).collect();
        world
            .sql(&format!(
                "INSERT INTO webhook_deliveries (webhook, request_id, event_key, body, state, next_at, created_at) VALUES {}",
                rows.join(",")
            ))
            .await;
        let first = admin.get("/webhooks/deliveries?limit=500").await.json;
        assert_eq!((first["deliveries"].as_array().unwrap().len(), &first["count"]), (500, &json!(605)));
        for limit in [500, 121, 50] {
            let list = format!("/webhooks/deliveries?state=DEAD&limit={limit}");
            let found = walked(&admin, &list, "deliveries", "delivery_id").await;
            let all: BTreeSet<_> = found.iter().map(|id| id.as_u64().unwrap()).collect();
            assert_eq!((found.len(), all.len()), (605, 605), "{limit}: each once");
        }
        let of_one = walked(&admin, "/webhooks/deliveries?webhook=b&limit=100", "deliveries", "webhook").await;
        assert!(of_one.len() == 302 && of_one.iter().all(|webhook| webhook == "b"), "{}", of_one.len());
        assert_eq!(admin.get("/webhooks/deliveries?cursor=7").await.status, 422);

        let page = world.cli(&["webhook", "list", "--dead", "--limit", "303", "--json"]).exits(0).json();
        let rest = ["webhook", "list", "--dead", "--limit", "400", "--cursor", page["next"].as_str().unwrap()];
        let rest = world.cli(&rest).exits(0);
        assert!(rest.out.contains("302 of 605") && !rest.out.contains("a-shop"), "{rest:?}");
        world.stop_roles().await;
    });
}

/// Of those that were delivered there may be millions: they are counted up to a bound, and the answer says so.
#[test]
fn deliveries_are_counted_up_to_a_bound_and_replayed_beyond_it() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let insert = async |numbers: std::ops::RangeInclusive<i64>, state: &str| {
            let rows: Vec<String> =
                numbers.map(|n| format!("('shop', {n}, 'order.paid', '{{}}', '{state}')")).collect();
            let columns = "webhook_deliveries (webhook, request_id, event_key, body, state)";
            world.sql(&format!("INSERT INTO {columns} VALUES {}", rows.join(","))).await;
        };
        insert(1..=DELIVERIES_COUNTED_MAX, "DELIVERED").await;
        let list = "/webhooks/deliveries?state=DELIVERED&limit=1";
        let counted = async |more: &str| {
            let page = admin.get(&format!("{list}{more}")).await.json;
            (page["count"].as_i64(), page["more_than_count"].as_bool())
        };
        assert_eq!(counted("").await, (Some(DELIVERIES_COUNTED_MAX), Some(false)), "exactly this number");
        insert(DELIVERIES_COUNTED_MAX + 1..=DELIVERIES_COUNTED_MAX + 2, "DELIVERED").await;
        for more in ["", "&webhook=shop"] {
            assert_eq!(counted(more).await, (Some(DELIVERIES_COUNTED_MAX), Some(true)), "{more}");
        }
        assert_eq!(counted("&webhook=b").await, (Some(0), Some(false)));
        let listed = world.cli(&["webhook", "list", "--state", "DELIVERED", "--limit", "1"]).exits(0);
        assert!(listed.out.contains(&format!("1 of more than {DELIVERIES_COUNTED_MAX}")), "{listed:?}");

        world.sql("UPDATE webhook_deliveries SET state = 'DEAD'").await;
        let replayed = admin.post("/webhooks/replay", json!({ "dead": true })).await;
        assert_eq!(replayed.json["replayed"], DELIVERIES_COUNTED_MAX + 2, "{replayed:?}");
        world.stop_roles().await;
    });
}

/// A sale of two epochs on two shards, whose ids grow the other way, and one of fifty requests failed: request `n` is the nth that was
/// accepted, and has the id `LAST_ID - n`.
async fn crowded(world: &World, requests: u64) {
    world.sale("crowded", 20_000, None).await;
    let place = |n: u64| format!("'crowded', {}, {}, {}", n % 2, 1 + n / 6_000, n / 2);
    for numbers in (0..requests).collect::<Vec<_>>().chunks(5_000) {
        let outcomes = numbers.iter().map(|n| {
            let (kind, reason) = if has_failed(*n) { ("FAILED", "'SOLD_OUT'") } else { ("ORDER", "NULL") };
            format!("({}, '{kind}', {reason}, {}, REPEAT('h', 16))", LAST_ID - n, place(*n))
        });
        let columns = "request_outcome (request_id, kind, reason, sale_id, shard, epoch, number, payload_hash)";
        world.sql(&format!("INSERT INTO {columns} VALUES {}", outcomes.collect::<Vec<_>>().join(","))).await;
        let orders = numbers.iter().filter(|n| !has_failed(**n)).map(|n| {
            let (id, state, at) = (LAST_ID - n, if is_cancelled(*n) { "CANCELLED" } else { "PAID" }, n % 7);
            format!("({id}, 'crowded', 'u', 1, 100, 'relay', NOW(3), '{state}', NOW(3), NOW(3) - INTERVAL {at} SECOND)")
        });
        let columns = "orders (request_id, sale_id, user_id, quantity, amount_cents, source, accepted_at, state, state_at, expire_at)";
        world.sql(&format!("INSERT INTO {columns} VALUES {}", orders.collect::<Vec<_>>().join(","))).await;
    }
}

const LAST_ID: u64 = 2_000_000;

fn has_failed(n: u64) -> bool {
    n % 50 == 49
}

fn is_cancelled(n: u64) -> bool {
    n.is_multiple_of(61)
}

/// More are in the one state than are read as a whole, and few in the other.
#[test]
fn orders_of_a_sale_are_listed_by_acceptance_whether_many_or_few_are_in_a_state() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let requests = 13_000;
        crowded(&world, requests).await;
        let admin = world.admin_port();
        let accepted = |state: &str| -> Vec<u64> {
            let is_asked = |n: &u64| match state {
                "" => true,
                "&state=PAID" => !is_cancelled(*n),
                "&state=CANCELLED" => is_cancelled(*n),
                _none => false,
            };
            (0..requests).rev().filter(|n| !has_failed(*n) && is_asked(n)).map(|n| LAST_ID - n).collect()
        };
        for (state, limit) in
            [("", 500), ("&state=PAID", 500), ("&state=CANCELLED", 30), ("&state=CANCELLED", 209), ("&state=UNPAID", 9)]
        {
            let list = format!("/orders?sale=crowded{state}&limit={limit}");
            let found = walked(&admin, &list, "orders", "request_id").await;
            let ids: Vec<u64> = found.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
            assert!(ids == accepted(state), "{list}: {} of {}", ids.len(), accepted(state).len());
        }
        for list in ["/orders?buyer=u&limit=500", "/orders?buyer=u&sale=crowded&limit=500"] {
            let found = walked(&admin, list, "orders", "request_id").await;
            let ids: Vec<u64> = found.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
            let mut by_id = accepted("");
            by_id.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
            assert!(ids == by_id, "{list}, a buyer of many: {} of {}", ids.len(), by_id.len());
        }
        let elsewhere = admin.get("/orders?sale=crowded&cursor=7").await;
        assert_eq!((elsewhere.status, elsewhere.code()), (422, "UNPROCESSABLE".to_owned()), "{elsewhere:?}");
        assert!(elsewhere.text("detail").contains("cursor: expected an order of this sale"), "{elsewhere:?}");
        let elsewhere = world.cli(&["order", "list", "--sale", "crowded", "--cursor", "7"]).exits(64);
        assert!(elsewhere.err.contains("cursor: expected an order of this sale"), "{elsewhere:?}");
        world.stop_roles().await;
    });
}

/// In many sales; in one of them many orders, in another one that counts against a limit of one, and two that no longer do.
#[test]
fn a_buyers_orders_are_listed_newest_first_over_all_sales() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let row = |n: u64| {
            let (sale, unique) = match n % 4 {
                0 => ("many".to_owned(), "NULL"),
                1 if n < 12 => ("once".to_owned(), if n == 5 { "'u'" } else { "NULL" }),
                _ => (format!("sale-{}", n % 130), "NULL"),
            };
            format!("({}, '{sale}', 'u', {unique}, 1, 100, 'relay', NOW(3), 'PAID')", n + 1)
        };
        let columns = "orders (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at, state)";
        let rows: Vec<String> = (0..1_000).map(row).collect();
        let others = "(5001, 'many', 't', NULL, 1, 100, 'relay', NOW(3), 'PAID'), (5002, 'many', 'v', NULL, 1, 100, 'relay', NOW(3), 'PAID')";
        world.sql(&format!("INSERT INTO {columns} VALUES {}, {others}", rows.join(","))).await;
        world.sql("UPDATE orders SET state = 'CANCELLED' WHERE request_id % 100 = 1").await;
        for (filter, count) in [("", 1_000), ("&sale=many", 250), ("&sale=once", 3), ("&state=CANCELLED", 10)] {
            let list = format!("/orders?buyer=u&limit=90{filter}");
            let found = walked(&admin, &list, "orders", "request_id").await;
            let ids: Vec<u64> = found.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
            assert!(ids.is_sorted_by(|newer, older| newer > older), "{list}: newest first, each once");
            assert!(ids.len() == count && ids.iter().all(|id| *id <= 1_000), "{list}: {}", ids.len());
        }
        world.stop_roles().await;
    });
}

#[test]
fn acts_are_listed_to_the_first_one() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let act = |n: usize| {
            let target = ActTarget::Entry(format!("entry-{n}"));
            OperatorAct::new(&Actor::at_the_terminal("ann"), Operation::WebhookReplay, target)
        };
        world.servers.rows.acts.record(&(0..5).map(act).collect::<Vec<_>>()).await.unwrap();
        let last = world.cli(&["act", "list", "--limit", "3"]).exits(0);
        assert!(last.out.contains("entry-2") && !last.out.contains("entry-1"), "{last:?}");
        let before = last.err.trim().rsplit(' ').next().unwrap();
        let first = world.cli(&["act", "list", "--limit", "3", "--before", before]).exits(0);
        assert!(first.out.contains("entry-0") && first.out.contains("entry-1"), "{first:?}");
        assert!(!first.out.contains("entry-2") && !first.err.contains("--before"), "{first:?}");
        world.cli(&["act", "list", "--before", "0"]).exits(64);
        world.stop_roles().await;
    });
}
