//! Every key of the system, one function a key.
//!
//! `<prefix>:{k}:…` — the hash tag `{k}` puts all keys of shard `k` into one cluster slot, so that one script reaches them.

use crate::domain::ids::{SaleId, UserId};
use crate::domain::shard::order_queue_index;

/// Builds keys under one prefix.
#[derive(Debug, Clone)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// Keys that start with `prefix`.
    #[must_use]
    pub(crate) const fn new(prefix: String) -> Self {
        Self { prefix }
    }

    /// The text that every key begins with.
    #[must_use]
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    fn of_shard(&self, shard: u16, name: &str) -> String {
        format!("{}:{{{shard}}}:{name}", self.prefix)
    }

    fn of_sale(&self, shard: u16, name: &str, sale: &SaleId) -> String {
        format!("{}:{{{shard}}}:{name}:{sale}", self.prefix)
    }

    /// Hash: state, epoch, limit, cap, acceptance number, number of shards, numbers and sums of transfers.
    #[must_use]
    pub fn meta(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "meta", sale)
    }

    /// What SCAN is asked for to get the `meta` of every sale on every shard. A prefix has no character that a pattern reads in
    /// another way (`config::check`).
    #[must_use]
    pub(super) fn any_meta(&self) -> String {
        format!("{}:{{*}}:meta:*", self.prefix)
    }

    /// The sale whose `meta` this key is; `None`: it is no such key.
    #[must_use]
    pub(super) fn sale_of_meta(&self, key: &str) -> Option<SaleId> {
        let (shard, sale) = key.strip_prefix(&self.prefix)?.strip_prefix(":{")?.split_once("}:meta:")?;
        shard.parse::<u16>().ok()?;
        SaleId::parse(sale).ok()
    }

    /// String: units left in the bucket.
    #[must_use]
    pub fn stock(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "stock", sale)
    }

    /// Hash: user → units and first request id.
    #[must_use]
    pub fn buyers(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "buyers", sale)
    }

    /// Hash: request id → ledger record.
    #[must_use]
    pub fn ledger(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "ledger", sale)
    }

    /// Hash: grant id → units given.
    #[must_use]
    pub fn grants(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "grants", sale)
    }

    /// The five keys a warmed sale always has: meta, stock, buyers, ledger, grants, in the order the scripts take them.
    #[must_use]
    pub fn of_warmed(&self, shard: u16, sale: &SaleId) -> Vec<String> {
        vec![
            self.meta(shard, sale),
            self.stock(shard, sale),
            self.buyers(shard, sale),
            self.ledger(shard, sale),
            self.grants(shard, sale),
        ]
    }

    /// Hash: target shard → number, units and epoch of the transfer that is under way to it.
    #[must_use]
    pub(crate) fn transfers(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "transfers", sale)
    }

    /// Stream: accepted requests that are not sent yet.
    #[must_use]
    pub fn outbox(&self, shard: u16) -> String {
        self.of_shard(shard, "outbox")
    }

    /// String: orders in the outbox beyond the first of each entry.
    #[must_use]
    pub fn outbox_more(&self, shard: u16) -> String {
        self.of_shard(shard, "outbox-more")
    }

    /// Hash: outbox entry → failed attempts.
    #[must_use]
    pub fn attempts(&self, shard: u16) -> String {
        self.of_shard(shard, "attempts")
    }

    /// Stream: entries the relay gave up.
    #[must_use]
    pub fn relay_dlq(&self, shard: u16) -> String {
        self.of_shard(shard, "relay-dlq")
    }

    /// List: accepted requests that are not sent yet, where the outbox is a list.
    #[must_use]
    pub fn outbox_list(&self, shard: u16) -> String {
        self.of_shard(shard, "outbox-list")
    }

    /// List: entries that this relay took out of the outbox list and has not finished.
    #[must_use]
    pub(crate) fn processing(&self, shard: u16, relay: &str) -> String {
        format!("{}:{relay}", self.of_shard(shard, "processing"))
    }

    /// Hash: relay → when it was last seen, and how many entries it has.
    #[must_use]
    pub fn hands(&self, shard: u16) -> String {
        self.of_shard(shard, "hands")
    }

    /// Sorted set: entries the relay gave up, where the outbox is a list.
    #[must_use]
    pub(crate) fn relay_dlq_set(&self, shard: u16) -> String {
        self.of_shard(shard, "relay-dlq-set")
    }

    /// String with a TTL: when a buyer's token bucket is full again.
    #[must_use]
    pub(crate) fn rate(&self, shard: u16, user: &UserId) -> String {
        format!("{}:{{{shard}}}:rate:{user}", self.prefix)
    }

    /// String with a TTL, beside `key`: written so that a command which only reads has something to wait for
    /// (`redis.wait_replicas`).
    #[must_use]
    pub(crate) fn barrier(&self, key: &str) -> String {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
        // A key without a tag is its own.
        format!("{}:{{{}}}:barrier", self.prefix, tag.filter(|tag| !tag.is_empty()).unwrap_or(key))
    }

    /// Sorted set: everyone in a sale's waiting room, in the order of their places.
    #[must_use]
    pub fn room(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "room", sale)
    }

    /// Hash: how far a waiting room has been released.
    #[must_use]
    pub fn door(&self, shard: u16, sale: &SaleId) -> String {
        self.of_sale(shard, "door", sale)
    }

    /// Hash: the cached sale and its sold-out mark.
    #[must_use]
    pub fn sale(&self, sale: &SaleId) -> String {
        format!("{}:sale:{sale}", self.prefix)
    }

    /// String: owner of the lock that guards loading a sale from the database.
    #[must_use]
    pub fn sale_lock(&self, sale: &SaleId) -> String {
        format!("{}:lock:sale:{sale}", self.prefix)
    }

    /// Hash: leased node ids of this shard; a process that cannot reach one shard takes a node id of another.
    #[must_use]
    pub fn nodes(&self, shard: u16) -> String {
        self.of_shard(shard, "nodes")
    }
}

/// The shard that has a sale's waiting room, `0..shards`: the whole room on one, so that one script orders it; another for
/// each sale, so that rooms spread over the nodes.
#[must_use]
pub(crate) fn room_shard(sale: &SaleId, shards: u16) -> u16 {
    order_queue_index(sale.as_str(), shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_contracts() {
        let keys = Keys::new("seckill".into());
        let sale = SaleId::parse("s-1").unwrap();
        assert_eq!(keys.meta(0, &sale), "seckill:{0}:meta:s-1");
        assert_eq!(keys.outbox(3), "seckill:{3}:outbox");
        assert_eq!(keys.relay_dlq(0), "seckill:{0}:relay-dlq");
        assert_eq!(keys.processing(0, "relay-a"), "seckill:{0}:processing:relay-a");
        assert_eq!(keys.sale(&sale), "seckill:sale:s-1");
        assert_eq!(keys.barrier(&keys.ledger(7, &sale)), "seckill:{7}:barrier");
        assert_eq!(keys.barrier(&keys.sale(&sale)), "seckill:{seckill:sale:s-1}:barrier");
        assert_eq!(keys.sale_of_meta(&keys.meta(12, &sale)), Some(sale.clone()));
        let others =
            [keys.stock(0, &sale), keys.sale(&sale), "seckill:{x}:meta:s-1".into(), "other:{0}:meta:s-1".into()];
        assert!(others.iter().all(|key| keys.sale_of_meta(key).is_none()));
    }
}
