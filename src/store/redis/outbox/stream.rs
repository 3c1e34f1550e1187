//! The outbox as a stream with a consumer group.
//!
//! Replies are parsed raw, entry by entry: fred's own maps fail a whole batch on one deleted entry and hide the deleted ids
//! of XAUTOCLAIM (windows 31, 32).

use super::{Outbox, OutboxEntry, PageFrom, SentEntry, TakenOver};
use crate::store::redis::connection::{RedisFault, integer, list, optional_text, text};
use crate::store::redis::keyspace::{GROUP, Keyspace};
use crate::store::redis::scripts::{Arguments, RELAY_DONE, RELAY_FAILED, RELAY_TOUCH};
use fred::types::Value;

fn entry(value: Value) -> Result<OutboxEntry, RedisFault> {
    let mut parts = list(value)?.into_iter();
    let id = parts
        .next()
        .and_then(|id| optional_text(&id))
        .ok_or_else(|| RedisFault::Contract("entry without id".into()))?;
    let fields = list(parts.next().unwrap_or(Value::Null))?;
    let fields = fields
        .chunks_exact(2)
        .map(|pair| (pair[0].as_string().unwrap_or_default(), pair[1].as_bytes().unwrap_or_default().to_vec()))
        .collect();
    Ok(OutboxEntry { id, fields })
}

pub(super) fn entries(value: Value) -> Result<Vec<OutboxEntry>, RedisFault> {
    list(value)?.into_iter().filter(|value| !value.is_null()).map(entry).collect()
}

impl Outbox {
    pub(super) async fn stream_ensure(&self, shard: u16) -> Result<(), RedisFault> {
        let args = vec![text("CREATE"), text(self.redis.keys.outbox(shard)), text(GROUP), text("0"), text("MKSTREAM")];
        match self.redis.command("XGROUP", 1, args).await {
            Ok(_) => Ok(()),
            Err(RedisFault::Refused(error)) if error.starts_with("BUSYGROUP") => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// New entries with `after` = `>`, the consumer's own pending ones from an id on. Replicas are waited for only when there is
    /// something that they must have: a relay without work asks them nothing.
    pub(super) async fn stream_read(
        &self,
        shard: u16,
        consumer: &str,
        after: &str,
        count: usize,
    ) -> Result<Vec<OutboxEntry>, RedisFault> {
        let args = ["GROUP", GROUP, consumer, "COUNT"].map(text).into_iter();
        let args =
            args.chain([text(count.to_string()), text("STREAMS"), text(self.redis.keys.outbox(shard)), text(after)]);
        let streams = list(self.redis.command("XREADGROUP", 6, args.collect()).await?)?;
        let Some(stream) = streams.into_iter().next() else { return Ok(Vec::new()) };
        let read = entries(list(stream)?.into_iter().nth(1).unwrap_or(Value::Null))?;
        if let Some(last) = read.last() {
            let promised = self.stream_promised(shard, consumer, &last.id).await;
            // Whatever goes wrong here, the entries are the consumer's.
            promised.map_err(|fault| RedisFault::Unknown(fault.to_string()))?;
        }
        Ok(read)
    }

    /// Whether enough replicas have an entry, and all before it, as handed out to `consumer`. The server that has it may be
    /// another one than the server that was read: it says itself that it has handed out the entry.
    async fn stream_promised(&self, shard: u16, consumer: &str, id: &str) -> Result<(), RedisFault> {
        if self.redis.connection.wait_replicas() == 0 {
            return Ok(());
        }
        let args = [self.redis.keys.outbox(shard).as_str(), GROUP, id, id, "1", consumer].map(text).to_vec();
        match list(self.redis.hand_out("XPENDING", 0, args).await?)?.is_empty() {
            false => Ok(()),
            true => Err(RedisFault::Unknown("the entries are not there any more".to_owned())),
        }
    }

    pub(super) async fn stream_claim(
        &self,
        shard: u16,
        consumer: &str,
        idle_ms: u64,
        from: PageFrom<'_>,
    ) -> Result<TakenOver, RedisFault> {
        let args = [self.redis.keys.outbox(shard).as_str(), GROUP, consumer, &idle_ms.to_string(), from.start, "COUNT"]
            .map(text);
        let args = args.into_iter().chain([text(from.count.to_string())]).collect();
        let mut reply = list(self.redis.hand_out("XAUTOCLAIM", 0, args).await?)?.into_iter();
        let next = reply.next().and_then(|next| optional_text(&next)).unwrap_or_else(|| "0-0".to_owned());
        let entries = entries(reply.next().unwrap_or(Value::Null))?;
        let deleted = list(reply.next().unwrap_or(Value::Null))?.iter().filter_map(optional_text).collect();
        Ok(TakenOver { entries, next, deleted })
    }

    pub(super) async fn stream_done(&self, shard: u16, entries: &[SentEntry]) -> Result<i64, RedisFault> {
        let keys = &self.redis.keys;
        let keys = vec![keys.outbox(shard), keys.attempts(shard), keys.outbox_more(shard)];
        let (larger, single): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.orders > 1);
        let mut args = Arguments::with_capacity(2 + 2 * larger.len() + single.len());
        args.push(GROUP);
        args.push(larger.len());
        for SentEntry { id, orders } in larger {
            args.push(id);
            args.push(orders);
        }
        single.iter().for_each(|entry| args.push(&entry.id));
        integer(&self.redis.script(&RELAY_DONE, keys, args.into_values()).await?)
    }

    pub(super) async fn stream_failed(
        &self,
        shard: u16,
        consumer: &str,
        ids: &[String],
    ) -> Result<Vec<i64>, RedisFault> {
        let keys = vec![self.redis.keys.outbox(shard), self.redis.keys.attempts(shard)];
        let args = [GROUP, consumer].map(text).into_iter().chain(ids.iter().map(|id| text(id.as_str()))).collect();
        list(self.redis.script(&RELAY_FAILED, keys, args).await?)?.iter().map(integer).collect()
    }

    pub(super) async fn stream_touch(
        &self,
        shard: u16,
        consumer: &str,
        ids: &[String],
    ) -> Result<Vec<String>, RedisFault> {
        let args = [GROUP, consumer].map(text).into_iter().chain(ids.iter().map(|id| text(id.as_str()))).collect();
        let mine = self.redis.script(&RELAY_TOUCH, vec![self.redis.keys.outbox(shard)], args).await?;
        Ok(list(mine)?.iter().filter_map(optional_text).collect())
    }

    pub(super) async fn stream_depth(&self, shard: u16) -> Result<(u64, u64), RedisFault> {
        let outbox = || text(self.redis.keys.outbox(shard));
        let (length, more, pending) = tokio::join!(
            self.redis.command("XLEN", 0, vec![outbox()]),
            self.redis.command("GET", 0, vec![text(self.redis.keys.outbox_more(shard))]),
            self.redis.command("XPENDING", 0, vec![outbox(), text(GROUP)]),
        );
        let more = more?;
        let length = integer(&length?)? + if more.is_null() { 0 } else { integer(&more)?.max(0) };
        let pending = match pending {
            Ok(summary) => list(summary)?.first().map_or(Ok(0), integer)?,
            Err(RedisFault::Refused(error)) if error.starts_with("NOGROUP") => 0,
            Err(fault) => return Err(fault),
        };
        Ok((u64::try_from(length).unwrap_or(0), u64::try_from(pending).unwrap_or(0)))
    }

    /// A page of the outbox as a stream in order, from `start` (inclusive; `-` begins).
    pub async fn page(&self, shard: u16, start: &str, count: usize) -> Result<Vec<OutboxEntry>, RedisFault> {
        stream_page(&self.redis, self.redis.keys.outbox(shard), start, count).await
    }
}

/// A page of a stream in order, from `start` (inclusive; `-` begins).
pub(super) async fn stream_page(
    redis: &Keyspace,
    key: String,
    start: &str,
    count: usize,
) -> Result<Vec<OutboxEntry>, RedisFault> {
    let args = vec![text(key), text(start), text("+"), text("COUNT"), text(count.to_string())];
    entries(redis.command("XRANGE", 0, args).await?)
}
