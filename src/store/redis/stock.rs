//! The stock of a sale on a shard: `lua/reserve.lua`, which sells it, and how much is left.

use super::connection::{RedisFault, Replicated, integer, list, text};
use super::keyspace::Keyspace;
use super::sale_keys::SaleKeys;
use super::scripts::Arguments;
use crate::config::OutboxKind;
use crate::domain::ids::SaleId;
use crate::domain::message::BUNDLE_MAX;
use crate::domain::policy::Quantity;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::domain::sale::MetaState;
use crate::domain::sale_door::SaleDoor;
use fred::types::Value;
use std::sync::Arc;

/// The decisions of the script about a group.
#[derive(Debug)]
pub struct ReservedGroup {
    /// In the order of the group.
    pub reserved: Vec<Reserved>,
    /// Whether enough replicas have it (`redis.wait_replicas`). If not, an accept is real on this server and may be lost with
    /// it: no buyer may get it as accepted.
    pub(crate) replicated: bool,
}

/// By which doors the requests of a group came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoorsOfGroup {
    /// All by this one.
    All(SaleDoor),
    /// By their places in the group.
    Each(Vec<SaleDoor>),
}

impl DoorsOfGroup {
    /// Of requests in their order.
    #[must_use]
    pub fn of(each: impl Iterator<Item = SaleDoor> + Clone) -> Self {
        let mut rest = each.clone();
        let first = rest.next().unwrap_or(SaleDoor::Open);
        if rest.all(|door| door == first) { Self::All(first) } else { Self::Each(each.collect()) }
    }

    /// As the script reads it: one digit of all, or one for each.
    fn spelled(&self) -> String {
        let digit = |door: &SaleDoor| match door {
            SaleDoor::Open => '0',
            SaleDoor::Token => '1',
            SaleDoor::Line => '2',
        };
        match self {
            Self::All(door) => digit(door).to_string(),
            Self::Each(each) => each.iter().map(digit).collect(),
        }
    }
}

/// The units of a sale on a shard, and the only way to sell them.
#[derive(Clone)]
pub struct Stock {
    pub(super) redis: Arc<Keyspace>,
}

impl Stock {
    /// As [`Stock::reserve_by`], past the entry: each request counts as an offer, which comes in by any door.
    ///
    /// # Errors
    /// As [`Stock::reserve_by`].
    pub async fn reserve(
        &self,
        sale: &SaleId,
        shard: u16,
        epoch: u32,
        group: &[&Purchase],
    ) -> Result<ReservedGroup, RedisFault> {
        self.reserve_by(sale, (shard, epoch), group, &DoorsOfGroup::All(SaleDoor::Line)).await
    }

    /// Decides a group of purchases of one sale on one shard; the answers come in the order of the group.
    ///
    /// # Errors
    /// [`RedisFault::NoScript`]: nothing ran, pass the boot fence first. [`RedisFault::Unknown`]: look each request up.
    /// The others: nothing ran.
    pub async fn reserve_by(
        &self,
        sale: &SaleId,
        (shard, epoch): (u16, u32),
        group: &[&Purchase],
        doors: &DoorsOfGroup,
    ) -> Result<ReservedGroup, RedisFault> {
        let key = self.redis.keys.stock(shard, sale);
        let call = || (self.reserve_keys(sale, shard), self.reserve_args(sale, (shard, epoch), group, doors));
        let Replicated { answer, replicated } = match self.redis.reserve_scripts.call(&key, call).await {
            // A key has another type. The script reads every key before it writes.
            Err(RedisFault::Refused(error)) if error.starts_with("WRONGTYPE") => {
                return Ok(ReservedGroup { reserved: vec![Reserved::Damaged; group.len()], replicated: true });
            }
            done => done?,
        };
        Ok(ReservedGroup { reserved: decided(answer, group.len())?, replicated })
    }

    fn reserve_keys(&self, sale: &SaleId, shard: u16) -> Vec<String> {
        let keys = &self.redis.keys;
        let mut all = vec![
            keys.meta(shard, sale),
            keys.stock(shard, sale),
            keys.buyers(shard, sale),
            keys.ledger(shard, sale),
            self.redis.outbox_key(shard),
        ];
        all.push(match self.redis.outbox {
            OutboxKind::Stream => keys.outbox_more(shard),
            OutboxKind::List => keys.hands(shard),
        });
        all
    }

    fn reserve_args(
        &self,
        sale: &SaleId,
        (shard, epoch): (u16, u32),
        group: &[&Purchase],
        doors: &DoorsOfGroup,
    ) -> Vec<Value> {
        let all_one = group.iter().all(|purchase| purchase.quantity == Quantity::ONE);
        let by_person = group.iter().any(|purchase| purchase.person.is_some());
        let width = 2 + usize::from(!all_one) + usize::from(by_person);
        let entries = if self.redis.reserve_scripts.takes_lines() { group.len().div_ceil(BUNDLE_MAX) } else { 0 };
        let mut args = Arguments::with_capacity(7 + entries + width * group.len());
        args.push(epoch);
        args.push(sale.as_str());
        args.push(shard);
        args.push(self.redis.shards);
        args.push(format_args!("{width}{}", if by_person { "p" } else { "" }));
        args.push(entries);
        args.push(doors.spelled());
        push_requests(&mut args, group, entries > 0);
        if !all_one {
            group.iter().for_each(|purchase| args.push(purchase.quantity.get()));
        }
        if by_person {
            group.iter().for_each(|purchase| args.push(purchase.limit_key()));
        }
        args.into_values()
    }

    /// Units left in the bucket; `None` when the key is missing.
    pub async fn units(&self, sale: &SaleId, shard: u16) -> Result<Option<i64>, RedisFault> {
        let value = self.redis.command("GET", 0, vec![text(self.redis.keys.stock(shard, sale))]).await?;
        if value.is_null() { Ok(None) } else { integer(&value).map(Some) }
    }

    /// Units on sale in the bucket. `None` when the key is missing, and in a sale that is frozen: a rebuild begins with empty keys, which
    /// say nothing of its units.
    pub(crate) async fn on_sale(&self, sale: &SaleId, shard: u16) -> Result<Option<i64>, RedisFault> {
        let units = self.units(sale, shard).await?;
        if units != Some(0) {
            return Ok(units);
        }
        let args = vec![text(self.redis.keys.meta(shard, sale)), text("state")];
        let state = self.redis.command("HGET", 0, args).await?.as_string();
        let is_frozen = state.is_some_and(|code| code == MetaState::Frozen.code());
        Ok(units.filter(|_| !is_frozen))
    }

    /// The forbidden thing: gives a parked request's units back although the database may still sell them to it (window 90).
    /// Only for the test that shows what it would do.
    #[cfg(feature = "faults")]
    pub(crate) async fn give_back(
        &self,
        shard: u16,
        purchase: &crate::domain::request::Purchase,
    ) -> Result<(), RedisFault> {
        let units = purchase.quantity.get().to_string();
        let args = vec![text(self.redis.keys.stock(shard, &purchase.sale_id)), text(units)];
        self.redis.command("INCRBY", 0, args).await.map(|_stock| ())
    }
}

impl SaleKeys {
    /// Units on sale in all buckets, and between two of them, 0 or more; `None` where one does not sell.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub(crate) async fn units_on_sale(&self, sale: &SaleId) -> Result<Option<i64>, RedisFault> {
        let mut units = 0;
        for shard in 0..self.redis.shards {
            match self.count(sale, shard).await? {
                // What left one bucket and did not reach the next is counted with the later of the two.
                Some(count) if count.meta.state == MetaState::Open => units += count.stock + count.in_transit,
                Some(_) | None => return Ok(None),
            }
        }
        Ok(Some(units.max(0)))
    }
}

/// What the script answered of `count` requests: 1 when it accepted all, else place, code and detail of each that it did not. An answer
/// that cannot be read is as good as none: the script ran.
fn decided(answer: Value, count: usize) -> Result<Vec<Reserved>, RedisFault> {
    let mut reserved = vec![Reserved::Accepted; count];
    if answer.as_i64() == Some(1) {
        return Ok(reserved);
    }
    let unreadable = |why: &dyn std::fmt::Display| RedisFault::Unknown(format!("an answer of P2: {why}"));
    let values: Result<Vec<i64>, RedisFault> = list(answer)?.iter().map(integer).collect();
    let values = values.map_err(|fault| unreadable(&fault))?;
    if values.is_empty() || values.len() % 3 != 0 {
        return Err(unreadable(&format_args!("{} values", values.len())));
    }
    for exception in values.chunks_exact(3) {
        let place = usize::try_from(exception[0]).ok().and_then(|place| reserved.get_mut(place.checked_sub(1)?));
        let place = place.ok_or_else(|| unreadable(&format_args!("place {} of {count}", exception[0])))?;
        *place = Reserved::from_reply(exception[1], exception[2]).map_err(|error| unreadable(&error))?;
    }
    Ok(reserved)
}

/// Adds the request ids and the buyers of a group; before them, for entries of many orders, their lines, which hold both.
fn push_requests(args: &mut Arguments, group: &[&Purchase], lines: bool) {
    let mut request_ids = Vec::with_capacity(group.len());
    let mut users = Vec::with_capacity(group.len());
    for entry in group.chunks(BUNDLE_MAX) {
        let mut part = args.write("");
        for purchase in entry {
            request_ids.push(args.write(purchase.request_id));
            args.write(format_args!(" {} ", purchase.quantity.get()));
            users.push(args.write(purchase.buyer_text()));
            part.end = args.write("\n").end;
        }
        if lines {
            args.push_part(part);
        }
    }
    request_ids.into_iter().chain(users).for_each(|part| args.push_part(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_who_was_not_accepted() {
        let of = |values: &[i64]| decided(Value::Array(values.iter().copied().map(Value::Integer).collect()), 3);
        assert_eq!(decided(Value::Integer(1), 2).unwrap(), vec![Reserved::Accepted; 2]);
        let expected = [Reserved::Replayed, Reserved::Accepted, Reserved::Closed];
        assert_eq!(of(&[1, 1, 0, 3, 7, 0]).unwrap(), expected);
        for unreadable in [&[][..], &[1, 1], &[0, 1, 0], &[4, 1, 0], &[-1, 1, 0], &[1, 99, 0]] {
            assert!(matches!(of(unreadable), Err(RedisFault::Unknown(_))), "{unreadable:?}");
        }
    }

    #[test]
    fn doors_of_a_group_are_spelled_as_short_as_they_can_be() {
        let doors = |text: &str| -> Vec<SaleDoor> {
            let door = |c| match c {
                '0' => SaleDoor::Open,
                '1' => SaleDoor::Token,
                _ => SaleDoor::Line,
            };
            text.chars().map(door).collect()
        };
        for (group, spelled) in
            [("", "0"), ("1", "1"), ("0", "0"), ("111", "1"), ("000", "0"), ("22", "2"), ("100", "100"), ("012", "012")]
        {
            assert_eq!(DoorsOfGroup::of(doors(group).into_iter()).spelled(), spelled, "{group}");
        }
    }
}
