//! Replay and give up. Order of every act: the database decides (or has decided) → the ledger is told → the register row is
//! closed → the act is written down → the entry is removed from its place.
//!
//! A crash anywhere leaves the entry for the next call, which finds the outcome decided and does the rest. So doing the same
//! three times changes nothing more, and two operators at once cannot decide one request twice.

use super::find::{Sweep, sweep};
use super::plan::{Act, Deed, Done, Group, OnProgress, Report, Selection, grouped};
use super::{Desk, DlqError, Place, code_of};
use crate::domain::ids::RequestId;
use crate::domain::outcome::{FailReason, Outcome, Verdict};
use crate::domain::request::Accepted;
use crate::faults::crash_point;
use crate::store::mysql::codes::PersistSource;
use crate::store::mysql::{DbError, acts, failed_requests, outcomes, persist};
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;

/// Requests a second: a replay must not push the live traffic aside.
const RATE_PER_S: NonZeroU32 = NonZeroU32::MIN.saturating_add(199);
/// Requests whose acts are written down together, and so the most whose entries are still there after a crash although they are decided.
const BATCH: usize = 100;
/// Errors in a row after which a server is taken for gone.
const ERRORS_MAX: u32 = 3;

impl Desk {
    /// Does `act` to the selected entries, at most 200 requests a second.
    ///
    /// # Errors
    /// [`DlqError`] when a server is away before anything was decided, or the acts cannot be written down; what was decided
    /// by then stays decided and its entries stay where they are, so repeating is safe.
    pub async fn act(&self, act: &Act, which: &Selection, progress: OnProgress<'_>) -> Result<Report, DlqError> {
        let mut sweep = sweep(&self.auditor, which.source).await?;
        let groups = grouped(std::mem::take(&mut sweep.entries), which);
        let mut report = Report { done: self.not_parked(&groups, which).await?, more: sweep.more };
        let pace = RateLimiter::direct(Quota::per_second(RATE_PER_S));
        let (total, mut errors) = (groups.len(), 0);
        for batch in groups.chunks(BATCH) {
            let mut lines = Vec::with_capacity(batch.len());
            for group in batch {
                let line = if errors >= ERRORS_MAX {
                    group.line(Deed::NotTried, "a server is away, run it again".to_owned())
                } else {
                    while pace.check().is_err() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    self.one(act, group, which.dry_run).await
                };
                if errors < ERRORS_MAX {
                    errors = if line.result == Deed::Failed { errors + 1 } else { 0 };
                }
                lines.push(line);
                progress(report.done.len() + lines.len(), total);
            }
            if !which.dry_run {
                let written: Vec<_> =
                    batch.iter().zip(&lines).filter_map(|(group, line)| self.row(act, group, line)).collect();
                acts::record(&self.auditor.db, &written).await?;
                self.remove(&mut sweep, batch, &lines).await?;
            }
            report.done.append(&mut lines);
        }
        sweep.put_back().await?;
        Ok(report)
    }

    /// What was asked for by request id and lies nowhere.
    async fn not_parked(&self, groups: &[Group], which: &Selection) -> Result<Vec<Done>, DlqError> {
        let mut lines = Vec::new();
        let missing = |word: &&String| !groups.iter().flat_map(|group| &group.entries).any(|entry| entry.is(word));
        for word in which.named.iter().filter(missing) {
            let request_id = RequestId::parse(word).ok();
            let decided = match request_id {
                Some(id) => outcomes::outcome_of(&self.auditor.db, id).await?,
                None => None,
            };
            let (result, detail) = match decided {
                Some(decided) => (Deed::NothingToDo, format!("decided: {}", code_of(decided.outcome))),
                None => (Deed::NotParked, format!("{word} is in no dead-letter queue; see seckill order show")),
            };
            lines.push(Done { request_id, entries: Vec::new(), result, detail });
        }
        Ok(lines)
    }

    async fn one(&self, act: &Act, group: &Group, dry_run: bool) -> Done {
        match self.decide(act, group, dry_run).await {
            Ok((deed, detail)) => group.line(deed, detail),
            // No server is away: the others go on.
            Err(DlqError::Database(error @ DbError::UnknownSale(_))) => {
                group.line(Deed::UnknownSale, format!("{error}; bring the sale back, or give it up"))
            }
            Err(error) => group.line(Deed::Failed, error.to_string()),
        }
    }

    async fn decide(&self, act: &Act, group: &Group, dry_run: bool) -> Result<(Deed, String), DlqError> {
        let db = &self.auditor.db;
        let Some(accepted) = group.accepted() else { return Ok(group.foreign(act, Deed::Unreadable, dry_run)) };
        let decided = outcomes::outcome_of(db, accepted.purchase.request_id).await?;
        let verdict = match (decided, act) {
            (Some(decided), _) if decided.payload_hash == accepted.payload_hash() => Verdict::Already(decided.outcome),
            (Some(_), _) => Verdict::Conflict,
            (None, Act::Replay) if dry_run => return Ok((Deed::WouldLand, "not decided yet".to_owned())),
            (None, Act::GiveUp(_)) if dry_run => return Ok((Deed::WouldGiveUp, "not decided yet".to_owned())),
            (None, Act::Replay) => {
                let verdict = persist::persist_one(db, accepted, PersistSource::Replay).await?;
                crash_point!(ReplayTaken);
                verdict
            }
            (None, Act::GiveUp(reason)) => failed_requests::give_up(db, accepted, reason, &self.actor.label()).await?,
        };
        match verdict {
            Verdict::Conflict => return Ok(group.foreign(act, Deed::Conflict, dry_run)),
            Verdict::Already(outcome) if dry_run => {
                return Ok((Deed::WouldRemove, format!("decided: {}", code_of(outcome))));
            }
            Verdict::Ordered | Verdict::Already(_) | Verdict::Refused(_) => {}
        }
        if let Some(outcome) = verdict.outcome() {
            self.tell(accepted, outcome).await?;
        }
        Ok(match verdict {
            Verdict::Ordered => (Deed::Landed, "the order was written".to_owned()),
            Verdict::Already(outcome) => (Deed::DecidedBefore, format!("decided before: {}", code_of(outcome))),
            Verdict::Refused(FailReason::GivenUp) => (Deed::GivenUp, "recorded as given up".to_owned()),
            Verdict::Refused(reason) => (Deed::Refused, format!("refused for good: {}", reason.code())),
            Verdict::Conflict => (Deed::Conflict, String::new()),
        })
    }

    /// Tells the ledger and the register what the database decided.
    async fn tell(&self, accepted: &Accepted, outcome: Outcome) -> Result<(), DlqError> {
        let purchase = &accepted.purchase;
        let told = [(purchase.request_id, outcome)];
        self.auditor.redis.settle(&purchase.sale_id, accepted.shard, &told).await?;
        failed_requests::close_settled_one(&self.auditor.db, purchase.request_id, &self.actor.label()).await?;
        Ok(())
    }

    /// Empties the places of what is decided. Comes last.
    async fn remove(&self, sweep: &mut Sweep, batch: &[Group], lines: &[Done]) -> Result<(), DlqError> {
        let decided = batch.iter().zip(lines).filter(|(_, line)| line.result.empties_its_place());
        for entry in decided.flat_map(|(group, _)| &group.entries) {
            match (&entry.place, entry.request_id) {
                (Place::Relay { shard, id }, _) => self.auditor.redis.parked_remove(*shard, id).await?,
                (Place::Mq(parked), _) => {
                    if let Some(reader) = &mut sweep.reader {
                        reader.remove(parked).await?;
                    }
                }
                (Place::Register, Some(id)) => {
                    // Closed by its outcome already; open still only when the row itself was dropped.
                    failed_requests::resolve(&self.auditor.db, id, &self.actor.label()).await?;
                }
                (Place::Register, None) => {}
            }
        }
        Ok(())
    }
}
