//! Several processes of one system, and the end of tests that break something for good.

use super::World;
use crate::support::basics::resp::RawRedis;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;

/// All but P5, which would rebuild what a test has broken.
pub const NO_REPAIR: [Role; 3] = [Role::Api, Role::Relay, Role::Consumer];

impl World {
    /// The end of a test that has broken something for good: stops the roles and asks nothing.
    pub async fn stop(mut self) {
        self.stop_roles().await;
    }

    /// Settings that lead another process to this world's servers and keys, as `section.key=value`.
    pub fn own_sets(&self) -> Vec<String> {
        let s = &self.settings;
        vec![
            format!("redis.url={}", s.redis.url.expose()),
            format!("rabbitmq.url={}", s.rabbitmq.url.expose()),
            format!("mysql.url={}", s.mysql.url.expose()),
            format!("redis.prefix={}", s.redis.prefix),
            self.outbox_set().to_owned(),
            format!("redis.shards={}", s.redis.shards),
            format!("redis.mode={}", serde_json::to_value(s.redis.mode).expect("a name").as_str().expect("a name")),
        ]
    }

    /// Another process of the same system: the same servers and keys, its own roles.
    pub async fn second_world(&self, roles: &[Role], set: &[&str]) -> Self {
        let s = &self.settings;
        let urls = (s.redis.url.expose(), s.rabbitmq.url.expose(), s.mysql.url.expose());
        Self::on(urls, &s.redis.prefix, roles, set).await
    }

    /// Fails when a sale that no buyer could buy of has lost a unit, or has a trace of a purchase.
    pub async fn assert_untouched(&self, sale: &SaleId, stock: i64) {
        let (mut redis, keys) = (RawRedis::of(self).await, &self.servers.redis.keys);
        assert_eq!(redis.call(&["GET", &keys.stock(0, sale)]).await.text(), stock.to_string(), "stock");
        assert_eq!(redis.call(&["HLEN", &keys.ledger(0, sale)]).await.int(), 1, "the ledger has its marker only");
        assert_eq!(redis.call(&["HLEN", &keys.buyers(0, sale)]).await.int(), 1, "buyers have their marker only");
        assert_eq!(redis.call(&["HGET", &keys.meta(0, sale), "number"]).await.text(), "0", "acceptance number");
        assert_eq!(redis.call(&["XLEN", &keys.outbox(0)]).await.int(), 0, "outbox");
    }
}
