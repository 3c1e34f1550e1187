//! The audit of one sale: everything Redis accepted against everything the database decided. Reads only.
//!
//! The order of the reads keeps it correct under traffic: first the database's highest numbers, then one snapshot of each shard's
//! counters, then the ledger up to that snapshot's number, then the DLQs, and last the database, in one snapshot. A request can
//! only move towards the database, so a request that was undecided in the first reads and is decided in the last one counts as
//! decided. The equations of the result are in docs/architecture.md, "The books".
//!
//! A round of P5 reads the MQ DLQ once, before its first audit. A request that reached the queue after that is reported as a leak
//! if it is overdue: it was overdue when the queue was read, and in no DLQ. The confirming audit does not read the queue again; a
//! request that has left it by then is decided or a failed request.
//!
//! Order of the files: `run` (the audit under way) ← `shards` (Redis' side, with `ledger_scan`) ← `verdict` (the database's side,
//! with `outcome_counts`, `numbers`, `totals`, `grants`, `transit`, `parked`, `locate`, `void_numbers`, `purchases`). `report` and `gap_suspects` read results.

mod finding;
mod gap_suspects;
mod grants;
mod ledger_scan;
mod locate;
mod numbers;
mod options;
mod outcome_counts;
mod parked;
mod purchases;
mod report;
mod result;
mod run;
mod shards;
mod stage;
mod totals;
mod transit;
mod verdict;
mod void_numbers;

pub use finding::FindingKind;
pub(super) use gap_suspects::record_suspects;
pub(crate) use gap_suspects::{Suspect, gap_suspects};
pub use options::Window;
pub(super) use options::{AuditMemory, AuditOptions};
pub(super) use report::{AuditReporter, count_false_alarms, show_figures};
pub use result::SaleAudit;
pub use stage::AuditStage;

use super::context::{ReconcileContext, ReconcileError};
use crate::domain::sale::Sale;
use crate::p5_reconcile::rows::books;
use run::AuditRun;

/// Tries of an audit that met a trimming.
const TRIES: u32 = 5;

/// Audits one sale; reads everything.
pub async fn audit_sale(context: &ReconcileContext, sale: &Sale, window: Window) -> Result<SaleAudit, ReconcileError> {
    audit_with(context, sale, AuditOptions { window, mq_dlq: None, retention_ms: None }, &mut AuditMemory::default())
        .await
}

/// Audits a sale with these options and this memory, and updates the memory.
pub(super) async fn audit_with(
    context: &ReconcileContext,
    sale: &Sale,
    options: AuditOptions<'_>,
    memory: &mut AuditMemory,
) -> Result<SaleAudit, ReconcileError> {
    context.check_shards(&sale.sale_id).await?;
    for _ in 1..TRIES {
        match audit_once(context, sale, options, memory).await {
            Err(ReconcileError::Moved) => {
                context.stage.send_replace(AuditStage::Again);
                memory.forget();
            }
            done => return done,
        }
    }
    audit_once(context, sale, options, memory).await
}

/// Audits a sale, and once more when something is wrong. Returns the second audit, and how many findings of the first one it
/// does not confirm: false alarms (window 87).
pub async fn audit_sale_confirmed(
    context: &ReconcileContext,
    sale: &Sale,
    window: Window,
) -> Result<(SaleAudit, u64), ReconcileError> {
    let options = AuditOptions { window, mq_dlq: None, retention_ms: None };
    audit_confirmed_with(context, sale, options, &mut AuditMemory::default()).await
}

/// The same with these options and this memory. The confirming audit reads everything; there is none when the memory expects all
/// that was found.
pub(super) async fn audit_confirmed_with(
    context: &ReconcileContext,
    sale: &Sale,
    options: AuditOptions<'_>,
    memory: &mut AuditMemory,
) -> Result<(SaleAudit, u64), ReconcileError> {
    // An equation that does not hold is counted anew each time: what is remembered would repeat it, or hide it.
    if memory.expected.iter().any(|key| key.is_of(FindingKind::Unbalanced)) {
        memory.outcomes.count_all_next();
    }
    let first = audit_with(context, sale, options, memory).await?;
    if first.findings.iter().all(|finding| memory.expected.contains(&finding.key())) {
        return Ok((first, 0));
    }
    memory.forget();
    let second = audit_with(context, sale, options, memory).await?;
    let false_alarms = first.false_alarms(&second);
    Ok((second, false_alarms))
}

async fn audit_once(
    context: &ReconcileContext,
    sale: &Sale,
    options: AuditOptions<'_>,
    memory: &mut AuditMemory,
) -> Result<SaleAudit, ReconcileError> {
    // First of all: a number that the database has and Redis lacks was in the database before Redis was read.
    let known = books::known(&context.db, &sale.sale_id).await?;
    let mut run = AuditRun::new(context, sale, options, &known);
    grants::read_marks(&mut run).await?;
    for shard in 0..context.shards {
        context.stage.send_replace(AuditStage::Ledger { shard });
        shards::read(&mut run, &mut memory.scans, shard).await?;
    }
    verdict::decide(run, memory).await
}
