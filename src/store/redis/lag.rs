//! How far landing is behind, as far as Redis knows: outbox lengths, and which of some requests have landed. Reads only.

use super::client::{RedisFault, RedisStore, integer, text};
use crate::domain::ids::{RequestId, SaleId};

/// How far a request has come, by its ledger record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progressed {
    /// Accepted, and not landed as far as the ledger knows.
    Queued,
    /// Its fate is in the database.
    Landed,
    /// The ledger does not say: the record is gone or unreadable.
    Untold,
}

impl RedisStore {
    /// Entries in the fullest of the outboxes of shards 0 to `shards` - 1; one XLEN each, O(1).
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn longest_outbox(&self, shards: u16) -> Result<u64, RedisFault> {
        let lengths = (0..shards).map(|shard| self.command("XLEN", 0, vec![text(self.keys.outbox(shard))]));
        let mut longest = 0;
        for length in futures::future::join_all(lengths).await {
            longest = longest.max(u64::try_from(integer(&length?)?).unwrap_or(0));
        }
        Ok(longest)
    }

    /// How far requests of one ledger have come, in their order; one HMGET.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away. A ledger that cannot be read is no error: it tells nothing.
    pub async fn progressed(
        &self,
        sale: &SaleId,
        shard: u16,
        ids: &[RequestId],
    ) -> Result<Vec<Progressed>, RedisFault> {
        match self.ledger_lookup(sale, shard, ids).await {
            Ok(records) => Ok(records
                .into_iter()
                .map(|record| match record {
                    Some(record) if record.state.is_final() => Progressed::Landed,
                    Some(_) => Progressed::Queued,
                    None => Progressed::Untold,
                })
                .collect()),
            // A damaged ledger is the audit's to report; it must not stop the look at the others.
            Err(RedisFault::Contract(_) | RedisFault::Refused(_)) => Ok(vec![Progressed::Untold; ids.len()]),
            Err(fault @ (RedisFault::NotSent(_) | RedisFault::Unknown(_) | RedisFault::NoScript)) => Err(fault),
        }
    }
}
