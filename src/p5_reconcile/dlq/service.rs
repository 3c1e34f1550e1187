//! Replay and give up. Order of every action: the database decides (or has decided) → the ledger is marked → the failed request is
//! closed → the act is recorded → the entry is removed from its place.
//!
//! A crash anywhere leaves the entry for the next call, which finds the outcome decided and does the rest. So repeating an action
//! changes nothing more, and two operators at once cannot decide one request twice.

use super::action::{
    DlqAction, DlqActionResult, DlqGroup, DlqReport, DlqReportLine, DlqSelection, OnDlqProgress, grouped,
};
use super::decided_events;
use super::entry::{DlqError, DlqPlace, code_of};
use super::find::{DlqSweep, sweep};
use super::record;
use crate::domain::ids::RequestId;
use crate::domain::message::OrderMessage;
use crate::domain::operator::Actor;
use crate::domain::outcome::{FailReason, Outcome, Verdict};
use crate::faults::crash_point;
use crate::orders::persist::traced;
use crate::p5_reconcile::context::ReconcileContext;
use crate::store::mysql::DbError;
use crate::store::mysql::codes::PersistSource;
use crate::trace_points::trace_point;
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;

/// Requests a second: a replay must not slow down the live traffic.
const RATE_PER_S: NonZeroU32 = NonZeroU32::MIN.saturating_add(199);
/// Requests whose acts are recorded together; so the most that are decided and still parked after a crash.
const BATCH: usize = 100;
/// Errors in a row after which the rest is not tried.
const ERRORS_MAX: u32 = 3;

/// The actions of one operator on parked requests.
#[derive(Clone)]
pub struct DlqService {
    /// The servers to work on.
    pub context: ReconcileContext,
    /// The operator, for the failed requests and the record of acts.
    pub actor: Actor,
}

impl DlqService {
    /// Applies `action` to the selected entries, at most 200 requests a second.
    ///
    /// # Errors
    /// [`DlqError`] when a server does not answer before anything was decided, or the acts cannot be recorded; what was decided by
    /// then stays decided and its entries stay parked, so repeating is safe.
    pub async fn apply(
        &self,
        action: &DlqAction,
        selection: &DlqSelection,
        progress: OnDlqProgress<'_>,
    ) -> Result<DlqReport, DlqError> {
        let mut sweep = sweep(&self.context, selection.source).await?;
        let groups = grouped(std::mem::take(&mut sweep.entries), selection);
        let mut report = DlqReport { done: self.not_parked(&groups, selection).await?, more: sweep.more };
        let pace = RateLimiter::direct(Quota::per_second(RATE_PER_S));
        let (total, mut errors) = (groups.len(), 0);
        for batch in groups.chunks(BATCH) {
            let mut lines = Vec::with_capacity(batch.len());
            for group in batch {
                let line = if errors >= ERRORS_MAX {
                    group.line(DlqActionResult::NotTried, "a server does not answer, run it again".to_owned())
                } else {
                    while pace.check().is_err() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    self.one(action, group, selection.dry_run).await
                };
                if errors < ERRORS_MAX {
                    errors = if line.result == DlqActionResult::Failed { errors + 1 } else { 0 };
                }
                lines.push(line);
                progress(report.done.len() + lines.len(), total);
            }
            if !selection.dry_run {
                let written: Vec<_> = batch
                    .iter()
                    .zip(&lines)
                    .filter_map(|(group, line)| record::row(&self.actor, action, group, line))
                    .collect();
                self.context.rows.acts.record(&written).await?;
                self.remove(&mut sweep, batch, &lines).await?;
            }
            report.done.append(&mut lines);
        }
        sweep.put_back().await?;
        Ok(report)
    }

    /// Request ids and entry names of the selection that are not parked.
    async fn not_parked(&self, groups: &[DlqGroup], selection: &DlqSelection) -> Result<Vec<DlqReportLine>, DlqError> {
        let mut lines = Vec::new();
        let missing = |word: &&String| !groups.iter().flat_map(|group| &group.entries).any(|entry| entry.is(word));
        for word in selection.named.iter().filter(missing) {
            let request_id = RequestId::parse(word).ok();
            let decided = match request_id {
                Some(id) => self.context.rows.requests.outcome_of(id).await?,
                None => None,
            };
            let (result, detail) = match decided {
                Some(decided) => (DlqActionResult::NothingToDo, format!("decided: {}", code_of(decided.outcome))),
                None => {
                    (DlqActionResult::NotParked, format!("{word} is in no dead-letter queue; see seckill order show"))
                }
            };
            lines.push(DlqReportLine { request_id, entries: Vec::new(), result, detail });
        }
        Ok(lines)
    }

    async fn one(&self, action: &DlqAction, group: &DlqGroup, dry_run: bool) -> DlqReportLine {
        match self.decide(action, group, dry_run).await {
            Ok((deed, detail)) => group.line(deed, detail),
            // Every server answers: the others go on.
            Err(DlqError::Database(error @ DbError::UnknownSale(_))) => {
                group.line(DlqActionResult::UnknownSale, format!("{error}; bring the sale back, or give it up"))
            }
            Err(error) => group.line(DlqActionResult::Failed, error.to_string()),
        }
    }

    async fn decide(
        &self,
        action: &DlqAction,
        group: &DlqGroup,
        dry_run: bool,
    ) -> Result<(DlqActionResult, String), DlqError> {
        let Some(accepted) = group.accepted() else {
            return Ok(group.foreign(action, DlqActionResult::Unreadable, dry_run));
        };
        let decided = self.context.rows.requests.outcome_of(accepted.purchase.request_id).await?;
        let verdict = match (decided, action) {
            (Some(decided), _) if decided.payload_hash == accepted.payload_hash() => Verdict::Already(decided.outcome),
            (Some(_), _) => Verdict::Conflict,
            (None, DlqAction::Replay) if dry_run => {
                return Ok((DlqActionResult::WouldLand, "not decided yet".to_owned()));
            }
            (None, DlqAction::GiveUp(_)) if dry_run => {
                return Ok((DlqActionResult::WouldGiveUp, "not decided yet".to_owned()));
            }
            (None, DlqAction::Replay) => {
                traced::decide(std::slice::from_ref(accepted), "replay");
                let verdict = self.context.rows.persister.persist_one(accepted, PersistSource::Replay).await;
                traced::decided(accepted, "replay", &verdict);
                crash_point!(ReplayTaken);
                verdict?
            }
            (None, DlqAction::GiveUp(reason)) => {
                traced::decide(std::slice::from_ref(accepted), "give_up");
                let verdict = self.context.rows.persister.give_up(accepted, reason, &self.actor.label()).await;
                traced::decided(accepted, "give_up", &verdict);
                verdict?
            }
        };
        match verdict {
            Verdict::Conflict => return Ok(group.foreign(action, DlqActionResult::Conflict, dry_run)),
            Verdict::Already(outcome) if dry_run => {
                return Ok((DlqActionResult::WouldRemove, format!("decided: {}", code_of(outcome))));
            }
            Verdict::Already(outcome) => {
                decided_events::store(&self.context.rows, &[(accepted.clone(), outcome)]).await?;
            }
            Verdict::Ordered | Verdict::Refused(_) => {}
        }
        if let Some(outcome) = verdict.outcome() {
            self.mark_decided(accepted, outcome).await?;
        }
        Ok(match verdict {
            Verdict::Ordered => (DlqActionResult::Landed, "the order was written".to_owned()),
            Verdict::Already(outcome) => {
                (DlqActionResult::DecidedBefore, format!("decided before: {}", code_of(outcome)))
            }
            Verdict::Refused(FailReason::GivenUp) => (DlqActionResult::GivenUp, "recorded as given up".to_owned()),
            Verdict::Refused(reason) => (DlqActionResult::Refused, format!("refused for good: {}", reason.code())),
            Verdict::Conflict => (DlqActionResult::Conflict, String::new()),
        })
    }

    /// Marks in the ledger and in the failed requests what the database decided.
    async fn mark_decided(&self, accepted: &OrderMessage, outcome: Outcome) -> Result<(), DlqError> {
        let purchase = &accepted.purchase;
        let decided = [(purchase.request_id, outcome)];
        self.context.redis.ledger.mark_outcomes(&purchase.sale_id, accepted.shard, &decided).await?;
        self.context.rows.register.close_settled_one(purchase.request_id, &self.actor.label()).await?;
        Ok(())
    }

    /// Removes the entries of decided requests. Comes last.
    async fn remove(&self, sweep: &mut DlqSweep, batch: &[DlqGroup], lines: &[DlqReportLine]) -> Result<(), DlqError> {
        let decided = batch.iter().zip(lines).filter(|(_, line)| line.result.empties_its_place());
        for entry in decided.flat_map(|(group, _)| &group.entries) {
            trace_point!(Unparked { rid: entry.request_id.map(|id| id.to_string()) });
            match (&entry.place, entry.request_id) {
                (DlqPlace::Relay { shard, id }, _) => self.context.redis.relay_dlq.remove(*shard, id).await?,
                (DlqPlace::Mq(parked), _) => {
                    if let Some(reader) = &mut sweep.reader {
                        reader.remove(parked).await?;
                    }
                }
                (DlqPlace::FailedRequest, Some(id)) => {
                    // Closed by its outcome already; still open only when the row itself was dropped.
                    self.context.rows.register.resolve(id, &self.actor.label()).await?;
                }
                (DlqPlace::FailedRequest, None) => {}
            }
        }
        Ok(())
    }
}
