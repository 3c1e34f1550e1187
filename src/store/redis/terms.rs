//! Whether Redis sells a sale by the terms that a process knows: what there is to ask while the database does not answer, and what
//! shows that a warmed sale needs nothing done.

use super::connection::{RedisFault, list, optional_text, text};
use super::keyspace::Keyspace;
use super::sale_keys::SaleKeys;
use super::stock::Stock;
use crate::domain::sale::{MetaState, Sale, SaleStatus};

impl Keyspace {
    /// Whether the sale's meta on this shard has exactly this status, epoch, window, limits and door, for as many shards as here.
    async fn has_terms_of(&self, sale: &Sale, shard: u16) -> Result<bool, RedisFault> {
        let state = match sale.status {
            SaleStatus::Draft => return Ok(false),
            SaleStatus::Warmed => MetaState::Open,
            SaleStatus::Paused => MetaState::Paused,
            SaleStatus::Closed => MetaState::Closed,
        };
        let terms = [
            ("drop", sale.drop_in_meta()),
            ("state", state.code().to_owned()),
            ("epoch", sale.epoch.to_string()),
            ("starts", sale.starts_at_ms.max(0).to_string()),
            ("ends", sale.ends_at_ms.max(0).to_string()),
            ("limit", sale.policy.limit().unwrap_or(0).to_string()),
            ("door", sale.door_in_meta().to_owned()),
            ("shards", self.shards.to_string()),
        ];
        let mut args = vec![text(self.keys.meta(shard, &sale.sale_id))];
        args.extend(terms.iter().map(|(field, _)| text(*field)));
        let found = list(self.command("HMGET", 0, args).await?)?;
        Ok(found.len() == terms.len()
            && found.iter().zip(&terms).all(|(found, (_, term))| optional_text(found).unwrap_or_default() == *term))
    }
}

impl Stock {
    /// Whether this shard sells by exactly the terms of this sale.
    pub(crate) async fn has_terms_of(&self, sale: &Sale, shard: u16) -> Result<bool, RedisFault> {
        self.redis.has_terms_of(sale, shard).await
    }
}

impl SaleKeys {
    /// Whether every shard has exactly the terms of this sale. All shards are asked at once.
    pub(crate) async fn have_terms_of(&self, sale: &Sale) -> Result<bool, RedisFault> {
        let asked = (0..self.redis.shards).map(|shard| self.redis.has_terms_of(sale, shard));
        Ok(futures::future::try_join_all(asked).await?.into_iter().all(|has_them| has_them))
    }
}
