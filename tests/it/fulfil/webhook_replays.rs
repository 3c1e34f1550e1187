//! Replays of deliveries beside new events, and of receivers that answered 410 (L5).

use crate::support::buyers::orders::LONG;
use crate::support::outside::hook_receiver::{HookReceiver, SOON};
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::json;

/// Deliveries that are replayed: many pages of one place.
const REPLAYED: i64 = 3_000;

#[test]
fn an_event_that_just_happened_does_not_wait_behind_those_that_are_replayed() {
    run(async {
        let receiver = HookReceiver::start().await;
        let one = "webhook_delivery.in_flight_each_max=1";
        let world = World::with_hook(&[Api, Relay, Consumer], &[one], &receiver).await;
        let sale = world.paying_sale("fresh", 10, Some(1), LONG).await;
        // As dead ones are after an outage of their receiver.
        let rows: Vec<String> =
            (1..=REPLAYED).map(|n| format!("('shop', {n}, 'order.paid', '{{\"rid\":\"{n}\"}}', 'DEAD', 9)")).collect();
        let columns = "webhook_deliveries (webhook, request_id, event_key, body, state, attempts)";
        world.sql(&format!("INSERT INTO {columns} VALUES {}", rows.join(","))).await;
        world.cli(&["webhook", "replay", "--dead", "--webhook", "shop"]).exits(0);
        let leader = world.extra_roles(&[Reconcile], |settings| settings.webhook_delivery.in_flight_each_max = 1);
        eventually("it sends", async || !receiver.calls().is_empty()).await;
        let alice = world.ordered(&sale, "alice").await;
        receiver.receives("order.confirmed", alice).await;
        let left = world.rows("webhook_deliveries", "event_key = 'order.paid' AND state = 'WAITING'").await;
        assert!(left > 0, "it came before the last of those that are replayed");
        leader.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_replay_opens_a_receiver_that_answered_410_and_says_so() {
    run(async {
        let receiver = HookReceiver::start().await;
        receiver.answers("410 Gone", "");
        let world = World::with_hook(&[Api, Relay, Consumer, Reconcile], &[SOON], &receiver).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("opened", 10, Some(1), LONG).await;
        let closed = "webhook = 'shop' AND disabled_at IS NOT NULL";
        let alice = world.ordered(&sale, "alice").await;
        eventually("it is closed", async || world.rows("webhook_subscriptions", closed).await == 1).await;
        let bob = world.ordered(&sale, "bob").await;
        assert_eq!(world.deliveries("WAITING").await, 2, "kept");
        receiver.answers("200 OK", "");
        let dead = world.cli(&["webhook", "replay", "--dead", "--webhook", "shop"]).exits(0);
        assert!(dead.out.contains("shop was closed because its receiver answered 410"), "{dead:?}");
        for id in [alice, bob] {
            receiver.receives("order.confirmed", id).await;
        }

        receiver.answers("410 Gone", "");
        let carol = world.ordered(&sale, "carol").await;
        eventually("it is closed again", async || world.rows("webhook_subscriptions", closed).await == 1).await;
        receiver.answers("200 OK", "");
        let of_carol =
            format!("SELECT CAST(delivery_id AS SIGNED) AS n FROM webhook_deliveries WHERE request_id = {carol}");
        let id = world.number(&of_carol).await;
        let answer = admin.post("/webhooks/replay", json!({ "delivery_ids": [id] })).await;
        assert_eq!((&answer.json["replayed"], &answer.json["opened"]), (&json!(1), &json!(["shop"])), "{answer:?}");
        receiver.receives("order.confirmed", carol).await;
        world.finish().await;
    });
}
