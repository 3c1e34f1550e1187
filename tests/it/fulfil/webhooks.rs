//! Webhooks: every event of an order's life arrives, signed, with the data of the event on the exchange (L5).

use crate::support::basics::asyncapi;
use crate::support::basics::time::pause;
use crate::support::buyers::orders::LONG;
use crate::support::outside::downstream::Downstream;
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, NEXT_SECRET, SECRET, SOON, webhook};
use crate::support::world::{World, eventually, run};
use chrono::DateTime;
use seckill::domain::ids::RequestId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::runtime::now_ms;
use serde_json::json;

const ALL: [seckill::roles::Role; 4] = [Api, Relay, Consumer, Reconcile];

#[test]
fn every_event_of_an_orders_life_arrives_signed_and_as_on_the_exchange() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&ALL, &[], &receiver).await;
        let admin = world.admin_port();
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.paying_sale("published", 3, Some(1), LONG).await;
        let [alice, bob, carol] = world.three_lives(&admin, &sale).await;
        receiver.receives("order.expired", bob).await;
        let units = &world.servers.redis.stock;
        eventually("all units are back", async || units.units(&sale, 0).await.unwrap() == Some(3)).await;
        // Redis says yes, the database has no unit any more.
        world.sql("UPDATE sales SET stock = 0, granted = 0").await;
        // Until the api has forgotten that it was sold out.
        let dave = loop {
            let answer = world.buy(&sale, "dave", 1, None).await;
            if answer.status == 202 {
                break RequestId::parse(&answer.text("request_id")).unwrap();
            }
            assert_eq!(answer.status, 410, "{answer:?}");
            pause().await;
        };
        for (event, of) in [
            ("order.confirmed", alice),
            ("order.confirmed", bob),
            ("order.confirmed", carol),
            ("order.paid", alice),
            ("order.refund_needed", alice),
            ("order.cancelled", alice),
            ("order.cancelled", carol),
            ("order.failed", dave),
        ] {
            receiver.receives(event, of).await;
        }
        eventually("all is delivered", async || world.deliveries("WAITING").await == 0).await;
        assert_eq!(world.deliveries("DELIVERED").await, 10, "one for each change");
        for status in ["CONFIRMED", "PAID", "REFUND_NEEDED ALREADY_PAID", "REFUND_NEEDED CANCELLED", "CANCELLED"] {
            downstream.receives(alice, status, 1).await;
        }
        downstream.receives(bob, "EXPIRED", 1).await;
        downstream.receives(carol, "CANCELLED", 1).await;
        downstream.receives(dave, "FAILED SOLD_OUT", 1).await;
        for call in receiver.calls() {
            assert_eq!(call.line, "POST /hooks/orders?shop=7 HTTP/1.1");
            assert_eq!(call.headers["content-type"], "application/json");
            assert!(call.is_signed_by(SECRET) && !call.is_signed_by(NEXT_SECRET), "{call:?}");
            assert!(!call.id().contains('.'));
            let sent_s: i64 = call.headers["webhook-timestamp"].parse().unwrap();
            assert!((now_ms() / 1000 - sent_s).abs() < 300, "{sent_s}");
            let body = call.json();
            asyncapi::assert_call(&body);
            let happened = DateTime::parse_from_rfc3339(body["timestamp"].as_str().unwrap()).unwrap();
            assert!((now_ms() - happened.timestamp_millis()).abs() < 300_000, "{happened}");
            assert!(downstream.events.contains(&body["data"]), "{body}");
        }
        assert_eq!(receiver.taken().len(), 10, "each under an id of its own");
        // The unit that was taken away is not a loss.
        world.stop().await;
    });
}

#[test]
fn a_webhook_gets_the_events_it_wants_and_without_one_there_are_no_rows() {
    run(async {
        let (some, all) = (HookReceiver::start().await, HookReceiver::start().await);
        let text = [
            webhook("some", &some.url(), &[SECRET], &["order.cancelled"]),
            webhook("all", &all.url(), &[NEXT_SECRET], &ALL_EVENTS),
        ];
        let world = World::with_config(&ALL, &[SOON], &text.concat()).await;
        let sale = world.paying_sale("wanted", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        world.cancel_mine("alice", alice).await;
        all.receives("order.confirmed", alice).await;
        all.receives("order.cancelled", alice).await;
        some.receives("order.cancelled", alice).await;
        assert_eq!((some.events().len(), all.events().len()), (1, 2));
        assert!(some.calls().iter().all(|call| call.is_signed_by(SECRET)));
        assert!(all.calls().iter().all(|call| call.is_signed_by(NEXT_SECRET)));
        world.finish().await;

        let world = World::with(&ALL, &[]).await;
        let sale = world.paying_sale("none", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        world.cancel_mine("alice", alice).await;
        assert_eq!(world.rows("webhook_deliveries", "TRUE").await, 0);
        world.finish().await;
    });
}

#[test]
fn while_a_secret_is_changed_every_message_has_the_signatures_of_both() {
    run(async {
        let receiver = HookReceiver::start().await;
        let text = webhook("shop", &receiver.url(), &[NEXT_SECRET, SECRET], &ALL_EVENTS);
        let world = World::with_config(&ALL, &[SOON], &text).await;
        let sale = world.paying_sale("rotates", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        receiver.receives("order.confirmed", alice).await;
        for call in receiver.calls() {
            assert!(call.is_signed_by(SECRET) && call.is_signed_by(NEXT_SECRET), "{call:?}");
        }
        world.finish().await;
    });
}

#[test]
fn rows_of_a_webhook_that_is_not_configured_any_more_are_kept_reported_and_not_sent() {
    run(async {
        let (old, new) = (HookReceiver::start().await, HookReceiver::start().await);
        let text = webhook("old", &old.url(), &[SECRET], &ALL_EVENTS);
        // No process sends while it is configured.
        let mut world = World::with_config(&[Api, Relay, Consumer], &[SOON], &text).await;
        let sale = world.paying_sale("removed", 10, Some(1), LONG).await;
        world.ordered(&sale, "alice").await;
        assert_eq!(world.deliveries("WAITING").await, 1);
        world.stop_roles().await;
        let text = webhook("new", &new.url(), &[SECRET], &ALL_EVENTS);
        std::fs::write(world.config_file().unwrap(), text).unwrap();
        let reconcile = world.process("reconcile", "", &[SOON]);
        reconcile.until_metric("seckill_p6_webhook_unconfigured_count", |rows| rows == 1.0).await;
        let overview = world.cli(&["webhook", "list", "--json"]).exits(0).json();
        let of = |name: &str| overview["webhooks"].as_array().unwrap().iter().find(|of| of["name"] == name).cloned();
        let (removed, kept) = (of("old").unwrap(), of("new").unwrap());
        assert_eq!((&removed["configured"], &removed["waiting"]), (&json!(false), &json!(1)));
        assert_eq!((&kept["configured"], &kept["waiting"]), (&json!(true), &json!(0)));
        assert!(reconcile.program.stderr().contains("not configured are kept, not sent"));
        assert_eq!((world.deliveries("WAITING").await, old.calls().len()), (1, 0));
        world.finish().await;
    });
}
