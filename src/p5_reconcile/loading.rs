//! The load of a rebuild (E7): what the database decided, into the new keys of a sale, in pages.
//!
//! Input: frozen, empty keys of the next epoch. Output: buyers with what counts against their limits, and the records that a
//! replay may still ask for. A crash at any line leaves keys that the next rebuild replaces.

use super::audit::{Auditor, SaleAuditError};
use crate::domain::fate::Fate;
use crate::domain::ids::SaleId;
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::sale::Sale;
use crate::domain::shard::home_shard;
use crate::store::mysql::books;
use crate::store::mysql::decided::{self, DecidedRequest};
use crate::store::redis::DecidedRecord;
use std::collections::HashMap;

impl Auditor {
    /// Loads everything that was decided; `false` when another rebuild overtook this one.
    pub(super) async fn load(&self, next: &Sale, retention_ms: i64) -> Result<bool, SaleAuditError> {
        let id = &next.sale_id;
        let mut loading = Loading { epoch: next.epoch, oldest_ms: i64::MAX, pages: HashMap::new() };
        for shard in 0..self.shards {
            loading.oldest_ms =
                loading.oldest_ms.min(self.redis.health.clock_ms(shard).await?.saturating_sub(retention_ms));
        }
        for known in books::known(&self.db, id).await? {
            let losers = decided::unnumbered(&self.db, id, known.series).await?;
            if !self.load_page(id, &mut loading, losers).await? {
                return Ok(false);
            }
            let mut after = Some(0);
            while let Some(at) = after {
                let page = decided::page(&self.db, id, known.series, at).await?;
                if !self.load_page(id, &mut loading, page.requests).await? {
                    return Ok(false);
                }
                after = page.next;
            }
        }
        Ok(true)
    }

    async fn load_page(
        &self,
        sale: &SaleId,
        loading: &mut Loading,
        page: Vec<DecidedRequest>,
    ) -> Result<bool, SaleAuditError> {
        let mut by_shard: HashMap<u16, Vec<DecidedRecord>> = HashMap::new();
        for request in page {
            let shard = home_shard(&request.user_id, self.shards);
            by_shard.entry(shard).or_default().push(loading.record(request));
        }
        for (shard, records) in by_shard {
            let page = loading.pages.entry(shard).or_default();
            *page += 1;
            if !self.redis.rebuild.load(sale, shard, (loading.epoch, *page), &records).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A load under way.
struct Loading {
    epoch: u32,
    /// What was decided before this leaves no record.
    oldest_ms: i64,
    /// Pages loaded into each shard.
    pages: HashMap<u16, u64>,
}

impl Loading {
    fn record(&self, request: DecidedRequest) -> DecidedRecord {
        let (state, counts) = match request.fate {
            Fate::Ordered => (LedgerState::Confirmed, true),
            Fate::Failed(reason) => (LedgerState::Failed(reason), false),
        };
        let record = LedgerRecord {
            state,
            number: request.number,
            quantity: request.quantity,
            epoch: request.epoch,
            accepted_at_ms: request.at_ms,
            user_id: request.user_id,
        };
        let keeps_record = request.at_ms > self.oldest_ms;
        DecidedRecord { request_id: request.request_id, record, counts, keeps_record }
    }
}
