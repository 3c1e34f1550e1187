//! The relay DLQ: entries the relay gave up, waiting for P5 or a person.
//!
//! A stream beside an outbox that is one; beside a list a sorted set with score 0, which is in the order of the ids (they
//! begin with the time) and gives a page or an entry by its id without a look at the others.

use super::client::{RedisStore, integer, list, text};
use super::fault::RedisFault;
use super::outbox::{Entry, GROUP};
use super::packed;
use super::scripts::RELAY_PARK;
use crate::config::Outbox;
use crate::domain::ids::RequestId;
use crate::faults::{crash_point, left_out};
use fred::types::Value;

/// One entry of the relay DLQ.
#[derive(Debug, Clone)]
pub struct ParkedEntry {
    /// Id in the DLQ.
    pub id: String,
    /// The request, when the entry was readable.
    pub request_id: Option<RequestId>,
    /// Why it was parked.
    pub reason: String,
    /// Failed attempts.
    pub attempts: u32,
    /// When, Unix milliseconds by Redis' clock.
    pub parked_at_ms: i64,
    /// The message, as it would have been published.
    pub payload: Vec<u8>,
}

impl From<Entry> for ParkedEntry {
    fn from(entry: Entry) -> Self {
        let field = |name: &str| entry.field(name).map(|value| String::from_utf8_lossy(value).into_owned());
        Self {
            request_id: field("r").and_then(|id| RequestId::parse(&id).ok()),
            reason: field("reason").unwrap_or_default(),
            attempts: field("attempts").and_then(|n| n.parse().ok()).unwrap_or(0),
            parked_at_ms: field("parked_at_ms").and_then(|n| n.parse().ok()).unwrap_or(0),
            payload: entry.field("p").unwrap_or_default().to_vec(),
            id: entry.id,
        }
    }
}

/// What became of an entry that was to be parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parking {
    /// It is in the relay DLQ and out of the outbox.
    Moved,
    /// Another relay has it now: nothing was done.
    NotOurs,
    /// Somebody deleted it from the outbox: there is nothing left to move, and nobody waits for it any more.
    Gone,
}

impl RedisStore {
    /// Moves one entry to the relay DLQ.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn outbox_park(
        &self,
        shard: u16,
        consumer: &str,
        id: &str,
        (reason, attempts): (&str, u32),
    ) -> Result<Parking, RedisFault> {
        // Of the stream only: the list's script has no halves to part.
        if self.outbox == Outbox::Stream && left_out!(ParkAtomic) {
            return self.park_in_two_steps(shard, id, (reason, attempts)).await;
        }
        let parked = match self.outbox {
            Outbox::Stream => {
                let keys = vec![self.keys.outbox(shard), self.keys.attempts(shard), self.keys.relay_dlq(shard)];
                let args = [GROUP, consumer, id, reason, &attempts.to_string()].map(text).to_vec();
                integer(&self.script(&RELAY_PARK, keys, args).await?)?
            }
            Outbox::List => self.list_park(shard, consumer, id, (reason, attempts)).await?,
        };
        match parked {
            1 => Ok(Parking::Moved),
            0 => Ok(Parking::NotOurs),
            -1 => Ok(Parking::Gone),
            other => Err(RedisFault::Contract(format!("parking answered {other}"))),
        }
    }

    /// What [`Mechanism::ParkAtomic`] forbids: a death between the two steps leaves the entry nowhere (window 43).
    async fn park_in_two_steps(
        &self,
        shard: u16,
        id: &str,
        (reason, attempts): (&str, u32),
    ) -> Result<Parking, RedisFault> {
        let Some(entry) = self.outbox_page(shard, id, 1).await?.into_iter().find(|entry| entry.id == id) else {
            return Ok(Parking::Gone);
        };
        self.stream_done(shard, &[id.to_owned()]).await?;
        crash_point!(AfterDone);
        let mut args = vec![text(self.keys.relay_dlq(shard)), text("*")];
        args.extend(["entry", id, "reason", reason, "attempts", &attempts.to_string(), "parked_at_ms", "0"].map(text));
        for (name, value) in entry.fields {
            args.extend([text(name), Value::Bytes(value.into())]);
        }
        self.command("XADD", 0, args).await.map(|_id| Parking::Moved)
    }

    /// A page of the relay DLQ in order, from `start` (inclusive; `-` begins, `(` before an id leaves it out).
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn parked_page(&self, shard: u16, start: &str, count: usize) -> Result<Vec<ParkedEntry>, RedisFault> {
        let page = match self.outbox {
            Outbox::Stream => self.stream_page(self.keys.relay_dlq(shard), start, count).await?,
            Outbox::List => {
                // Behind an id stands a space, and `!` is the next character.
                let from = match start.strip_prefix('(') {
                    Some(id) => format!("[{id}!"),
                    None if start == "-" => start.to_owned(),
                    None => format!("[{start}"),
                };
                let args = [&self.keys.relay_dlq_set(shard), &from, "+", "LIMIT", "0", &count.to_string()].map(text);
                let members = list(self.command("ZRANGEBYLEX", 0, args.to_vec()).await?)?;
                members.iter().map(|member| packed::parked(member.as_bytes().unwrap_or_default())).collect()
            }
        };
        Ok(page.into_iter().map(ParkedEntry::from).collect())
    }

    /// Entries in the relay DLQ.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn parked_count(&self, shard: u16) -> Result<u64, RedisFault> {
        let count = match self.outbox {
            Outbox::Stream => self.command("XLEN", 0, vec![text(self.keys.relay_dlq(shard))]).await?,
            Outbox::List => self.command("ZCARD", 0, vec![text(self.keys.relay_dlq_set(shard))]).await?,
        };
        Ok(u64::try_from(integer(&count)?).unwrap_or(0))
    }

    /// Deletes one entry of the relay DLQ, after its request's outcome is in the database.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn parked_remove(&self, shard: u16, id: &str) -> Result<(), RedisFault> {
        let removed = match self.outbox {
            Outbox::Stream => self.command("XDEL", 0, vec![text(self.keys.relay_dlq(shard)), text(id)]).await,
            Outbox::List => {
                let of_id = [self.keys.relay_dlq_set(shard), format!("[{id}"), format!("({id}!")];
                self.command("ZREMRANGEBYLEX", 0, of_id.map(text).to_vec()).await
            }
        };
        removed.map(|_count| ())
    }

    /// The forbidden thing: gives a parked request's units back although the database may still sell them to it (window 90).
    /// Only for the test that shows what it would do.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    #[cfg(feature = "faults")]
    pub async fn give_back(&self, shard: u16, purchase: &crate::domain::request::Purchase) -> Result<(), RedisFault> {
        let units = purchase.quantity.get().to_string();
        let args = vec![text(self.keys.stock(shard, &purchase.sale_id)), text(units)];
        self.command("INCRBY", 0, args).await.map(|_stock| ())
    }
}
