//! What the negative controls of the consumer share: a world without one, and the audit when an intact one has done what it can.

use super::{World, eventually};
use crate::support::processes::killable::KillableProcess;
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::{SaleAudit, Window};
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;

/// A world whose orders wait at the broker, and a sale of 100 units.
pub async fn world(name: &str) -> (World, SaleId) {
    let world = World::with(&[Api, Relay], &[]).await;
    declare(&world.servers.rabbit).await.unwrap();
    let sale = world.sale(name, 100, Some(1)).await;
    (world, sale)
}

/// Lets an intact consumer do what it can, and returns the audit once no message is left. No process compensates.
pub async fn afterwards(world: &World, sale: &SaleId, broken: Option<KillableProcess>) -> SaleAudit {
    eventually("everything at the broker", async || world.outbox().await == (0, 0)).await;
    if let Some(mut broken) = broken {
        // In order, so that it sends its acks.
        assert_eq!(broken.program.terminate().await.0, Some(0), "{}", broken.program.stderr());
    }
    // Stopped in order, what it had in hand is landed or back in the queue: then another one lands it.
    eventually("no message left, in no hand either", async || {
        let intact = world.extra_roles(&[Consumer], |_| {});
        eventually("an empty queue", async || world.waiting_in("seckill.").await == 0).await;
        intact.stop().await;
        world.waiting_in("seckill.").await == 0
    })
    .await;
    world.audit(sale, Window::Now).await
}
