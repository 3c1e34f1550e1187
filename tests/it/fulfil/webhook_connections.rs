//! Connections to receivers of webhooks: kept from one delivery to the next, and no failed try when the receiver closes them.

use crate::support::outside::certificates::Certificates;
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, SOON, webhook};
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

const ORDERS: i64 = 5;

/// Delivers some events one after the other, the first try of each.
async fn delivers_each_at_once(receiver: &HookReceiver, tls_ca_file: &str) {
    let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
    let one = "webhook_delivery.in_flight_each_max=1";
    let mut world = World::with_config(&[Api, Relay, Consumer], &[SOON, one], &text).await;
    let sale = world.sale("kept", 10, Some(1)).await;
    for n in 0..ORDERS {
        world.ordered(&sale, &format!("user{n}")).await;
    }
    let ca = tls_ca_file.to_owned();
    let sender = world.extra_roles(&[Reconcile], |settings| settings.webhook_delivery.tls_ca_file = ca);
    eventually("all is delivered", async || world.deliveries("DELIVERED").await == ORDERS).await;
    assert_eq!(world.rows("webhook_deliveries", "problem IS NOT NULL OR attempts <> 1").await, 0);
    sender.stop().await;
    world.stop_roles().await;
}

#[test]
fn deliveries_to_one_receiver_use_one_connection() {
    run(async {
        let receiver = HookReceiver::start().await;
        delivers_each_at_once(&receiver, "").await;
        assert_eq!((receiver.connections(), receiver.calls().len()), (1, 5));
        let certificates = Certificates::new("hooks-kept");
        let receiver = HookReceiver::start_tls(&certificates).await;
        delivers_each_at_once(&receiver, &certificates.path("ca.pem")).await;
        assert_eq!((receiver.connections(), receiver.calls().len()), (1, 5), "over TLS");
    });
}

#[test]
fn a_receiver_that_closes_a_kept_connection_costs_no_failed_try() {
    run(async {
        let receiver = HookReceiver::start().await;
        receiver.ends_kept_connections();
        delivers_each_at_once(&receiver, "").await;
        assert_eq!((receiver.connections(), receiver.taken().len()), (5, 5));
        assert!(receiver.taken().values().all(|times| *times == 1));
    });
}
