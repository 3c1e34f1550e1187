//! The DLQs as the audit sees them: who lies there; and copying relay-DLQ entries into the register before they leave Redis.
//!
//! A crash between the two leaves the entry in both places; the next run finds its row and deletes it (window 46).

use super::audit::{Auditor, SaleAuditError};
use super::mq_reading::{MqSeen, Reading};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::message::{self, MessageError};
use crate::faults::left_out;
use crate::store::mysql::codes::{FailureStatus, Reporter};
use crate::store::mysql::failed_requests::{self, FailedRequestFilter, OpenFailure};
use crate::store::rabbit::RabbitError;
use crate::store::redis::{ParkedEntry, RedisFault};
use std::collections::HashSet;

/// Entries looked at in one go, in each place.
const PAGE: usize = 500;
/// Messages of the MQ DLQ looked at in one audit by itself, unless a test says fewer; a round of P5 reads once for all of its
/// audits. P5 copies what lies there into the register, so only messages that came since its last run are to be found here and
/// nowhere else.
pub const MQ_DLQ_MAX: usize = 5_000;
/// Pages of the relay DLQ or of the register looked at in one audit.
const PAGES_MAX: usize = 100;

/// Who is parked.
#[derive(Debug, Default)]
pub(super) struct Parked {
    /// Requests in either DLQ, or in the register as open.
    pub ids: HashSet<RequestId>,
    /// Messages of the MQ DLQ that were not looked at; `None` when it could not be read.
    pub unseen_count: Option<u64>,
}

impl Auditor {
    /// Request ids in either DLQ, or of this sale in the register as open. `seen` is what the round has seen of the MQ DLQ; without one it
    /// is read now.
    pub(super) async fn parked_ids(&self, sale: &SaleId, seen: Option<&MqSeen>) -> Result<Parked, SaleAuditError> {
        let mut parked = Parked::default();
        for shard in 0..self.shards {
            match self.parked_in_redis(shard, &mut parked.ids).await {
                // Not a stream (any more): what lay there is told as a leak, and landed from the ledger all the same.
                Err(RedisFault::Refused(error)) => {
                    tracing::error!(phase = "p5_reconcile", shard, error, "the relay DLQ cannot be read");
                }
                done => done?,
            }
        }
        let mut own = MqSeen::default();
        let seen = match seen {
            Some(seen) => seen,
            None => {
                // The broker is away or slow: what lies there is told as a leak, and landed from the ledger all the same.
                if let Err(error) = self.look_through_mq_dlq(&mut own).await {
                    tracing::warn!(phase = "p5_reconcile", %error, "the MQ DLQ cannot be read");
                }
                &own
            }
        };
        parked.ids.extend(&seen.ids);
        parked.unseen_count = seen.unseen_count;
        let open = (Some(FailureStatus::Open), Some(sale.clone()));
        let mut wanted =
            FailedRequestFilter { status: open.0, sale_id: open.1, limit: 1000, ..FailedRequestFilter::default() };
        for _ in 0..PAGES_MAX {
            let page = failed_requests::list(&self.db, &wanted).await?;
            parked.ids.extend(page.iter().map(|row| row.request_id));
            match page.last() {
                Some(last) if page.len() == 1000 => wanted.after = Some(last.request_id),
                Some(_) | None => break,
            }
        }
        Ok(parked)
    }

    /// Reads the MQ DLQ and leaves it as it is.
    async fn look_through_mq_dlq(&self, seen: &mut MqSeen) -> Result<(), RabbitError> {
        let mut reading = Reading::begin(&self.rabbit, self.mq_dlq_max, seen).await?;
        while reading.next().await?.is_some() {}
        reading.close().await
    }

    async fn parked_in_redis(&self, shard: u16, ids: &mut HashSet<RequestId>) -> Result<(), RedisFault> {
        let mut start = "-".to_owned();
        for _ in 0..PAGES_MAX {
            let page = self.redis.parked_page(shard, &start, PAGE).await?;
            ids.extend(page.iter().filter_map(|entry| entry.request_id));
            match page.last() {
                Some(last) if page.len() == PAGE => start = format!("({}", last.id),
                Some(_) | None => break,
            }
        }
        Ok(())
    }

    /// Copies relay-DLQ entries into the register as open, then deletes them from Redis. An entry that cannot be read as a
    /// message stays where it is, for a person; those behind it are reached all the same. Sets the gauge of what is left.
    pub(super) async fn register_parked(&self) -> Result<usize, SaleAuditError> {
        let (mut copied, mut left) = (0, 0);
        for shard in 0..self.shards {
            let mut start = "-".to_owned();
            for _ in 0..PAGES_MAX {
                let page = self.redis.parked_page(shard, &start, PAGE).await?;
                for entry in &page {
                    copied += usize::from(self.register_one(shard, entry).await?);
                }
                match page.last() {
                    Some(last) if page.len() == PAGE => start = format!("({}", last.id),
                    Some(_) | None => break,
                }
            }
            left += self.redis.parked_count(shard).await?;
        }
        metrics::gauge!("seckill_p5_reconcile_dlq_count", "source" => "relay").set(left as f64);
        Ok(copied)
    }

    async fn register_one(&self, shard: u16, entry: &ParkedEntry) -> Result<bool, SaleAuditError> {
        let Some(accepted) = self.accepted_of(&entry.payload, entry.request_id).await? else { return Ok(false) };
        // A later version's message is readable for others, and the register keeps its bytes.
        let readable = matches!(message::decode(&entry.payload), Ok(_) | Err(MessageError::UnknownVersion(_)));
        let failure = OpenFailure {
            accepted: &accepted,
            reporter: Reporter::RelayDlq,
            reason: if readable { "ATTEMPTS_SPENT" } else { "UNREADABLE" },
            detail: &entry.reason,
            payload: &entry.payload,
        };
        let new = failed_requests::open(&self.db, &failure).await?;
        if !readable {
            // Its request is in the register; the bytes themselves are for a person.
            return Ok(new);
        }
        #[cfg(feature = "faults")]
        if left_out!(NoGiveBack) && new {
            self.redis.give_back(shard, &accepted.purchase).await?;
        }
        self.redis.parked_remove(shard, &entry.id).await?;
        tracing::warn!(
            phase = "p5_reconcile", request_id = %accepted.purchase.request_id, reason = %entry.reason,
            attempts = entry.attempts, "relay DLQ entry copied to the register"
        );
        Ok(true)
    }
}
