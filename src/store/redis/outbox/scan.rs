//! The entries of a shard's outbox, and which relay has each of them: for the audit, the rebuild and operators. Reads only.

use super::{Outbox, OutboxEntry, list_entry_codec};
use crate::config::OutboxKind;
use crate::store::redis::connection::{RedisFault, list, optional_text, text};
use crate::store::redis::keyspace::GROUP;
use crate::store::redis::scripts::OUTBOX_LIST_HELD;
use fred::types::Value;
use std::collections::{BTreeSet, HashMap};

/// Times the relays' entries are read again because relays came or went in between.
const HELD_TRIES: usize = 5;

/// An entry and the relay that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedEntry {
    /// The entry; of one in a relay's processing list only the request and the sale.
    pub entry: OutboxEntry,
    /// The relay that read it last; `None`: it was not read yet.
    pub relay: Option<String>,
}

/// A part of an outbox.
#[derive(Debug, Default)]
pub struct OutboxPage {
    /// Entries of this page, in order.
    pub entries: Vec<LocatedEntry>,
    /// Where to go on; `None`: this was all.
    pub next: Option<String>,
}

impl Outbox {
    /// Goes through the outbox, about `count` entries at a time, from `-` on or from where the page before says. An entry
    /// that is there from beginning to end is not missed; of a list, what comes meanwhile can come twice. A stream can also be
    /// entered at a time (Unix milliseconds by Redis' clock); a list then begins at its beginning.
    pub async fn scan(&self, shard: u16, start: &str, count: usize) -> Result<OutboxPage, RedisFault> {
        match self.redis.outbox {
            OutboxKind::Stream => self.stream_walk(shard, start, count).await,
            OutboxKind::List => self.list_walk(shard, start, count).await,
        }
    }

    async fn stream_walk(&self, shard: u16, start: &str, count: usize) -> Result<OutboxPage, RedisFault> {
        let page = self.page(shard, start, count).await?;
        let (Some(first), Some(last)) = (page.first(), page.last()) else { return Ok(OutboxPage::default()) };
        let next = (page.len() == count).then(|| format!("({}", last.id));
        let (outbox, count) = (self.redis.keys.outbox(shard), count.to_string());
        let args = [outbox.as_str(), GROUP, &first.id, &last.id, &count].map(text).to_vec();
        let pending = match self.redis.command("XPENDING", 0, args).await {
            Ok(page) => list(page)?,
            Err(RedisFault::Refused(error)) if error.starts_with("NOGROUP") => Vec::new(),
            Err(fault) => return Err(fault),
        };
        let mut holders = HashMap::new();
        for held in pending {
            let held = list(held)?;
            let part = |at: usize| held.get(at).and_then(optional_text);
            match (part(0), part(1)) {
                (Some(id), Some(relay)) => holders.insert(id, relay),
                (None, _) | (_, None) => return Err(RedisFault::Contract(format!("XPENDING answered {held:?}"))),
            };
        }
        let entries = page.into_iter().map(|entry| LocatedEntry { relay: holders.remove(&entry.id), entry }).collect();
        Ok(OutboxPage { entries, next })
    }

    /// From the newest to the oldest: entries that come or go meanwhile then hide nothing, and an entry that a relay takes
    /// meanwhile is found in its processing list, which is read last.
    async fn list_walk(&self, shard: u16, start: &str, count: usize) -> Result<OutboxPage, RedisFault> {
        let from: usize = start.strip_prefix('@').and_then(|from| from.parse().ok()).unwrap_or(0);
        let (first, last) = (from.to_string(), (from + count).saturating_sub(1).to_string());
        let args = vec![text(self.redis.keys.outbox_list(shard)), text(first), text(last)];
        let page = list(self.redis.command("LRANGE", 0, args).await?)?;
        let next = (page.len() == count).then(|| format!("@{}", from + count));
        let entry = |packed: &Value| list_entry_codec::entry(packed.as_bytes().unwrap_or_default());
        let mut entries: Vec<LocatedEntry> =
            page.iter().map(|packed| LocatedEntry { entry: entry(packed), relay: None }).collect();
        if next.is_none() {
            entries.extend(self.list_held(shard).await?);
        }
        Ok(OutboxPage { entries, next })
    }

    async fn list_held(&self, shard: u16) -> Result<Vec<LocatedEntry>, RedisFault> {
        // Relays that were there a moment ago are read as well: busy relays come and go by the millisecond.
        let mut names = BTreeSet::new();
        for _ in 0..HELD_TRIES {
            names.extend(self.list_hands(shard).await?);
            let processing = names.iter().map(|name| self.redis.keys.processing(shard, name));
            let keys = std::iter::once(self.redis.keys.hands(shard)).chain(processing).collect();
            let reply = self
                .redis
                .script(&OUTBOX_LIST_HELD, keys, names.iter().map(|name| text(name.as_str())).collect())
                .await?;
            if reply == Value::Integer(0) {
                continue;
            }
            let held = list(reply)?;
            let entries = held.chunks_exact(2).map(|pair| LocatedEntry {
                entry: list_entry_codec::entry(pair[1].as_bytes().unwrap_or_default()),
                relay: optional_text(&pair[0]),
            });
            return Ok(entries.collect());
        }
        Err(RedisFault::Refused(format!("relays came and went during {HELD_TRIES} reads of their entries, ask again")))
    }
}
