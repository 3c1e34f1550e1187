//! Everything known about one request, wherever it is. Reads only. A server that is away is named, and the others still
//! tell what they know.

use super::audit::{Auditor, SaleAuditError};
use super::dlq::{Desk, Entry, Source};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::domain::message;
use crate::domain::operator::Actor;
use crate::domain::request::Accepted;
use crate::store::mysql::request_history::{self, RequestHistory};
use crate::store::mysql::sales;
use crate::store::redis::RedisFault;
use std::collections::HashMap;

/// Outbox entries read at once.
const PAGE: usize = 1_000;
/// Outbox entries looked at, from the moment of acceptance on. One script call makes at most a few hundred in a millisecond.
const OUTBOX_MAX: usize = 20_000;

/// A ledger record and where it was found.
#[derive(Debug, Clone)]
pub struct InLedger {
    /// The sale.
    pub sale_id: SaleId,
    /// The shard.
    pub shard: u16,
    /// The record.
    pub record: LedgerRecord,
}

/// Everything known about one request.
#[derive(Debug, Default)]
pub struct Trace {
    /// What the database knows.
    pub story: RequestHistory,
    /// What Redis accepted.
    pub ledger: Option<InLedger>,
    /// Its entry in the outbox: accepted and not confirmed by the broker yet.
    pub outbox_entry: Option<String>,
    /// Where it is parked.
    pub parked: Vec<Entry>,
    /// What could not be asked, and why.
    pub not_asked: Vec<String>,
}

impl Trace {
    /// Whether anything knows the request.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let RequestHistory { decided, order, failure } = &self.story;
        let in_database = decided.is_some() || order.is_some() || failure.is_some();
        in_database || self.ledger.is_some() || self.outbox_entry.is_some() || !self.parked.is_empty()
    }
}

impl Auditor {
    /// Looks for a request everywhere: the database, the ledgers of at most 1,000 sales, the outbox, both DLQs.
    pub async fn trace(&self, request_id: RequestId) -> Trace {
        let mut trace = Trace::default();
        match request_history::request_history(&self.db, request_id).await {
            Ok(story) => trace.story = story,
            Err(error) => trace.not_asked.push(format!("database: {error}")),
        }
        match self.in_ledger(request_id, trace.story.sale_id()).await {
            Ok(found) => trace.ledger = found,
            Err(error) => trace.not_asked.push(format!("ledger: {error}")),
        }
        if let Some(found) = &trace.ledger
            && trace.story.decided.is_none()
        {
            match self.in_outbox(found, request_id).await {
                Ok(entry) => trace.outbox_entry = entry,
                Err(error) => trace.not_asked.push(format!("outbox: {error}")),
            }
        }
        let desk = Desk { auditor: self.clone(), actor: Actor::at_the_terminal("") };
        for (source, name) in [(Source::Relay, "relay DLQ"), (Source::Mq, "MQ DLQ")] {
            match desk.list(Some(source)).await {
                Ok(listing) => {
                    let mine = listing.entries.into_iter().filter(|entry| entry.request_id == Some(request_id));
                    trace.parked.extend(mine);
                }
                Err(error) => trace.not_asked.push(format!("{name}: {error}")),
            }
        }
        trace
    }

    /// What was accepted, as the message tells it, else as the ledger does.
    pub(super) async fn accepted_of(
        &self,
        payload: &[u8],
        named: Option<RequestId>,
    ) -> Result<Option<Accepted>, SaleAuditError> {
        match (message::decode(payload).ok(), named) {
            (Some(accepted), _) => Ok(Some(accepted)),
            (None, Some(id)) => self.accepted_in_ledger(id).await,
            (None, None) => Ok(None),
        }
    }

    /// What was accepted under this id, out of the ledger.
    pub(super) async fn accepted_in_ledger(&self, request_id: RequestId) -> Result<Option<Accepted>, SaleAuditError> {
        Ok(self.all_in_ledger(&[request_id]).await?.remove(&request_id))
    }

    /// What was accepted under these ids, out of the ledgers; one call for each ledger until all are found.
    pub(super) async fn all_in_ledger(
        &self,
        request_ids: &[RequestId],
    ) -> Result<HashMap<RequestId, Accepted>, SaleAuditError> {
        let (mut found, mut wanted) = (HashMap::new(), request_ids.to_vec());
        if wanted.is_empty() {
            return Ok(found);
        }
        for sale in sales::released(&self.db).await? {
            for shard in 0..self.shards {
                let records = self.redis.ledger_lookup(&sale.sale_id, shard, &wanted).await?;
                for (id, record) in wanted.iter().zip(records) {
                    found.extend(record.map(|record| (*id, record.accepted(*id, &sale.sale_id, shard))));
                }
                wanted.retain(|id| !found.contains_key(id));
                if wanted.is_empty() {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    async fn in_ledger(
        &self,
        request_id: RequestId,
        hint: Option<&SaleId>,
    ) -> Result<Option<InLedger>, SaleAuditError> {
        let sale_ids = match hint {
            Some(sale_id) => vec![sale_id.clone()],
            None => sales::released(&self.db).await?.into_iter().map(|sale| sale.sale_id).collect(),
        };
        for sale_id in sale_ids {
            for shard in 0..self.shards {
                let record = self.redis.ledger_lookup(&sale_id, shard, &[request_id]).await?.pop().flatten();
                if let Some(record) = record {
                    return Ok(Some(InLedger { sale_id, shard, record }));
                }
            }
        }
        Ok(None)
    }

    /// Stream ids are milliseconds of Redis' clock, as the record's time is, so the search in a stream begins there.
    async fn in_outbox(&self, found: &InLedger, request_id: RequestId) -> Result<Option<String>, RedisFault> {
        let wanted = request_id.to_string();
        let mut start = found.record.accepted_at_ms.to_string();
        for _ in 0..OUTBOX_MAX / PAGE {
            let page = self.redis.outbox_walk(found.shard, &start, PAGE).await?;
            let mut entries = page.lying.into_iter().map(|lying| lying.entry);
            if let Some(entry) = entries.find(|entry| entry.field("r") == Some(wanted.as_bytes())) {
                return Ok(Some(entry.id));
            }
            let Some(next) = page.next else { break };
            start = next;
        }
        Ok(None)
    }
}
