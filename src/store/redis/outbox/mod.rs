//! The outbox of a shard, as the relay sees it: one interface over its two kinds (C8), a stream with a consumer group
//! (`stream.rs`) or a list with one processing list for each relay (`list.rs`).
//!
//! Both promise: an entry that was read is its reader's until it is done, parked or taken over; a reader that died or lost the
//! answer finds it again; no relay counts or parks an entry that another relay has by now.

mod list;
mod list_entry_codec;
mod orphans;
mod relay_dlq;
mod scan;
mod stream;

pub(crate) use orphans::OrphanPage;
pub(crate) use relay_dlq::ParkedEntry;
pub use relay_dlq::{ParkReason, ParkedOrder, Parking, RelayDlq};
pub use scan::LocatedEntry;

use super::connection::RedisFault;
use super::keyspace::Keyspace;
use crate::config::OutboxKind;
use crate::domain::ids::RequestId;
use crate::domain::message::request_ids_of_lines;
use std::sync::Arc;

/// Most entries that one call of a script deletes: Lua hands at most some 8,000 values on to a command (`LUAI_MAXCSTACK`).
const DONE_MAX: usize = 1_000;

/// One outbox entry as it was read. The payload is opaque here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxEntry {
    /// Names it within the outbox.
    pub id: String,
    /// Field and value pairs; empty when the entry was deleted while it was pending.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl OutboxEntry {
    /// How many orders it has, from 1. One of the form that 0.2.0 wrote with `redis.outbox_format` 1 says no number.
    #[must_use]
    pub fn orders(&self) -> usize {
        let count = self.field("n").and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
        count.unwrap_or(1).max(1)
    }

    /// The requests whose orders it has, as far as they can be read.
    #[must_use]
    pub(crate) fn request_ids(&self) -> Vec<RequestId> {
        if let Some(lines) = self.field("o") {
            return request_ids_of_lines(lines).collect();
        }
        let id = self.field("r").and_then(|id| RequestId::parse(std::str::from_utf8(id).ok()?).ok());
        id.into_iter().collect()
    }

    /// Takes the value of a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        self.fields.iter_mut().find(|(field, _)| field == name).map(|(_, value)| std::mem::take(value))
    }

    /// The value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_slice())
    }
}

/// An entry that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEntry {
    /// Names it within the outbox.
    pub id: String,
    /// How many orders it has; an entry whose number is not known counts as one.
    pub orders: usize,
}

/// A part of an outbox to go through.
#[derive(Debug, Clone, Copy)]
pub struct PageFrom<'a> {
    /// Where to begin.
    pub start: &'a str,
    /// Entries, at most.
    pub count: usize,
}

/// Entries taken over from silent relays.
#[derive(Debug)]
pub struct TakenOver {
    /// They are the caller's now.
    pub entries: Vec<OutboxEntry>,
    /// Where to go on; `0-0`: this was all.
    pub next: String,
    /// Entries that were deleted while they were pending (stream only).
    pub deleted: Vec<String>,
}

/// The outbox of every shard.
#[derive(Clone)]
pub struct Outbox {
    pub(super) redis: Arc<Keyspace>,
}

impl Outbox {
    /// Makes sure the shard's outbox and its group exist, the group reading from the very beginning. A list exists only
    /// while it has entries.
    pub async fn ensure(&self, shard: u16) -> Result<(), RedisFault> {
        match self.redis.outbox {
            OutboxKind::Stream => self.stream_ensure(shard).await,
            OutboxKind::List => Ok(()),
        }
    }

    /// Whether a relay may hold any number of entries at no cost. Each step on a list walks all that the relay holds.
    pub(crate) fn holds_many(&self) -> bool {
        self.redis.outbox == OutboxKind::Stream
    }

    /// Reads up to `count` new entries for `consumer`, the oldest first. A list gives at most 1,000 at once.
    /// After `Unknown` the entries may be the consumer's: read its own.
    pub async fn new_entries(&self, shard: u16, consumer: &str, count: usize) -> Result<Vec<OutboxEntry>, RedisFault> {
        match self.redis.outbox {
            OutboxKind::Stream => self.stream_read(shard, consumer, ">", count).await,
            OutboxKind::List => self.list_take(shard, consumer, count).await,
        }
    }

    /// Reads entries that are `consumer`'s already, the oldest first, from an id on (`0` begins). Returns them and where to
    /// go on. A stream gives up to `count`; a list all of them, at most a window. Repeating is safe.
    pub async fn own_entries(
        &self,
        shard: u16,
        consumer: &str,
        from: &str,
        count: usize,
    ) -> Result<(Vec<OutboxEntry>, Option<String>), RedisFault> {
        match self.redis.outbox {
            OutboxKind::Stream => {
                let entries = self.stream_read(shard, consumer, from, count).await?;
                let next = entries.last().map(|last| last.id.clone());
                Ok((entries, next))
            }
            OutboxKind::List => Ok((self.list_own(shard, consumer).await?, None)),
        }
    }

    /// Takes over up to `count` entries that no relay touched for `idle_ms`, from an id on (`0-0` begins).
    /// After `Unknown` some may be this consumer's now.
    pub async fn take_over(
        &self,
        shard: u16,
        consumer: &str,
        idle_ms: u64,
        from: PageFrom<'_>,
    ) -> Result<TakenOver, RedisFault> {
        match self.redis.outbox {
            OutboxKind::Stream => self.stream_claim(shard, consumer, idle_ms, from).await,
            OutboxKind::List => self.list_take_over(shard, consumer, idle_ms, from).await,
        }
    }

    /// Deletes confirmed entries, any number of them. Returns how many were deleted; a list deletes only what is still `consumer`'s.
    ///
    /// # Errors
    /// [`RedisFault`]; some may be deleted by then, and repeating is safe.
    pub async fn done(&self, shard: u16, consumer: &str, entries: &[SentEntry]) -> Result<i64, RedisFault> {
        let mut deleted = 0;
        for part in entries.chunks(DONE_MAX) {
            deleted += match self.redis.outbox {
                OutboxKind::Stream => self.stream_done(shard, part).await?,
                OutboxKind::List => {
                    let ids: Vec<String> = part.iter().map(|entry| entry.id.clone()).collect();
                    self.list_done(shard, consumer, &ids).await?
                }
            };
        }
        Ok(deleted)
    }

    /// Adds one failed attempt to each entry that is still `consumer`'s; returns the new counts in order, 0 for entries that
    /// are not its own any more.
    /// After `Unknown` an attempt may be counted without being seen, which only shortens the retries.
    pub async fn failed(&self, shard: u16, consumer: &str, ids: &[String]) -> Result<Vec<u32>, RedisFault> {
        let counts = match self.redis.outbox {
            OutboxKind::Stream => self.stream_failed(shard, consumer, ids).await?,
            OutboxKind::List => self.list_failed(shard, consumer, ids).await?,
        };
        if counts.len() != ids.len() {
            return Err(RedisFault::Contract(format!("{} counts for {} entries", counts.len(), ids.len())));
        }
        Ok(counts.into_iter().map(|count| u32::try_from(count).unwrap_or(u32::MAX)).collect())
    }

    /// Keeps entries this consumer still works on from being taken over; returns those that are still its own.
    /// Repeating is safe.
    pub async fn touch(&self, shard: u16, consumer: &str, ids: &[String]) -> Result<Vec<String>, RedisFault> {
        match self.redis.outbox {
            OutboxKind::Stream => self.stream_touch(shard, consumer, ids).await,
            OutboxKind::List => self.list_touch(shard, consumer, ids).await,
        }
    }

    /// Orders in the outbox, and how many entries of it are read and not done.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn depth(&self, shard: u16) -> Result<(u64, u64), RedisFault> {
        match self.redis.outbox {
            OutboxKind::Stream => self.stream_depth(shard).await,
            OutboxKind::List => self.list_depth(shard).await,
        }
    }

    /// Orders in the fullest of the outboxes of shards 0 to `shards` - 1; O(1) each. A shard that does not answer with its length does
    /// not count, whatever the fault: its server is down, loads its data or is damaged, and accepts nothing.
    ///
    /// # Errors
    /// The [`RedisFault`] of one shard when none answers.
    pub(crate) async fn longest(&self, shards: u16) -> Result<u64, RedisFault> {
        let lengths = (0..shards).map(|shard| self.depth(shard));
        let (mut longest, mut away) = (None, None);
        for length in futures::future::join_all(lengths).await {
            match length {
                Ok((length, _read)) => longest = longest.max(Some(length)),
                Err(fault) => away = Some(fault),
            }
        }
        match (longest, away) {
            (Some(longest), _) => Ok(longest),
            (None, Some(fault)) => Err(fault),
            (None, None) => Ok(0),
        }
    }
}
