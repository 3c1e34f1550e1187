//! Whether Redis sells a sale by the terms that a process remembers: what there is to ask while the database does not answer.

use super::connection::{RedisFault, list, optional_text, text};
use super::stock::Stock;
use crate::domain::sale::{MetaState, Sale, SaleStatus};

impl Stock {
    /// Whether the sale's meta on this shard has exactly this status, epoch, window, limit and door.
    pub(crate) async fn has_terms_of(&self, sale: &Sale, shard: u16) -> Result<bool, RedisFault> {
        let state = match sale.status {
            SaleStatus::Draft => return Ok(false),
            SaleStatus::Warmed => MetaState::Open,
            SaleStatus::Paused => MetaState::Paused,
            SaleStatus::Closed => MetaState::Closed,
        };
        let terms = [
            ("state", state.code().to_owned()),
            ("epoch", sale.epoch.to_string()),
            ("starts", sale.starts_at_ms.max(0).to_string()),
            ("ends", sale.ends_at_ms.max(0).to_string()),
            ("limit", sale.policy.limit().unwrap_or(0).to_string()),
            ("door", sale.door().code().to_owned()),
        ];
        let mut args = vec![text(self.redis.keys.meta(shard, &sale.sale_id))];
        args.extend(terms.iter().map(|(field, _)| text(*field)));
        let found = list(self.redis.command("HMGET", 0, args).await?)?;
        Ok(found.len() == terms.len()
            && found.iter().zip(&terms).all(|(found, (_, term))| optional_text(found).as_ref() == Some(term)))
    }
}
