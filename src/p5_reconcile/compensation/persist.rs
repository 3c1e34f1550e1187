//! Persisting overdue requests from the ledger. A crash between the database and the marks leaves records that the next round
//! marks.

use super::void;
use crate::domain::ids::RequestId;
use crate::domain::message::OrderMessage;
use crate::domain::outcome::{Outcome, Verdict};
use crate::domain::states::{P5Reconcile, Phase, State};
use crate::faults::{crash_point, left_out};
use crate::orders::persist::traced;
use crate::p5_reconcile::audit::{SaleAudit, count_false_alarms};
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::store::mysql::codes::{PersistSource, Reporter};
use crate::telemetry::count;
use crate::telemetry::traces::{self, SpanResult};
use crate::trace_points::trace_point;
use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

/// Requests persisted together.
const GROUP: usize = 200;

/// Persists every overdue request of an audit, and closes numbers of requests that are decided under another one. Returns how many got
/// their outcome by it. A request that cannot be persisted does not keep the others from their outcome. Repeating is safe.
pub async fn compensate(context: &ReconcileContext, audit: &SaleAudit) -> Result<usize, ReconcileError> {
    compensate_and(context, audit, audit.is_balanced()).await
}

/// The same of a frozen sale, whose units are counted anew by its rebuild. Repeating is safe.
pub(in crate::p5_reconcile) async fn compensate_before_rebuild(
    context: &ReconcileContext,
    audit: &SaleAudit,
) -> Result<usize, ReconcileError> {
    compensate_and(context, audit, true).await
}

async fn compensate_and(
    context: &ReconcileContext,
    audit: &SaleAudit,
    offer_void: bool,
) -> Result<usize, ReconcileError> {
    let leaked: HashSet<RequestId> =
        audit.overdue.iter().filter(|open| !open.parked).map(|open| open.request_id).collect();
    let (mut repaired, mut false_alarms, mut trouble) = (0, 0, None);
    for group in audit.overdue.chunks(GROUP) {
        let items: Vec<OrderMessage> =
            group.iter().map(|open| open.record.order_message(open.request_id, &audit.sale_id, open.shard)).collect();
        for order in items.iter().filter(|order| leaked.contains(&order.purchase.request_id)) {
            trace_point!(Missing, order, {});
        }
        let begun = traces::now();
        let verdicts = context.rows.persister.persist_all(&items, PersistSource::Compensation).await;
        crash_point!(AfterCompensation);
        let mut outcomes: HashMap<u16, Vec<(RequestId, Outcome)>> = HashMap::new();
        for (accepted, verdict) in items.iter().zip(verdicts) {
            let request_id = accepted.purchase.request_id;
            let verdict = match verdict {
                // Another request has its number: Redis went back. The request gets an outcome all the same.
                Ok(Verdict::Conflict) if !left_out!(ReusedNumberFails) => {
                    traced::decide(std::slice::from_ref(accepted), "reused");
                    let reused = context.rows.persister.fail_reused(accepted, Reporter::Audit, "reconcile").await?;
                    let verdict = reused.unwrap_or(Verdict::Conflict);
                    traced::decided(accepted, "reused", &Ok(verdict));
                    verdict
                }
                Ok(verdict) => verdict,
                Err(error) => {
                    trouble = trouble.or(Some(error));
                    continue;
                }
            };
            if let Some(state) = report(request_id, verdict) {
                repaired += 1;
                trace(request_id, begun, state);
            }
            if matches!(verdict, Verdict::Already(_)) && leaked.contains(&request_id) {
                false_alarms += 1;
            }
            if let Some(outcome) = verdict.outcome() {
                outcomes.entry(accepted.shard).or_default().push((request_id, outcome));
            }
        }
        for (shard, outcomes) in outcomes {
            context.redis.ledger.mark_outcomes(&audit.sale_id, shard, &outcomes).await?;
        }
    }
    count_false_alarms(&audit.sale_id, false_alarms);
    repaired += void::close_void_numbers(context, audit, offer_void).await?;
    trouble.map_or(Ok(repaired), |error| Err(error.into()))
}

/// Sends the span of a compensation, if the order is traced.
fn trace(request_id: RequestId, begun: Option<SystemTime>, state: P5Reconcile) {
    let Some((begun, trace)) = begun.zip(traces::sampled(request_id)) else { return };
    let result =
        SpanResult { begun, state: Some(State::P5(state)), attempt: 1, failed: state == P5Reconcile::FailedFinal };
    trace.record(traces::leaf(Phase::P5Reconcile, begun), result);
}

/// Moves the leak through the transition table, counts and logs its new state. Returns the state, if this compensation decided it.
fn report(request_id: RequestId, verdict: Verdict) -> Option<P5Reconcile> {
    let state = match State::P5(P5Reconcile::Leak).after(verdict.event()) {
        Ok(state) => state,
        Err(violation) => {
            tracing::error!(phase = "p5_reconcile", %request_id, %violation, "not counted");
            return None;
        }
    };
    match (verdict, state) {
        (Verdict::Ordered, State::P5(state)) => {
            count(State::P5(state), 1);
            tracing::warn!(phase = "p5_reconcile", %request_id, "compensated: the missing order was written");
            Some(state)
        }
        (Verdict::Refused(reason), State::P5(state)) => {
            count(State::P5(state), 1);
            tracing::warn!(phase = "p5_reconcile", %request_id, reason = reason.code(), "failed for good, recorded");
            Some(state)
        }
        (Verdict::Conflict, _) => {
            tracing::error!(phase = "p5_reconcile", %request_id, "the request id has another outcome; a person has to decide");
            None
        }
        (Verdict::Already(_) | Verdict::Ordered | Verdict::Refused(_), _) => None,
    }
}
