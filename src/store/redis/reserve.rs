//! Typed call of `lua/reserve.lua`.

use super::client::{RedisStore, integer, list, text};
use super::fault::RedisFault;
use super::replicas::Promised;
use crate::config::Outbox;
use crate::domain::ids::SaleId;
use crate::domain::message;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use fred::types::Value;

/// What the script decided about a group.
#[derive(Debug)]
pub struct ReservedGroup {
    /// In the order of the group.
    pub reserved: Vec<Reserved>,
    /// Whether enough replicas have it (`redis.wait_replicas`). If not, an accept is real here and may be lost with this
    /// server: it must not be told as accepted.
    pub replicated: bool,
}

impl RedisStore {
    /// Decides a group of purchases of one sale on one shard; the answers come in the order of the group.
    ///
    /// # Errors
    /// [`RedisFault::NoScript`]: nothing ran, pass the boot fence first. [`RedisFault::Unknown`]: look each request up.
    /// The others: nothing ran.
    pub async fn reserve(
        &self,
        sale: &SaleId,
        shard: u16,
        epoch: u32,
        group: &[&Purchase],
    ) -> Result<ReservedGroup, RedisFault> {
        let mut keys = vec![
            self.keys.meta(shard, sale),
            self.keys.stock(shard, sale),
            self.keys.buyers(shard, sale),
            self.keys.ledger(shard, sale),
            self.outbox_key(shard),
        ];
        match self.outbox {
            Outbox::Stream => {}
            Outbox::List => keys.push(self.keys.hands(shard)),
        }
        let mut args = Vec::with_capacity(4 + 4 * group.len());
        args.extend([Value::Integer(epoch.into()), text(sale.as_str())]);
        args.extend([Value::Integer(shard.into()), Value::Integer(self.shards.into())]);
        for purchase in group {
            let mut head = String::with_capacity(160);
            message::head(purchase, &mut head);
            args.push(text(purchase.request_id.to_string()));
            args.push(text(purchase.user_id.as_str()));
            args.push(Value::Integer(purchase.quantity.get().into()));
            args.push(text(head));
        }
        let Promised { answer, replicated } = self.call_reserve(keys, args).await?;
        let reply = list(answer)?;
        if reply.len() != 2 * group.len() {
            // It ran, but what it decided cannot be read: the same as no answer.
            return Err(RedisFault::Unknown(format!("{} values for {} requests", reply.len(), group.len())));
        }
        let reserved: Result<Vec<Reserved>, RedisFault> = reply
            .chunks_exact(2)
            .map(|pair| {
                let decided = integer(&pair[0]).and_then(|code| {
                    Reserved::from_reply(code, integer(&pair[1])?).map_err(|e| RedisFault::Contract(e.to_string()))
                });
                decided.map_err(|fault| RedisFault::Unknown(fault.to_string()))
            })
            .collect();
        Ok(ReservedGroup { reserved: reserved?, replicated })
    }
}
