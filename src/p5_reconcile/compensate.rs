//! Forward-only repair: landing what the ledger has and the database has not, through P4's own transactions.
//!
//! Safe at any moment, whatever is still on its way: the first to write `request_outcome` decides, the others learn of it.

use super::audit::{Auditor, Look, SaleAudit, SaleAuditError, Window};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::outcome::{Outcome, Verdict};
use crate::domain::request::Accepted;
use crate::domain::sale::Sale;
use crate::domain::states::{P5Reconcile, Phase, State};
use crate::faults::crash_point;
use crate::store::mysql::books::{Series, closing};
use crate::store::mysql::codes::{PersistSource, Reporter};
use crate::store::mysql::persist;
use crate::telemetry::count;
use crate::telemetry::traces::{self, Done, further};
use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

/// Requests landed in one go.
const GROUP: usize = 200;

impl Auditor {
    /// Tells the ledger the outcomes it has not been told (P4 died before marking). Returns how many changed.
    ///
    /// # Errors
    /// [`SaleAuditError`] when Redis is away; repeating is safe.
    pub async fn settle(&self, audit: &SaleAudit) -> Result<usize, SaleAuditError> {
        let mut changed = 0;
        for (shard, outcomes) in &audit.unmarked {
            changed += usize::try_from(self.redis.settle(&audit.sale_id, *shard, outcomes).await?).unwrap_or(0);
        }
        Ok(changed)
    }

    /// Forgets settled records that the audit found old enough, and a closed sale's keys once nothing is left in its ledger (E9).
    /// Their numbers have outcomes, as this very audit counted them. Returns how many records went.
    ///
    /// # Errors
    /// [`SaleAuditError`] when Redis is away; repeating is safe.
    pub async fn trim(&self, audit: &SaleAudit, retention_ms: i64, closed: bool) -> Result<i64, SaleAuditError> {
        let mut went = 0;
        for (shard, old) in audit.old.iter().filter(|(_, old)| !old.is_empty()) {
            let cutoff_ms = self.redis.clock_ms(*shard).await? - retention_ms;
            went += self.redis.trim(&audit.sale_id, *shard, cutoff_ms, old).await?;
            crash_point!(AfterTrim);
        }
        if closed && audit.consistent() {
            for shard in 0..self.shards {
                self.write_end(audit, shard).await?;
                if self.redis.archive(&audit.sale_id, shard).await? {
                    tracing::info!(phase = "p5_reconcile", sale = %audit.sale_id, shard, "the closed sale's keys were removed from redis");
                }
            }
        }
        Ok(went)
    }

    /// Forgets everything of a sale that is settled and older than `retention_ms`, at once; for whoever does not want to wait for the
    /// rounds. Returns how many records went.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server is away; repeating is safe.
    pub async fn trim_all(&self, sale: &Sale, retention_ms: i64, closed: bool) -> Result<i64, SaleAuditError> {
        let mut went = 0;
        loop {
            let mut look = Look { retention_ms: Some(retention_ms), ..Look::new(Window::Now, None) };
            let audit = self.audit_in_round(sale, &mut look).await?;
            match self.trim(&audit, retention_ms, closed).await? {
                0 => return Ok(went),
                more => went += more,
            }
        }
    }

    /// Writes down where a closed sale's numbers ended, before its keys go: a database that goes back later shows by it.
    async fn write_end(&self, audit: &SaleAudit, shard: u16) -> Result<(), SaleAuditError> {
        if let Some(counts) = self.redis.shard_count(&audit.sale_id, shard).await?
            && counts.meta.number > 0
        {
            let series = Series { epoch: counts.meta.epoch, shard };
            closing::end(&self.db, &audit.sale_id, series, counts.meta.number, counts.accepted).await?;
        }
        Ok(())
    }

    /// Lands every overdue request of an audit. Returns how many got their outcome by it. One request that cannot be landed
    /// does not keep the others from theirs.
    ///
    /// # Errors
    /// The first [`SaleAuditError`]; repeating is safe.
    pub async fn compensate(&self, audit: &SaleAudit) -> Result<usize, SaleAuditError> {
        let leaked: HashSet<RequestId> =
            audit.overdue.iter().filter(|open| !open.parked).map(|open| open.request_id).collect();
        let (mut repaired, mut false_alarms, mut trouble) = (0, 0, None);
        for group in audit.overdue.chunks(GROUP) {
            let items: Vec<Accepted> =
                group.iter().map(|open| open.record.accepted(open.request_id, &audit.sale_id, open.shard)).collect();
            let begun = traces::clock();
            let verdicts = persist::persist_all(&self.db, &items, PersistSource::Compensation).await;
            crash_point!(AfterCompensation);
            let mut outcomes: HashMap<u16, Vec<(RequestId, Outcome)>> = HashMap::new();
            for (accepted, verdict) in items.iter().zip(verdicts) {
                let id = accepted.purchase.request_id;
                let verdict = match verdict {
                    // Another request has its number: Redis went back. It gets an outcome all the same.
                    Ok(Verdict::Conflict) => {
                        let reused = persist::fail_reused(&self.db, accepted, Reporter::Audit, "reconcile").await?;
                        reused.unwrap_or(Verdict::Conflict)
                    }
                    Ok(verdict) => verdict,
                    Err(error) => {
                        trouble = trouble.or(Some(error));
                        continue;
                    }
                };
                if let Some(state) = told(id, verdict) {
                    repaired += 1;
                    trace(id, begun, state);
                }
                if matches!(verdict, Verdict::Already(_)) && leaked.contains(&id) {
                    false_alarms += 1;
                }
                if let Some(outcome) = verdict.outcome() {
                    outcomes.entry(accepted.shard).or_default().push((id, outcome));
                }
            }
            for (shard, outcomes) in outcomes {
                self.redis.settle(&audit.sale_id, shard, &outcomes).await?;
            }
        }
        count_false_alarms(&audit.sale_id, false_alarms);
        trouble.map_or(Ok(repaired), |error| Err(error.into()))
    }
}

/// Tells a compensation as a span, if the order is traced.
fn trace(id: RequestId, begun: Option<SystemTime>, state: P5Reconcile) {
    let Some((begun, told)) = begun.zip(traces::of(id)) else { return };
    let done = Done { begun, state: Some(State::P5(state)), attempt: 1, failed: state == P5Reconcile::FailedFinal };
    told.tell(further(Phase::P5Reconcile, begun), done);
}

/// Moves the leak by the transition table, counts and logs the new state; the state, if this compensation decided it.
fn told(id: RequestId, verdict: Verdict) -> Option<P5Reconcile> {
    let state = match State::P5(P5Reconcile::Leak).after(verdict.event()) {
        Ok(state) => state,
        Err(violation) => {
            tracing::error!(phase = "p5_reconcile", request_id = %id, %violation, "not counted");
            return None;
        }
    };
    match (verdict, state) {
        (Verdict::Ordered, State::P5(state)) => {
            count(State::P5(state), 1);
            tracing::warn!(phase = "p5_reconcile", request_id = %id, "compensated: the missing order was written");
            Some(state)
        }
        (Verdict::Refused(reason), State::P5(state)) => {
            count(State::P5(state), 1);
            tracing::warn!(phase = "p5_reconcile", request_id = %id, reason = reason.code(), "failed for good, recorded");
            Some(state)
        }
        (Verdict::Conflict, _) => {
            tracing::error!(phase = "p5_reconcile", request_id = %id, "the request id has another outcome; a person has to look");
            None
        }
        (Verdict::Already(_) | Verdict::Ordered | Verdict::Refused(_), _) => None,
    }
}

/// Findings that were nothing: shown by a second look, or by a landing that found the outcome decided (window 87).
pub(super) fn count_false_alarms(sale: &SaleId, false_alarms: u64) {
    metrics::counter!("seckill_p5_reconcile_false_alarms_total", "sale" => sale.to_string()).increment(false_alarms);
}
