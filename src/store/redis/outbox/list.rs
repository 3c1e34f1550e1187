//! The outbox as a list with one private processing list for each relay (C8), for services that speak Redis without streams.
//!
//! Every call is `lua/outbox_list.lua`, one step each; `list_entry_codec.rs` reads the strings.

use super::{OrphanPage, Outbox, OutboxEntry, PageFrom, ParkReason, TakenOver, list_entry_codec};
use crate::store::redis::connection::{DoneWhen, RedisFault, Replicated, integer, list, optional_text, text};
use crate::store::redis::scripts::OUTBOX_LIST;
use fred::types::Value;

/// Entries moved by one script call: about a millisecond of Redis' time.
const MOVE_MAX: usize = 1_000;

/// `id, entry, id, entry, …` as the script answers.
fn entries(reply: Value) -> Result<Vec<OutboxEntry>, RedisFault> {
    list(reply)?
        .chunks_exact(2)
        .map(|pair| {
            let id = optional_text(&pair[0]).ok_or_else(|| RedisFault::Contract("entry without id".into()))?;
            Ok(OutboxEntry { id, fields: list_entry_codec::fields(pair[1].as_bytes().unwrap_or_default()) })
        })
        .collect()
}

/// One call of the script.
#[derive(Clone, Copy)]
struct ListCall<'a> {
    act: &'static str,
    consumer: &'a str,
    /// The other relay whose processing list it touches.
    other: Option<&'a str>,
}

impl<'a> ListCall<'a> {
    const fn of(consumer: &'a str, act: &'static str) -> Self {
        Self { act, consumer, other: None }
    }
}

impl Outbox {
    /// Calls the script.
    async fn list_call(&self, shard: u16, call: ListCall<'_>, args: Vec<Value>) -> Result<Value, RedisFault> {
        let ListCall { act, consumer, other } = call;
        let keys = &self.redis.keys;
        let mut all = vec![
            keys.outbox_list(shard),
            keys.processing(shard, consumer),
            keys.hands(shard),
            keys.attempts(shard),
            keys.relay_dlq_set(shard),
        ];
        all.extend(other.map(|other| keys.processing(shard, other)));
        let args = [act, consumer].map(text).into_iter().chain(args).collect();
        self.redis.script(&OUTBOX_LIST, all, args).await
    }

    /// The same for calls that hand out entries. The server is chosen before, so that its replicas are the ones counted.
    async fn list_hand_out(
        &self,
        shard: u16,
        call: ListCall<'_>,
        args: Vec<Value>,
    ) -> Result<Vec<OutboxEntry>, RedisFault> {
        let node = self.redis.node_of_shard(shard)?;
        let taken = entries(self.list_call(shard, call, args).await?)?;
        if !taken.is_empty() {
            // Whether replicas have what this server has handed out. Whatever goes wrong here, the entries are the consumer's.
            let processing = vec![text(self.redis.keys.processing(shard, call.consumer))];
            let promised =
                node.send(DoneWhen::Replicated, "LLEN", 0, processing).await.and_then(Replicated::or_too_few);
            promised.map_err(|fault| RedisFault::Unknown(fault.to_string()))?;
        }
        Ok(taken)
    }

    pub(super) async fn list_take(
        &self,
        shard: u16,
        consumer: &str,
        count: usize,
    ) -> Result<Vec<OutboxEntry>, RedisFault> {
        let count = vec![text(count.min(MOVE_MAX).to_string())];
        self.list_hand_out(shard, ListCall::of(consumer, "take"), count).await
    }

    pub(super) async fn list_own(&self, shard: u16, consumer: &str) -> Result<Vec<OutboxEntry>, RedisFault> {
        self.list_hand_out(shard, ListCall::of(consumer, "own"), vec![]).await
    }

    /// Names of relays that hold entries, in order.
    pub(super) async fn list_hands(&self, shard: u16) -> Result<Vec<String>, RedisFault> {
        let names = list(self.redis.command("HKEYS", 0, vec![text(self.redis.keys.hands(shard))]).await?)?;
        let mut names: Vec<String> = names.iter().filter_map(optional_text).collect();
        names.sort();
        Ok(names)
    }

    /// One other relay at a time, in the order of their names, so that an error leaves no doubt about the owner of the entries that moved.
    /// Names begin with a letter, so all of them are behind `0-0`.
    pub(super) async fn list_take_over(
        &self,
        shard: u16,
        consumer: &str,
        idle_ms: u64,
        from: PageFrom<'_>,
    ) -> Result<TakenOver, RedisFault> {
        let names = self.list_hands(shard).await?;
        let mut others = names.into_iter().filter(|name| name != consumer && name.as_str() > from.start);
        let Some(other) = others.next() else {
            return Ok(TakenOver { entries: vec![], next: "0-0".into(), deleted: vec![] });
        };
        let entries = self
            .list_take_from(shard, ListCall { act: "take_over", consumer, other: Some(&other) }, idle_ms, from.count)
            .await?;
        let next = if others.next().is_some() { other } else { "0-0".to_owned() };
        Ok(TakenOver { entries, next, deleted: Vec::new() })
    }

    async fn list_take_from(
        &self,
        shard: u16,
        call: ListCall<'_>,
        idle_ms: u64,
        count: usize,
    ) -> Result<Vec<OutboxEntry>, RedisFault> {
        let other = call.other.unwrap_or_default();
        let args = vec![text(count.min(MOVE_MAX).to_string()), text(other), text(idle_ms.to_string())];
        self.list_hand_out(shard, call, args).await
    }

    /// Takes entries of a processing list without an owner, which is there only if the hash of owners (`hands`) was deleted:
    /// one page of all keys. Returns them and where to go on.
    pub(super) async fn list_orphans(
        &self,
        shard: u16,
        consumer: &str,
        page: OrphanPage<'_>,
    ) -> Result<(Vec<OutboxEntry>, String), RedisFault> {
        let OrphanPage { start, checked_max, taken_max } = page;
        let (prefix, cursor) = (self.redis.keys.processing(shard, ""), if start == "-" { "0" } else { start });
        let args = [cursor, "MATCH", &format!("{prefix}*"), "COUNT", &checked_max.to_string(), "TYPE", "list"]
            .map(text)
            .to_vec();
        let mut reply = list(self.redis.node_of_shard(shard)?.command("SCAN", args).await?)?.into_iter();
        let next = reply.next().and_then(|next| optional_text(&next)).unwrap_or_else(|| "0".to_owned());
        let keys = list(reply.next().unwrap_or(Value::Null))?;
        let names = keys.iter().filter_map(|key| Some(optional_text(key)?.strip_prefix(&prefix)?.to_owned()));
        let known = self.list_hands(shard).await?;
        if let Some(lost) = names.into_iter().find(|name| name != consumer && !known.contains(name)) {
            // The same page once more, for the other lists on it.
            let call = ListCall { act: "take_over", consumer, other: Some(&lost) };
            let taken = self.list_take_from(shard, call, u64::from(u32::MAX), taken_max).await?;
            return Ok((taken, cursor.to_owned()));
        }
        Ok((Vec::new(), next))
    }

    pub(super) async fn list_done(&self, shard: u16, consumer: &str, ids: &[String]) -> Result<i64, RedisFault> {
        integer(&self.list_call(shard, ListCall::of(consumer, "done"), texts(ids)).await?)
    }

    pub(super) async fn list_failed(&self, shard: u16, consumer: &str, ids: &[String]) -> Result<Vec<i64>, RedisFault> {
        list(self.list_call(shard, ListCall::of(consumer, "failed"), texts(ids)).await?)?.iter().map(integer).collect()
    }

    pub(super) async fn list_touch(
        &self,
        shard: u16,
        consumer: &str,
        ids: &[String],
    ) -> Result<Vec<String>, RedisFault> {
        let mine = self.list_call(shard, ListCall::of(consumer, "touch"), texts(ids)).await?;
        Ok(list(mine)?.iter().filter_map(optional_text).collect())
    }

    /// 1: moved to the relay DLQ; 0: not the consumer's any more.
    pub(super) async fn list_park(
        &self,
        shard: u16,
        consumer: &str,
        id: &str,
        why: ParkReason<'_>,
    ) -> Result<i64, RedisFault> {
        let args = [id, why.reason, &why.attempts.to_string()].map(text).to_vec();
        integer(&self.list_call(shard, ListCall::of(consumer, "park"), args).await?)
    }

    /// The list first: entries go from it to the hands, so one that moves in between is counted twice and never missed.
    pub(super) async fn list_depth(&self, shard: u16) -> Result<(u64, u64), RedisFault> {
        let waiting = integer(&self.redis.command("LLEN", 0, vec![text(self.redis.keys.outbox_list(shard))]).await?)?;
        let hands = list(self.redis.command("HVALS", 0, vec![text(self.redis.keys.hands(shard))]).await?)?;
        let held = |hand: &Value| optional_text(hand)?.split_once(' ')?.1.parse::<u64>().ok();
        let held: u64 = hands.iter().filter_map(held).sum();
        Ok((u64::try_from(waiting).unwrap_or(0) + held, held))
    }
}

fn texts(ids: &[String]) -> Vec<Value> {
    ids.iter().map(|id| text(id.as_str())).collect()
}
