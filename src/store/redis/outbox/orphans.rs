//! What reading never finds in a shard's outbox: entries in no pending list (or in a processing list without an owner), and
//! names of relays that are gone.
//!
//! P5 persists the requests of such entries from the ledger after `p5_reconcile.window_ms`, and yet both are needed. The entries
//! would stay: each counts against the bound of the outbox for good, so a deleted consumer with a full window would take its part of
//! the room until a person deletes them, and buyers would wait for the window. The names would grow without a bound where each
//! process has a new one, and a person who deletes names by hand makes orphans.

use super::stream::entries;
use super::{Outbox, OutboxEntry};
use crate::config::OutboxKind;
use crate::store::redis::connection::{RedisFault, list, optional_text, text};
use crate::store::redis::keyspace::GROUP;
use crate::store::redis::scripts::{RELAY_FORGET, RELAY_ORPHANS};
use fred::types::Value;

/// A part of the outbox to check for orphans.
#[derive(Debug, Clone)]
pub(crate) struct OrphanPage<'a> {
    /// Where to begin, as the page before said; `-` for the start.
    pub start: &'a str,
    /// Entries to check, at most.
    pub(crate) checked_max: usize,
    /// Entries to take, at most.
    pub(crate) taken_max: usize,
}

impl Outbox {
    /// Takes entries of one page that were delivered once and are in no pending list (window 30). Returns them and
    /// where to go on (`-`: from the start). After `Unknown` some may be this consumer's now.
    pub(crate) async fn take_orphans(
        &self,
        shard: u16,
        consumer: &str,
        page: OrphanPage<'_>,
    ) -> Result<(Vec<OutboxEntry>, String), RedisFault> {
        if self.redis.outbox == OutboxKind::List {
            return self.list_orphans(shard, consumer, page).await;
        }
        let (checked, taken) = (page.checked_max.to_string(), page.taken_max.to_string());
        let args = [GROUP, consumer, page.start, &checked, &taken].map(text).to_vec();
        // Its neighbours hand entries out when the replicas have the claim, and so does this.
        let reply = self.redis.script_replicated(&RELAY_ORPHANS, vec![self.redis.keys.outbox(shard)], args).await?;
        let mut reply = list(reply)?.into_iter();
        let next = reply.next().and_then(|next| optional_text(&next)).unwrap_or_else(|| "-".to_owned());
        Ok((entries(reply.next().unwrap_or(Value::Null))?, next))
    }

    /// Removes the names of up to `count_max` consumers that hold nothing and were silent for `idle_ms`; never that of
    /// `consumer`. Returns the names. Of a list, names go with their last entry. Repeating is safe.
    pub async fn forget_relays(
        &self,
        shard: u16,
        consumer: &str,
        idle_ms: u64,
        count_max: usize,
    ) -> Result<Vec<String>, RedisFault> {
        if self.redis.outbox == OutboxKind::List {
            return Ok(Vec::new());
        }
        let args = [GROUP, consumer, &idle_ms.to_string(), &count_max.to_string()].map(text).to_vec();
        let gone = self.redis.script(&RELAY_FORGET, vec![self.redis.keys.outbox(shard)], args).await?;
        Ok(list(gone)?.iter().filter_map(optional_text).collect())
    }
}
