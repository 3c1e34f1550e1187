//! What becomes of an order is published to downstream systems, each change once or more, with a version that grows (L5).

use crate::support::buyers::orders::LONG;
use crate::support::outside::downstream::Downstream;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::json;
use std::collections::BTreeSet;

/// The versions of an order that were published, one for each different event: the same one may be published twice.
fn versions(downstream: &Downstream, id: RequestId) -> Vec<u64> {
    let of = downstream.events.iter().filter(|event| event["rid"] == id.to_string().as_str());
    let different: BTreeSet<(u64, String)> = of
        .map(|event| (event["version"].as_u64().unwrap(), event["status"].to_string() + &event["reason"].to_string()))
        .collect();
    different.into_iter().map(|(version, _)| version).collect()
}

#[test]
fn the_whole_life_of_an_order_is_published_in_versions() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer, Reconcile], &[]).await;
        let admin = world.admin_port();
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.paying_sale("life", 10, Some(1), LONG).await;
        let [alice, bob, carol] = world.three_lives(&admin, &sale).await;
        for (id, status) in [
            (alice, "CONFIRMED"),
            (alice, "PAID"),
            (alice, "REFUND_NEEDED ALREADY_PAID"),
            (alice, "REFUND_NEEDED CANCELLED"),
            (alice, "CANCELLED"),
            (bob, "EXPIRED"),
            (carol, "CANCELLED"),
        ] {
            downstream.receives(id, status, 1).await;
        }
        let confirmed = downstream.events.iter().find(|event| event["status"] == "CONFIRMED").unwrap();
        assert_eq!(
            (&confirmed["amount"], &confirmed["currency"], &confirmed["version"]),
            (&json!(100), &json!("CNY"), &json!(1))
        );
        let expired = downstream.events.iter().find(|event| event["status"] == "EXPIRED").unwrap();
        assert_eq!(
            (&expired["user"], &expired["amount"], &expired["version"]),
            (&json!("bob"), &json!(100), &json!(2))
        );
        assert_eq!(versions(&downstream, alice), [1, 2, 3, 4, 5], "each event has its own");
        eventually("forgotten", async || world.rows("order_events", "TRUE").await == 0).await;
        world.finish().await;
    });
}

#[test]
fn an_event_that_is_not_written_with_its_change_is_missed() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.paying_sale("missed", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        let rid = alice.to_string();
        let paid = ["order", "paid", &rid, "--payment-id", "p", "--amount", "100", "--currency", "CNY"];
        world.cli_with_faults("order_event_row=return", &paid).exits(0);
        world.cli(&["order", "cancel", &rid, "--reason", "r"]).exits(0);
        downstream.receives(alice, "CANCELLED", 1).await;
        downstream.receives(alice, "REFUND_NEEDED CANCELLED", 1).await;
        let version = world.number(&format!("SELECT version AS n FROM orders WHERE request_id = {alice}")).await;
        assert_eq!((versions(&downstream, alice), version), (vec![1, 3, 4], 4), "the second is missing");
        world.finish().await;
    });
}
