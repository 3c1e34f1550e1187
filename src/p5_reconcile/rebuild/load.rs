//! The load of a rebuild (E7): what the database decided goes into the new keys of a sale, in pages.
//!
//! Input: frozen, empty keys of the next epoch. Output: buyers with what counts against their limits, and the records that a
//! replay may still need. A crash at any line leaves keys that the next rebuild replaces.
//!
//! A purchase that came back in the epoch that is being built still counts here: its grant is given to the open keys, and takes its units
//! from the buyer's then. Which these are is read behind the page, so what a page shows as returned has its grant by then.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::outcome::Outcome;
use crate::domain::sale::Sale;
use crate::domain::shard::home_shard;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::rows::decided::DecidedRequest;
use crate::store::redis::DecidedRecord;
use std::collections::{HashMap, HashSet};

/// Loads everything that was decided; `false` when another rebuild overtook this one.
pub(super) async fn load(context: &ReconcileContext, next: &Sale, retention_ms: i64) -> Result<bool, ReconcileError> {
    let id = &next.sale_id;
    let mut load = RebuildLoad {
        context,
        epoch: next.epoch,
        oldest_ms: i64::MAX,
        pages: HashMap::new(),
        returned: HashSet::new(),
    };
    for shard in 0..context.shards {
        load.oldest_ms = load.oldest_ms.min(context.redis.health.clock_ms(shard).await?.saturating_sub(retention_ms));
    }
    for known in context.rows.books.known(id).await? {
        let mut losers_after = Some(0);
        while let Some(at) = losers_after {
            let page = context.rows.decided.unnumbered(id, known.series, at).await?;
            if !load.page(id, page.requests).await? {
                return Ok(false);
            }
            losers_after = page.next;
        }
        let mut after = Some(0);
        while let Some(at) = after {
            let page = context.rows.decided.page(id, known.series, at).await?;
            if !load.page(id, page.requests).await? {
                return Ok(false);
            }
            after = page.next;
        }
    }
    Ok(true)
}

/// A load under way.
struct RebuildLoad<'c> {
    context: &'c ReconcileContext,
    epoch: u32,
    /// Requests decided before this get no record.
    oldest_ms: i64,
    /// Pages loaded into each shard.
    pages: HashMap<u16, u64>,
    /// Purchases that came back in this epoch.
    returned: HashSet<RequestId>,
}

impl RebuildLoad<'_> {
    async fn page(&mut self, sale: &SaleId, page: Vec<DecidedRequest>) -> Result<bool, ReconcileError> {
        if page.iter().any(|request| request.limit_returned) {
            self.returned = self.context.rows.decided.returned_in(sale, self.epoch).await?;
        }
        let mut by_shard: HashMap<u16, Vec<DecidedRecord>> = HashMap::new();
        for request in page {
            let shard = home_shard(request.limit_key(), self.context.shards);
            by_shard.entry(shard).or_default().push(self.record(request));
        }
        for (shard, records) in by_shard {
            let page = self.pages.entry(shard).or_default();
            *page += 1;
            if !self.context.redis.rebuild.load(sale, shard, (self.epoch, *page), &records).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn record(&self, request: DecidedRequest) -> DecidedRecord {
        let (state, counts) = match request.outcome {
            Outcome::Ordered => {
                let counts = !request.limit_returned || self.returned.contains(&request.request_id);
                (LedgerState::Confirmed, counts)
            }
            Outcome::Failed(reason) => (LedgerState::Failed(reason), false),
        };
        let record = LedgerRecord {
            state,
            number: request.number,
            quantity: request.quantity,
            epoch: request.epoch,
            accepted_at_ms: request.at_ms,
            user_id: request.user_id,
            person: request.person,
        };
        let keeps_record = request.at_ms > self.oldest_ms;
        DecidedRecord { request_id: request.request_id, record, counts, keeps_record }
    }
}
