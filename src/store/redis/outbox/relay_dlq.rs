//! The relay DLQ: entries the relay gave up, waiting for P5 or a person.
//!
//! The ledger has their requests, too. But what no relay can read, or no broker takes, would fill the outbox for good or leave a line
//! in a log; here it has a place, a reason and commands (`dlq`), on which alerts and the runbook build.
//!
//! A stream beside an outbox that is one; beside a list a sorted set with score 0, which is in the order of the ids (they
//! begin with the time) and gives a page or an entry by its id without reading the others.

use super::stream::stream_page;
use super::{Outbox, OutboxEntry, SentEntry, list_entry_codec};
use crate::config::OutboxKind;
use crate::domain::ids::{RequestId, SaleId};
use crate::faults::{crash_point, left_out};
use crate::store::redis::connection::{RedisFault, integer, list, text};
use crate::store::redis::keyspace::{GROUP, Keyspace};
use crate::store::redis::scripts::RELAY_PARK;
use fred::types::Value;
use std::sync::Arc;

/// One entry of the relay DLQ.
#[derive(Debug, Clone)]
pub struct ParkedEntry {
    /// Id in the DLQ.
    pub id: String,
    /// The request, when the entry was readable.
    pub request_id: Option<RequestId>,
    /// Its sale, when the entry names one.
    pub sale_id: Option<SaleId>,
    /// Why it was parked.
    pub reason: String,
    /// Number of failed attempts.
    pub attempts: u32,
    /// When, Unix milliseconds by Redis' clock.
    pub parked_at_ms: i64,
    /// The message, as it would have been published.
    pub payload: Vec<u8>,
}

impl From<OutboxEntry> for ParkedEntry {
    fn from(entry: OutboxEntry) -> Self {
        let field = |name: &str| entry.field(name).map(|value| String::from_utf8_lossy(value).into_owned());
        Self {
            request_id: field("r").and_then(|id| RequestId::parse(&id).ok()),
            sale_id: field("s").and_then(|id| SaleId::parse(&id).ok()),
            reason: field("reason").unwrap_or_default(),
            attempts: field("attempts").and_then(|n| n.parse().ok()).unwrap_or(0),
            parked_at_ms: field("parked_at_ms").and_then(|n| n.parse().ok()).unwrap_or(0),
            payload: entry.field("p").or_else(|| entry.field("o")).unwrap_or_default().to_vec(),
            id: entry.id,
        }
    }
}

/// Why an entry is parked.
#[derive(Debug, Clone, Copy)]
pub struct ParkReason<'a> {
    /// The reason, in words for a person.
    pub reason: &'a str,
    /// Failed attempts so far.
    pub attempts: u32,
}

/// One of several orders of an entry, as it is parked.
#[derive(Debug, Clone)]
pub struct ParkedOrder {
    /// Its request.
    pub request_id: RequestId,
    /// The message that it would travel as alone.
    pub message: String,
}

/// The result of parking an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parking {
    /// It is in the relay DLQ and out of the outbox.
    Moved,
    /// Another relay has it now: nothing was done.
    NotOurs,
    /// It was deleted from the outbox: there is nothing left to move, and no caller waits for it.
    Gone,
}

impl Outbox {
    /// Moves one entry to the relay DLQ, as it is.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn park(&self, shard: u16, consumer: &str, id: &str, why: ParkReason<'_>) -> Result<Parking, RedisFault> {
        self.park_orders(shard, consumer, id, (why, &[])).await
    }

    /// Moves one entry to the relay DLQ, there an entry for each of these orders; without orders as it is.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn park_orders(
        &self,
        shard: u16,
        consumer: &str,
        id: &str,
        (why, orders): (ParkReason<'_>, &[ParkedOrder]),
    ) -> Result<Parking, RedisFault> {
        // Of the stream only: the list's script has no halves to part.
        if self.redis.outbox == OutboxKind::Stream && left_out!(ParkAtomic) {
            return self.park_in_two_steps(shard, id, why).await;
        }
        let parked = match self.redis.outbox {
            OutboxKind::Stream => {
                let ParkReason { reason, attempts } = why;
                let keys = vec![
                    self.redis.keys.outbox(shard),
                    self.redis.keys.attempts(shard),
                    self.redis.keys.relay_dlq(shard),
                    self.redis.keys.outbox_more(shard),
                ];
                let mut args = [GROUP, consumer, id, reason, &attempts.to_string()].map(text).to_vec();
                for ParkedOrder { request_id, message } in orders {
                    args.extend([text(request_id.to_string()), text(message.as_str())]);
                }
                integer(&self.redis.script(&RELAY_PARK, keys, args).await?)?
            }
            OutboxKind::List => self.list_park(shard, consumer, id, why).await?,
        };
        match parked {
            1 => Ok(Parking::Moved),
            0 => Ok(Parking::NotOurs),
            -1 => Ok(Parking::Gone),
            other => Err(RedisFault::Contract(format!("parking answered {other}"))),
        }
    }

    /// The two steps that `Mechanism::ParkAtomic` forbids: a death between the two steps leaves the entry nowhere (window 43).
    async fn park_in_two_steps(&self, shard: u16, id: &str, why: ParkReason<'_>) -> Result<Parking, RedisFault> {
        let ParkReason { reason, attempts } = why;
        let Some(entry) = self.page(shard, id, 1).await?.into_iter().find(|entry| entry.id == id) else {
            return Ok(Parking::Gone);
        };
        self.stream_done(shard, &[SentEntry { id: id.to_owned(), orders: entry.orders() }]).await?;
        crash_point!(AfterDone);
        let mut args = vec![text(self.redis.keys.relay_dlq(shard)), text("*")];
        args.extend(["entry", id, "reason", reason, "attempts", &attempts.to_string(), "parked_at_ms", "0"].map(text));
        for (name, value) in entry.fields {
            args.extend([text(name), Value::Bytes(value.into())]);
        }
        self.redis.command("XADD", 0, args).await.map(|_id| Parking::Moved)
    }
}

/// The relay DLQ of every shard.
#[derive(Clone)]
pub struct RelayDlq {
    pub(in crate::store::redis) redis: Arc<Keyspace>,
}

impl RelayDlq {
    /// A page of the relay DLQ in order, from `start` (inclusive; `-` begins, `(` before an id leaves it out).
    pub async fn page(&self, shard: u16, start: &str, count: usize) -> Result<Vec<ParkedEntry>, RedisFault> {
        let page = match self.redis.outbox {
            OutboxKind::Stream => stream_page(&self.redis, self.redis.keys.relay_dlq(shard), start, count).await?,
            OutboxKind::List => {
                // Behind an id stands a space, and `!` is the next character.
                let from = match start.strip_prefix('(') {
                    Some(id) => format!("[{id}!"),
                    None if start == "-" => start.to_owned(),
                    None => format!("[{start}"),
                };
                let args =
                    [&self.redis.keys.relay_dlq_set(shard), &from, "+", "LIMIT", "0", &count.to_string()].map(text);
                let members = list(self.redis.command("ZRANGEBYLEX", 0, args.to_vec()).await?)?;
                members.iter().map(|member| list_entry_codec::parked(member.as_bytes().unwrap_or_default())).collect()
            }
        };
        Ok(page.into_iter().map(ParkedEntry::from).collect())
    }

    /// Entries in the relay DLQ.
    pub async fn count(&self, shard: u16) -> Result<u64, RedisFault> {
        let count = match self.redis.outbox {
            OutboxKind::Stream => self.redis.command("XLEN", 0, vec![text(self.redis.keys.relay_dlq(shard))]).await?,
            OutboxKind::List => {
                self.redis.command("ZCARD", 0, vec![text(self.redis.keys.relay_dlq_set(shard))]).await?
            }
        };
        Ok(u64::try_from(integer(&count)?).unwrap_or(0))
    }

    /// Deletes one entry of the relay DLQ, after its request's outcome is in the database. Repeating is safe.
    pub async fn remove(&self, shard: u16, id: &str) -> Result<(), RedisFault> {
        let removed = match self.redis.outbox {
            OutboxKind::Stream => {
                self.redis.command("XDEL", 0, vec![text(self.redis.keys.relay_dlq(shard)), text(id)]).await
            }
            OutboxKind::List => {
                let of_id = [self.redis.keys.relay_dlq_set(shard), format!("[{id}"), format!("({id}!")];
                self.redis.command("ZREMRANGEBYLEX", 0, of_id.map(text).to_vec()).await
            }
        };
        removed.map(|_count| ())
    }
}
