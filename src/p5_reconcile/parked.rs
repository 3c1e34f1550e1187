//! The DLQs as P5 sees them: who lies there, and copying relay-DLQ entries into the register before they leave Redis.

use super::audit::{Auditor, SaleAuditError};
use crate::domain::ids::RequestId;
use crate::domain::message;
use crate::store::mysql::codes::{FailureStatus, Reporter};
use crate::store::mysql::register::{self, OpenFailure, Wanted};
use crate::store::rabbit::browse_dlq;
use crate::store::redis::ParkedEntry;
use std::collections::HashSet;

/// Entries looked at in one go, in each place.
const PAGE: usize = 500;
/// Messages of the MQ DLQ looked at in one audit.
const MQ_MAX: usize = 1_000;
/// Pages of the relay DLQ or of the register looked at in one audit.
const PAGES_MAX: usize = 100;

impl Auditor {
    /// Request ids in either DLQ, or in the register as open.
    pub(super) async fn parked_ids(&self) -> Result<HashSet<RequestId>, SaleAuditError> {
        let mut ids = HashSet::new();
        for shard in 0..self.shards {
            let mut start = "-".to_owned();
            for _ in 0..PAGES_MAX {
                let page = self.redis.parked_page(shard, &start, PAGE).await?;
                ids.extend(page.iter().filter_map(|entry| entry.request_id));
                match page.last() {
                    Some(last) if page.len() == PAGE => start = format!("({}", last.id),
                    Some(_) | None => break,
                }
            }
        }
        match browse_dlq(&self.rabbit, MQ_MAX).await {
            Ok(messages) => ids.extend(
                messages.iter().filter_map(|parked| message::decode(&parked.body).ok()).map(|a| a.purchase.request_id),
            ),
            // The broker is away: what lies there is told as a leak, and landed from the ledger all the same.
            Err(error) => tracing::warn!(phase = "p5_reconcile", %error, "the MQ DLQ cannot be read"),
        }
        let mut wanted = Wanted { status: Some(FailureStatus::Open), limit: 1000, ..Wanted::default() };
        for _ in 0..PAGES_MAX {
            let page = register::list(&self.db, &wanted).await?;
            ids.extend(page.iter().map(|row| row.request_id));
            match page.last() {
                Some(last) if page.len() == 1000 => wanted.after = Some(last.request_id),
                Some(_) | None => break,
            }
        }
        Ok(ids)
    }

    /// Copies relay-DLQ entries into the register as open, then deletes them from Redis. An entry that cannot be read as a
    /// message stays where it is, for a person; those behind it are reached all the same.
    pub(super) async fn register_parked(&self) -> Result<usize, SaleAuditError> {
        let mut copied = 0;
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
        }
        Ok(copied)
    }

    async fn register_one(&self, shard: u16, entry: &ParkedEntry) -> Result<bool, SaleAuditError> {
        let Ok(accepted) = message::decode(&entry.payload) else { return Ok(false) };
        let failure = OpenFailure {
            accepted: &accepted,
            reporter: Reporter::RelayDlq,
            reason: "ATTEMPTS_SPENT",
            detail: &entry.reason,
            payload: &entry.payload,
        };
        register::open(&self.db, &failure).await?;
        self.redis.parked_remove(shard, &entry.id).await?;
        tracing::warn!(
            phase = "p5_reconcile", request_id = %accepted.purchase.request_id, reason = %entry.reason,
            attempts = entry.attempts, "relay DLQ entry copied to the register"
        );
        Ok(true)
    }
}
