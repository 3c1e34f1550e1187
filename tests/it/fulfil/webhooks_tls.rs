//! Webhooks over TLS: only to a receiver whose certificate a trusted CA signed, for its name.

use crate::support::outside::certificates::Certificates;
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, SOON, webhook};
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn an_encrypted_receiver_gets_events_when_its_ca_is_named_and_none_before() {
    run(async {
        let certificates = Certificates::new("hooks-tls");
        let receiver = HookReceiver::start_tls(&certificates).await;
        let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
        let mut world = World::with_config(&[Api, Relay, Consumer], &[SOON], &text).await;
        let sale = world.sale("tls", 10, Some(1)).await;
        let alice = world.ordered(&sale, "alice").await;
        let trusting = world.extra_roles(&[Reconcile], |_| {});
        let untrusted = "state = 'WAITING' AND problem LIKE '%not signed by a CA of webhook_delivery.tls_ca_file%'";
        eventually("it is not trusted", async || world.rows("webhook_deliveries", untrusted).await == 1).await;
        trusting.stop().await;
        assert!(receiver.calls().is_empty());
        let ca = certificates.path("ca.pem");
        let trusting = world.extra_roles(&[Reconcile], |settings| settings.webhook_delivery.tls_ca_file = ca);
        receiver.receives("order.confirmed", alice).await;
        assert!(receiver.calls().iter().all(|call| call.is_signed_by(SECRET)));
        trusting.stop().await;
        world.stop_roles().await;
    });
}
