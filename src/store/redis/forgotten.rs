//! Where Redis names a buyer who is forgotten: units and records of a sale (`lua/forget_buyer.lua`), a place in a waiting room
//! (`lua/forget_place.lua`), the token bucket.
//!
//! Input: the buyer, and the pseudonym that takes the place of the id. Output: what was found. A crash between two pages leaves both
//! names; a repeat does the rest. What was written has reached enough replicas (`redis.wait_replicas`) when a call has returned.

use super::connection::{RedisFault, integer, list, optional_text, text};
use super::keys::room_shard;
use super::keyspace::Keyspace;
use super::scripts::{FORGET_BUYER, FORGET_PLACE};
use crate::domain::ids::{SaleId, UserId};
use fred::types::Value;
use std::sync::Arc;

/// Records of one call; bounds how long Redis is busy.
const PAGE: &str = "1000";

/// The names of a buyer: the id, and the pseudonym; `None`: only what is there is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RenamedBuyer<'a> {
    pub(crate) buyer: &'a UserId,
    pub(crate) pseudonym: Option<&'a UserId>,
}

impl RenamedBuyer<'_> {
    fn pseudonym_text(&self) -> &str {
        self.pseudonym.map_or("", UserId::as_str)
    }
}

/// What one shard has of a buyer in a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BuyerTraces {
    /// Ledger records, and the record of units.
    pub(crate) count: u64,
    /// Records of requests whose outcome is not known. They were not renamed.
    pub(crate) queued: u64,
}

/// Keys that name buyers.
#[derive(Clone)]
pub(crate) struct BuyerKeys {
    pub(super) redis: Arc<Keyspace>,
}

impl BuyerKeys {
    /// Renames the buyer in everything that one shard has of a sale; `None`: the sale is frozen, or its keys are not whole. Repeating is
    /// safe.
    ///
    /// # Errors
    /// [`RedisFault`]; a part may have been renamed by then.
    pub(crate) async fn of_sale(
        &self,
        sale: &SaleId,
        shard: u16,
        names: RenamedBuyer<'_>,
    ) -> Result<Option<BuyerTraces>, RedisFault> {
        let keys = &self.redis.keys;
        let keys = vec![keys.meta(shard, sale), keys.buyers(shard, sale), keys.ledger(shard, sale)];
        let (mut traces, mut cursor, mut had_units) = (BuyerTraces::default(), "0".to_owned(), false);
        loop {
            let args = [names.buyer.as_str(), names.pseudonym_text(), &cursor, PAGE].map(text).to_vec();
            let reply = list(self.redis.script_replicated(&FORGET_BUYER, keys.clone(), args).await?)?;
            if reply.is_empty() {
                return Ok(None);
            }
            let [next, units, records, queued] = reply.as_slice() else {
                return Err(RedisFault::Contract(format!("forget_buyer answered {} values", reply.len())));
            };
            had_units |= integer(units)? > 0;
            traces.count += counted(records)?;
            traces.queued += counted(queued)?;
            cursor =
                optional_text(next).ok_or_else(|| RedisFault::Contract("forget_buyer gave no cursor".to_owned()))?;
            if cursor == "0" {
                traces.count += u64::from(had_units);
                return Ok(Some(traces));
            }
        }
    }

    /// Renames the buyer in the waiting room of a sale; whether there was a place. Repeating is safe.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub(crate) async fn place(&self, sale: &SaleId, names: RenamedBuyer<'_>) -> Result<bool, RedisFault> {
        let keys = vec![self.redis.keys.room(room_shard(sale, self.redis.shards), sale)];
        let args = [names.buyer.as_str(), names.pseudonym_text()].map(text).to_vec();
        Ok(integer(&self.redis.script_replicated(&FORGET_PLACE, keys, args).await?)? > 0)
    }

    /// Removes the buyer's token bucket of a shard, which makes it full; with no pseudonym it stays. Whether there was one.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub(crate) async fn bucket(&self, shard: u16, names: RenamedBuyer<'_>) -> Result<bool, RedisFault> {
        let command = if names.pseudonym.is_some() { "UNLINK" } else { "EXISTS" };
        let reply: Value = self.redis.command(command, 0, vec![text(self.redis.keys.rate(shard, names.buyer))]).await?;
        Ok(integer(&reply)? > 0)
    }
}

fn counted(value: &Value) -> Result<u64, RedisFault> {
    u64::try_from(integer(value)?).map_err(|_negative| RedisFault::Contract("forget_buyer counted below 0".to_owned()))
}
