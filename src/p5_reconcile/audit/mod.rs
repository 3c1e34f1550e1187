//! The audit of one sale: everything Redis accepted against everything the database decided. It reads, then it judges;
//! it changes nothing.
//!
//! Three values are read, [`DatabaseSide`](database_side), [`RedisSide`](redis_side) and [`Elsewhere`](elsewhere). The
//! order of the reads keeps the audit right while buyers buy, because a request can only move towards the database:
//!
//! 1. **The database's highest numbers, and its marks of grants, before Redis.** A number that the database has and
//!    Redis lacks was in the database before Redis was read, and so was the mark of a grant that Redis does not have.
//! 2. **Redis, shard by shard:** one snapshot of the counters, then Redis' clock, then the ledger up to that snapshot's
//!    number. What is accepted meanwhile has a higher number. Trimmed counters are compared after the ledger: a record
//!    that was trimmed during the scan is not lost. A closed sale may leave Redis between two of these reads, in one
//!    step; then everything is read again.
//! 3. **The dead-letter queues and the open failed requests.** A round of P5 reads the MQ DLQ once, before its first
//!    audit. A request that reached the queue after that is reported as a leak if it is overdue: it was overdue when
//!    the queue was read, and in no DLQ. The confirming audit does not read the queue again; a request that has left it
//!    by then is decided or a failed request.
//! 4. **The rest of the database last, in one snapshot.** A request that was undecided in the first reads and is
//!    decided in this one counts as decided. What is summed from where it was summed before has row numbers as borders,
//!    found with one read of the clock, in the same snapshot (`books::journal`): two reads of a clock leave out the
//!    rows that become old between them. Numbers that land at this moment are counted in the snapshot and not
//!    remembered (`outcome_counts`).
//! 5. **What the judge asks for.** Settled records of the ledger whose numbers the snapshot lacks; outcomes by id,
//!    later than the snapshot, so that a request that was on its way is no false alarm; grants of Redis and then of the
//!    database, where each is written first; the buckets before and after the transfers between them, which are believed when
//!    nothing happened meanwhile.
//!
//! Then [`judge`] decides without reading anything. The equations of the result are in docs/architecture.md, "The
//! books".
//!
//! Order of the files: `finding`, `result` and `window` (values) ← the three sides ← `judge` ← `memory`,
//! `options` ← `reading`. `report` and `gap_suspects` read results. `unknown` finds the sales that no audit would read.

mod database_side;
mod elsewhere;
mod finding;
mod gap_suspects;
mod judge;
mod memory;
mod options;
mod reading;
mod redis_side;
mod report;
mod result;
mod unknown;
mod window;

pub use finding::FindingKind;
pub(super) use gap_suspects::record_suspects;
pub(crate) use gap_suspects::{Suspect, gap_suspects};
pub(super) use memory::AuditMemory;
pub use options::AuditOptions;
pub(super) use report::{AuditReporter, count_false_alarms, show_figures};
pub use result::SaleAudit;
pub use unknown::unknown_sales;
pub use window::Window;

use super::audit_stage::AuditStage;
use super::context::{ReconcileContext, ReconcileError};
use crate::domain::sale::Sale;
use crate::trace_points::trace_point;
use judge::{AuditTerms, Judgement, judge};
use reading::AuditReader;

/// Tries of an audit that met a trimming.
const TRIES: u32 = 5;
/// Rounds of questions: each depends on the answers to the one before.
const ROUNDS: u32 = 3;

/// Audits one sale. By a window alone the audit reads everything, once; see [`AuditOptions`].
pub async fn audit_sale<'a>(
    context: &ReconcileContext,
    sale: &Sale,
    options: impl Into<AuditOptions<'a>>,
) -> Result<SaleAudit, ReconcileError> {
    let AuditOptions { window, mq_dlq, retention_ms, confirmed, memory } = options.into();
    let reader = AuditReader { context, sale, window, mq_dlq, retention_ms };
    let mut own = AuditMemory::default();
    let memory = memory.unwrap_or(&mut own);
    if !confirmed {
        return audit(reader, memory).await;
    }
    memory.doubt_sums();
    let first = audit(reader, memory).await?;
    if memory.expects(&first) {
        return Ok(first);
    }
    memory.forget();
    let second = audit(reader, memory).await?;
    Ok(SaleAudit { false_alarms: first.not_confirmed_by(&second), ..second })
}

/// Audits until nothing moved meanwhile.
async fn audit(reader: AuditReader<'_>, memory: &mut AuditMemory) -> Result<SaleAudit, ReconcileError> {
    reader.context.check_shards(&reader.sale.sale_id).await?;
    for _ in 1..TRIES {
        match audit_once(reader, memory).await {
            Err(ReconcileError::Moved) => {
                reader.context.stage.send_replace(AuditStage::Again);
                memory.forget();
            }
            done => return done,
        }
    }
    audit_once(reader, memory).await
}

async fn audit_once(reader: AuditReader<'_>, memory: &mut AuditMemory) -> Result<SaleAudit, ReconcileError> {
    let terms = AuditTerms { sale: reader.sale, window: reader.window, findings_max: reader.context.findings_max };
    let sale = reader.sale.sale_id.as_str();
    trace_point!(AuditBegun { sale: sale });
    let mut sides = reader.sides(memory).await?;
    for _ in 0..=ROUNDS {
        match judge(&terms, &sides.redis, &sides.database, &sides.elsewhere) {
            Judgement::Asks(questions) => {
                for question in questions {
                    reader.answer(&mut sides, question).await?;
                }
            }
            // What is asked behind the snapshot may have met the first rows that are gone.
            Judgement::Decided(judged) if !judged.audit.consistent() && reader.began_to_go(&sides).await? => {
                return Err(ReconcileError::Moved);
            }
            Judgement::Decided(judged) => {
                memory.learn(&judged, &sides.database);
                let (overdue, consistent) = (judged.audit.overdue.len(), judged.audit.consistent());
                trace_point!(Audited { sale: sale, overdue: overdue, consistent: consistent });
                return Ok(judged.audit);
            }
            Judgement::ReadAgain => return Err(ReconcileError::Moved),
        }
    }
    Err(ReconcileError::Moved)
}
