//! Keeping the MQ DLQ small: messages whose request has its outcome are removed, the others are noted in the register.
//!
//! Input: messages of the MQ DLQ, held unseen by others while this works. Output: an ack for each message whose outcome was
//! read from the database, with the same fingerprint; an open row for each request that has none. A person keeps what is
//! not a message of ours, and what contradicts the recorded outcome. A message of a later version is known by the request id it
//! came with, so that one which met only older consumers does not stay for ever (window 24).
//!
//! A crash at any line gives every message that was not acknowledged back to the queue, in its place; the outcome was there
//! before the ack, so nothing depends on the message any more.

use super::audit::Auditor;
use super::dlq::{DlqError, reason_of};
use super::mq_reading::{MqSeen, Reading};
use crate::domain::ids::RequestId;
use crate::domain::message::{self, MessageError};
use crate::domain::request::Accepted;
use crate::store::mysql::codes::Reporter;
use crate::store::mysql::failed_requests::{self, OpenFailure};
use crate::store::mysql::outcomes;
use crate::store::rabbit::{DlqReader, Parked};
use std::collections::HashSet;

/// Messages decided about with one question to the database.
const PAGE: usize = 500;
/// Messages read in one round, if there is time for them; the rest waits for the next. They are held in memory meanwhile.
const SEEN_MAX: usize = 10_000;
/// Messages removed in one round, so that a flood of them leaves the broker room for the live traffic.
const REMOVED_MAX: usize = 2_000;
/// Rows written in one round, each a commit of its own, so that a flood of messages leaves time for the audit and for a stop.
const NOTED_MAX: usize = 200;
/// Bytes of a foreign message that the register keeps; its column holds 65,535.
const PAYLOAD_MAX: usize = 60_000;

/// What one round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tidied {
    /// Messages read.
    pub seen_count: usize,
    /// Messages removed because their request has its outcome.
    pub removed_count: usize,
    /// Requests newly noted in the register as open.
    pub noted_count: usize,
    /// Messages for a person: unreadable, or in conflict with the recorded outcome.
    pub foreign_count: usize,
    /// Messages that were not reached.
    pub unseen_count: u64,
}

impl Auditor {
    /// One round over the MQ DLQ. `noted` remembers which requests have a row, to save asking again; `seen` is for the audits
    /// of the same round, and right whatever becomes of this.
    ///
    /// # Errors
    /// [`DlqError`] when a server is away or too slow; repeating is safe.
    pub async fn tidy_mq_dlq(&self, noted: &mut HashSet<RequestId>, seen: &mut MqSeen) -> Result<Tidied, DlqError> {
        let mut tidied = Tidied::default();
        let mut reading = Reading::begin(&self.rabbit, SEEN_MAX, seen).await?;
        if noted.len() > SEEN_MAX {
            noted.clear();
        }
        loop {
            let mut page = Vec::with_capacity(PAGE);
            while page.len() < PAGE
                && let Some(parked) = reading.next().await?
            {
                page.push(parked);
            }
            if page.is_empty() {
                break;
            }
            tidied.seen_count += page.len();
            self.tidy_page(&mut reading.reader, &page, noted, &mut tidied).await?;
        }
        reading.close().await?;
        tidied.unseen_count = seen.unseen_count.unwrap_or(0);
        let left = (tidied.seen_count - tidied.removed_count) as u64 + tidied.unseen_count;
        metrics::gauge!("seckill_p5_reconcile_dlq_count", "source" => "mq").set(left as f64);
        metrics::gauge!("seckill_p5_reconcile_dlq_foreign_count").set(tidied.foreign_count as f64);
        metrics::counter!("seckill_p5_reconcile_dlq_removed_total").increment(tidied.removed_count as u64);
        if tidied.removed_count > 0 || tidied.noted_count > 0 {
            tracing::info!(phase = "p5_reconcile", ?tidied, "MQ DLQ");
        }
        Ok(tidied)
    }

    async fn tidy_page(
        &self,
        reader: &mut DlqReader,
        page: &[Parked],
        noted: &mut HashSet<RequestId>,
        tidied: &mut Tidied,
    ) -> Result<(), DlqError> {
        let read = self.read_page(page).await?;
        let ids: Vec<RequestId> = read.iter().flatten().map(|accepted| accepted.purchase.request_id).collect();
        let outcomes = outcomes::outcomes_of(&self.db, &ids).await?;
        for (parked, accepted) in page.iter().zip(read) {
            let decided = accepted.as_ref().and_then(|accepted| outcomes.get(&accepted.purchase.request_id));
            match (accepted, decided) {
                (Some(accepted), Some(decided)) if decided.payload_hash == accepted.payload_hash() => {
                    // The others go with the next round; they are read on for the audits.
                    if tidied.removed_count < REMOVED_MAX {
                        reader.remove(parked).await?;
                        tidied.removed_count += 1;
                    }
                }
                // It contradicts what was decided; a row of the register would speak about the other one.
                (Some(_), Some(_)) => tidied.foreign_count += 1,
                (Some(_), None) if tidied.noted_count >= NOTED_MAX => {}
                (Some(accepted), None) => tidied.noted_count += self.note(parked, &accepted, noted).await?,
                (None, _) => {
                    tidied.foreign_count += 1;
                    if let Some(id) = named(parked).filter(|id| !noted.contains(id))
                        && outcomes::outcome_of(&self.db, id).await?.is_none()
                        && let Some(accepted) = self.accepted_in_ledger(id).await?
                    {
                        tidied.noted_count += self.note(parked, &accepted, noted).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What the messages tell. One of a later version cannot be read, but its relay named the request, and the ledger knows what
    /// was accepted.
    async fn read_page(&self, page: &[Parked]) -> Result<Vec<Option<Accepted>>, DlqError> {
        let read: Vec<_> = page.iter().map(|parked| message::decode(&parked.body)).collect();
        let is_later = |told: &Result<_, _>| matches!(told, Err(MessageError::UnknownVersion(_)));
        let later = page.iter().zip(&read).filter(|(_, told)| is_later(told));
        let ids: Vec<RequestId> = later.filter_map(|(parked, _)| named(parked)).collect();
        let known = self.all_in_ledger(&ids).await?;
        let told = page.iter().zip(read).map(|(parked, told)| match told {
            Ok(accepted) => Some(accepted),
            Err(MessageError::UnknownVersion(_)) => named(parked).and_then(|id| known.get(&id).cloned()),
            Err(MessageError::TooLong(_) | MessageError::Malformed(_)) => None,
        });
        Ok(told.collect())
    }

    /// Notes an undecided request in the register, once; the message stays.
    async fn note(
        &self,
        parked: &Parked,
        accepted: &Accepted,
        noted: &mut HashSet<RequestId>,
    ) -> Result<usize, DlqError> {
        if noted.contains(&accepted.purchase.request_id) {
            return Ok(0);
        }
        let why = reason_of(parked);
        let (reason, detail) = why.split_once(": ").unwrap_or((&why, ""));
        let payload = parked.body.get(..PAYLOAD_MAX).unwrap_or(&parked.body);
        let failure = OpenFailure { accepted, reporter: Reporter::MqDlq, reason, detail, payload };
        let new = failed_requests::open(&self.db, &failure).await?;
        noted.insert(accepted.purchase.request_id);
        Ok(usize::from(new))
    }
}

/// The request that the message came with as its message id; its relay wrote it there.
fn named(parked: &Parked) -> Option<RequestId> {
    parked.message_id.as_deref().and_then(|id| RequestId::parse(id).ok())
}
