//! Receivers of webhooks that fail: each event arrives at last, under the same id, and one receiver holds up no other.

use crate::support::buyers::orders::LONG;
use crate::support::links::link::Link;
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, SOON, webhook};
use crate::support::world::fault_injection::port_of;
use crate::support::world::{World, eventually, run};
use seckill::config::ServerUrl;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::json;
use std::collections::BTreeSet;

const ALL: [seckill::roles::Role; 4] = [Api, Relay, Consumer, Reconcile];
const QUICK_DEADLINE: &str = "webhook_delivery.deadline_ms=300";

async fn orders(world: &World, sale: &SaleId, users: std::ops::Range<usize>) -> Vec<RequestId> {
    let mut orders = Vec::new();
    for n in users {
        orders.push(world.ordered(sale, &format!("user{n}")).await);
    }
    orders
}

#[test]
fn a_receiver_that_fails_for_a_while_gets_each_event_at_last_under_the_same_id() {
    run(async {
        let mut receiver = HookReceiver::start().await;
        let world = World::with_hook(&ALL, &[QUICK_DEADLINE], &receiver).await;
        let sale = world.paying_sale("fails", 100, Some(1), LONG).await;
        let mut all = Vec::new();
        let tried = async |what: &str, before: usize| {
            eventually(what, async || receiver_calls(&world).await > before).await;
        };
        for (n, mood) in ["500", "silent", "hangs up", "closed", "302", "good"].into_iter().enumerate() {
            match mood {
                "500" => receiver.answers("500 Internal Server Error", ""),
                "silent" => receiver.falls_silent(),
                "hangs up" => receiver.hangs_up(),
                "closed" => receiver.close(),
                "302" => {
                    receiver.open().await;
                    receiver.answers("302 Found", "Location: /elsewhere\r\n");
                }
                _ => receiver.answers("200 OK", ""),
            }
            let before = receiver_calls(&world).await;
            all.extend(orders(&world, &sale, 5 * n..5 * n + 5).await);
            if mood != "good" {
                tried(mood, before + 4).await;
                assert_eq!(receiver.taken().len(), 0, "{mood}");
            }
        }
        for order in &all {
            receiver.receives("order.confirmed", *order).await;
        }
        eventually("all is delivered", async || world.deliveries("DELIVERED").await == 30).await;
        let calls = receiver.calls();
        let ids: BTreeSet<&str> = calls.iter().map(|call| call.id()).collect();
        assert_eq!((ids.len(), receiver.taken().len(), all.len()), (30, 30, 30), "the same id at each try");
        for id in &ids {
            let bodies: BTreeSet<&[u8]> =
                calls.iter().filter(|call| call.id() == *id).map(|call| &*call.body).collect();
            assert_eq!(bodies.len(), 1, "and the same body");
        }
        assert!(calls.iter().all(|call| call.is_signed_by(SECRET) && call.line.contains("/hooks/orders")));
        let tries = world.number("SELECT CAST(SUM(attempts) AS SIGNED) AS n FROM webhook_deliveries").await;
        eprintln!(
            "webhook record: {} events, {tries} tries, {} calls reached the receiver, {} answered 2xx, {} twice or more",
            all.len(),
            calls.len(),
            calls.iter().filter(|call| call.taken).count(),
            receiver.taken().values().filter(|times| **times > 1).count()
        );
        world.finish().await;
    });
}

/// Tries so far, as the database has them: a closed port counts no calls.
async fn receiver_calls(world: &World) -> usize {
    let tries = world.number("SELECT CAST(COALESCE(SUM(attempts), 0) AS SIGNED) AS n FROM webhook_deliveries").await;
    usize::try_from(tries).unwrap()
}

#[test]
fn a_slow_receiver_does_not_hold_up_another() {
    run(async {
        let (slow, quick) = (HookReceiver::start().await, HookReceiver::start().await);
        slow.falls_silent();
        let text = [
            webhook("slow", &slow.url(), &[SECRET], &ALL_EVENTS),
            webhook("quick", &quick.url(), &[SECRET], &ALL_EVENTS),
        ];
        let few = ["webhook_delivery.in_flight_max=4", "webhook_delivery.in_flight_each_max=2", SOON];
        let patient = "webhook_delivery.deadline_ms=60000";
        let world = World::with_config(&ALL, &[&few[..], &[patient]].concat(), &text.concat()).await;
        let sale = world.paying_sale("slow", 100, Some(1), LONG).await;
        let all = orders(&world, &sale, 0..20).await;
        for order in &all {
            quick.receives("order.confirmed", *order).await;
        }
        assert_eq!(slow.calls().len(), 2, "it holds its own places, and no other");
        assert_eq!(world.rows("webhook_deliveries", "webhook = 'slow' AND state = 'WAITING'").await, 20);
        world.finish().await;
    });
}

#[test]
fn a_receiver_that_asks_for_a_pause_is_left_alone() {
    run(async {
        let receiver = HookReceiver::start().await;
        receiver.answers("429 Too Many Requests", "Retry-After: 3600\r\n");
        let one = "webhook_delivery.in_flight_each_max=1";
        let world = World::with_hook(&ALL, &[one], &receiver).await;
        let sale = world.paying_sale("busy", 10, Some(1), LONG).await;
        orders(&world, &sale, 0..1).await;
        eventually("it was tried", async || receiver_calls(&world).await == 1).await;
        orders(&world, &sale, 1..3).await;
        let later = "state = 'WAITING' AND next_at > NOW(3) + INTERVAL 3000 SECOND AND problem LIKE 'answers 429%'";
        assert_eq!(world.rows("webhook_deliveries", later).await, 1);
        eventually("the figures are measured", async || {
            let overview = world.cli(&["webhook", "list", "--json"]).exits(0).json();
            overview["webhooks"][0]["waiting"] == json!(3)
        })
        .await;
        assert_eq!(receiver.calls().len(), 1, "nothing more is sent to it");
        world.finish().await;
    });
}

#[test]
fn a_receiver_that_is_gone_gets_nothing_until_the_leader_starts_again() {
    run(async {
        let receiver = HookReceiver::start().await;
        receiver.answers("410 Gone", "");
        let one = "webhook_delivery.in_flight_each_max=1";
        let mut world = World::with_hook(&[Api, Relay, Consumer], &[one], &receiver).await;
        let sale = world.paying_sale("gone", 10, Some(1), LONG).await;
        let first = orders(&world, &sale, 0..1).await;
        let leader = world.process("reconcile", "", &[SOON, one]);
        let disabled = r#"seckill_p6_webhook_disabled{webhook="shop"}"#;
        leader.until_metric(disabled, |value| value == 1.0).await;
        let more = orders(&world, &sale, 1..3).await;
        let waiting = r#"seckill_p6_webhook_waiting_count{webhook="shop"}"#;
        leader.until_metric(waiting, |value| value == 3.0).await;
        assert_eq!(receiver.calls().len(), 1);
        let log = leader.program.stderr();
        assert!(log.contains("answers 410") && log.contains("shop"), "{log}");
        leader.kill();
        receiver.answers("200 OK", "");
        world.stop_roles().await;
        world.start_roles(&ALL).await;
        for order in first.iter().chain(&more) {
            receiver.receives("order.confirmed", *order).await;
        }
        world.finish().await;
    });
}

#[test]
fn a_dead_delivery_is_listed_and_replayed_by_command_and_by_api() {
    run(async {
        let receiver = HookReceiver::start().await;
        receiver.answers("500 Internal Server Error", "");
        let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
        let world = World::with_config(&ALL, &["webhook_delivery.retry_ms=50"], &text).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("dead", 10, Some(1), LONG).await;
        let all = orders(&world, &sale, 0..4).await;
        eventually("they are dead", async || world.deliveries("DEAD").await == 4).await;
        let listed = world.cli(&["webhook", "list", "--dead", "--webhook", "shop", "--json"]).exits(0).json();
        assert_eq!((&listed["count"], &listed["deliveries"][0]["attempts"]), (&json!(4), &json!(2)));
        assert_eq!(listed["deliveries"][0]["problem"], "answers 500 Internal Server Error");
        assert!(world.cli(&["webhook", "list", "--dead"]).exits(0).out.contains("order.confirmed"));
        let ids: Vec<u64> =
            listed["deliveries"].as_array().unwrap().iter().map(|of| of["delivery_id"].as_u64().unwrap()).collect();
        let shown = world.cli(&["webhook", "show", &ids[0].to_string()]).exits(0).json();
        assert_eq!(shown["data"]["rid"], shown["request_id"]);
        let by_api = admin.get("/webhooks/deliveries?webhook=shop").await;
        assert_eq!((by_api.status, by_api.json["count"].as_u64()), (200, Some(4)));
        let one = admin.get(&format!("/webhooks/deliveries/{}", ids[0])).await;
        assert_eq!((one.status, &one.json["delivery"]["data"]["status"]), (200, &json!("CONFIRMED")));
        assert_eq!(admin.get("/webhooks/deliveries/99999").await.code(), "DELIVERY_NOT_FOUND");
        assert_eq!(admin.post("/webhooks/replay", json!({})).await.status, 422);

        receiver.answers("200 OK", "");
        let [first, second] = [ids[0], ids[1]];
        let done = admin.post("/webhooks/replay", json!({ "delivery_ids": [first, 99_999], "by": "Li Wei" })).await;
        let replayed = json!({ "replayed": 1, "unknown": [99_999], "opened": [] });
        assert_eq!((done.status, &done.json), (200, &replayed));
        eventually("it is delivered", async || world.deliveries("DELIVERED").await == 1).await;
        world.cli(&["webhook", "replay", &second.to_string()]).exits(0);
        eventually("it is delivered", async || world.deliveries("DELIVERED").await == 2).await;
        world.cli(&["webhook", "replay", "--dead", "--webhook", "shop"]).exits(0);
        for order in &all {
            receiver.receives("order.confirmed", *order).await;
        }
        eventually("all is delivered", async || world.deliveries("DELIVERED").await == 4).await;
        // A delivered one can be sent again, too: under its id.
        assert_eq!(admin.post("/webhooks/replay", json!({ "delivery_ids": [first] })).await.status, 200);
        eventually("it came twice", async || receiver.taken().values().any(|times| *times == 2)).await;
        assert_eq!(receiver.taken().len(), 4);
        world.cli(&["webhook", "replay", "99999"]).exits(1);
        let acts = admin.get("/acts").await;
        let replays: Vec<_> =
            acts.json["acts"].as_array().unwrap().iter().filter(|act| act["action"] == "webhook.replay").collect();
        assert_eq!(replays.len(), 5, "each is on record");
        assert!(replays.iter().any(|act| act["actor_name"] == "Li Wei"));
        world.finish().await;
    });
}

#[test]
fn rows_of_delivered_events_are_deleted_after_their_time() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&ALL, &["webhook_delivery.retention_s=1"], &receiver).await;
        let sale = world.paying_sale("kept", 10, Some(1), LONG).await;
        let all = orders(&world, &sale, 0..3).await;
        receiver.receives("order.confirmed", all[2]).await;
        eventually("they are deleted", async || world.rows("webhook_deliveries", "TRUE").await == 0).await;
        assert_eq!(receiver.taken().len(), 3);
        world.finish().await;
    });
}

/// The count of rows may take two minutes when the database says nothing any more on its connection.
#[test]
fn figures_that_get_no_answer_hold_up_no_delivery() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&[Api, Relay, Consumer], &[], &receiver).await;
        let direct = world.settings.mysql.url.expose();
        let hole = Link::silent_after(port_of(direct), "webhooks::figures").await;
        // The driver would go past the hole, by the server's socket file.
        let url = ServerUrl::new(format!("{}?prefer_socket=false", hole.url(direct)));
        let sender = world.extra_roles(&[Reconcile], |settings| settings.mysql.url = url);
        eventually("the figures are asked for", async || hole.fired() > 0).await;
        let sale = world.paying_sale("uncounted", 10, Some(1), LONG).await;
        let order = world.ordered(&sale, "alice").await;
        receiver.receives("order.confirmed", order).await;
        eventually("it is recorded", async || world.deliveries("DELIVERED").await == 1).await;
        sender.stop().await;
        world.finish().await;
    });
}
