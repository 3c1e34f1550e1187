//! What tests of the audit do to a world, and how they read what it found.

use super::World;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::ledger::LedgerState;
use seckill::p5_reconcile::{FindingKind, SaleAudit};

/// Takes every entry out of the outbox behind everybody's back.
pub async fn lose_the_outbox(world: &World) {
    let outbox = world.servers.redis.keys.outbox(0);
    for entry in world.servers.redis.outbox.page(0, "-", 100).await.unwrap() {
        assert_eq!(world.redis(&["XDEL", &outbox, &entry.id]).await, 1);
    }
}

/// The kinds of its findings, each once.
pub fn kinds(audit: &SaleAudit) -> Vec<FindingKind> {
    let mut kinds: Vec<FindingKind> = audit.findings.iter().map(|finding| finding.kind).collect();
    kinds.dedup();
    kinds
}

/// What the ledger says of a request.
pub async fn ledger_state(world: &World, sale: &SaleId, id: RequestId) -> LedgerState {
    world.servers.redis.ledger.lookup(sale, 0, &[id]).await.unwrap()[0].clone().expect("a record").state
}
