//! The second Redis client on the keys of one world.

use super::World;
use super::shared_servers::is_shared_redis;
use crate::support::basics::resp::{RawRedis, Reply};
use std::collections::BTreeMap;

impl RawRedis {
    /// To the Redis of a world.
    pub async fn of(world: &World) -> Self {
        let url = world.settings.redis.url.expose();
        let mut redis = Self::at(url, &world.settings.redis.prefix).await;
        redis.is_shared = is_shared_redis(url);
        redis
    }

    /// Every key of the world with its serialised value.
    pub async fn dump(&mut self) -> BTreeMap<String, Reply> {
        let mut all = BTreeMap::new();
        for key in self.keys().await {
            let value = self.call(&["DUMP", &key]).await;
            all.insert(key, value);
        }
        all
    }

    /// Deletes every key of the world.
    pub async fn clear(&mut self) {
        let keys = self.keys().await;
        if !keys.is_empty() {
            self.call(&[&["DEL"], &keys.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat()).await;
        }
    }
}
