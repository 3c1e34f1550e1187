//! A full MQ DLQ behind a slow broker keeps no request from its order: P5 persists from the ledger and reads the queue in bounds.

use crate::support::links::link::Link;
use crate::support::world::fault_injection::port_of;
use crate::support::world::{World, eventually, run};
use seckill::config::ServerUrl;
use seckill::p5_reconcile::Window;
use seckill::p5_reconcile::dlq::{MqDlqContents, clean_mq_dlq};
use seckill::roles::Role::{Api, Reconcile};
use seckill::store::rabbit::{Topology, declare};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Requests that are parked.
const PARKED: u32 = 1_500;
/// How late each answer of the broker is.
const LATE_MS: u64 = 20;

#[test]
fn requests_are_persisted_long_before_a_full_mq_dlq_could_be_read_from_a_slow_broker() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("full", 2_000, Some(1)).await;
        declare(&world.servers.rabbit).await.unwrap();
        world.sell(&sale, u64::from(PARKED)).await;
        while world.outbox().await.0 > 0 {
            world.lose_the_outbox().await;
        }
        assert_eq!(world.park_all_in_mq(&sale).await, PARKED as usize);
        let url = world.settings.rabbitmq.url.expose();
        let link = Link::slow(port_of(url), LATE_MS).await;
        let slow = ServerUrl::new(link.url(url));
        let began = Instant::now();
        let reconcile = world.extra_roles(&[Reconcile], |settings| settings.rabbitmq.url = slow);
        eventually("all orders", async || world.orders(&sale).await == i64::from(PARKED)).await;
        let (took, one_reading) = (began.elapsed(), Duration::from_millis(LATE_MS) * PARKED);
        assert!(took < one_reading / 2, "{took:?}, the queue alone takes {one_reading:?} to read");
        // A message that was not read is reported as not read, not as missing.
        let finding =
            "code = 'P5-RC1' AND detail LIKE '%order and retry queues; % messages of the MQ DLQ were not read'";
        assert!(world.rows("audit_findings", finding).await > 0);
        reconcile.stop().await;
        // Every message was given back, and goes now that its request is decided.
        let (context, mut removed_count) = (world.reconcile_context(), 0);
        eventually("an empty MQ DLQ", async || {
            let tidied = clean_mq_dlq(&context, &mut HashSet::new(), &mut MqDlqContents::default()).await.unwrap();
            removed_count += tidied.removed_count;
            tidied.seen_count == 0 && removed_count > PARKED as usize / 2
        })
        .await;
        assert_eq!(world.waiting_in(&Topology::new(&world.servers.rabbit).dlq()).await, 0);
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.finish().await;
    });
}
