//! How far landing is behind, as far as Redis knows: outbox lengths, and which of some requests have landed. Reads only.

use super::client::RedisStore;
use super::fault::RedisFault;
use crate::domain::ids::{RequestId, SaleId};

/// How far a request has come, by its ledger record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progressed {
    /// Accepted, and not landed as far as the ledger knows.
    Queued,
    /// Its outcome is in the database.
    Landed,
    /// The ledger does not say: the record is gone or unreadable.
    Untold,
}

impl RedisStore {
    /// Entries in the fullest of the outboxes of shards 0 to `shards` - 1; O(1) each. A shard whose server is away
    /// does not count: it takes nothing in.
    ///
    /// # Errors
    /// [`RedisFault`] when every server is away or one refuses.
    pub async fn longest_outbox(&self, shards: u16) -> Result<u64, RedisFault> {
        let lengths = (0..shards).map(|shard| self.outbox_depth(shard));
        let (mut longest, mut away) = (None, None);
        for length in futures::future::join_all(lengths).await {
            match length {
                Ok((length, _read)) => longest = longest.max(Some(length)),
                Err(fault @ (RedisFault::NotSent(_) | RedisFault::Unknown(_))) => away = Some(fault),
                Err(fault @ (RedisFault::NoScript | RedisFault::Refused(_) | RedisFault::Contract(_))) => {
                    return Err(fault);
                }
            }
        }
        match (longest, away) {
            (Some(longest), _) => Ok(longest),
            (None, Some(fault)) => Err(fault),
            (None, None) => Ok(0),
        }
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
