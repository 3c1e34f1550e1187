//! The buyers hash, in pages: the last place that names a request whose other records are lost.

use super::connection::{RedisFault, list, optional_text, text};
use super::keyspace::Keyspace;
use crate::domain::ids::{RequestId, SaleId, UserId};
use fred::types::Value;
use std::sync::Arc;

/// The record of a buyer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buyer {
    /// The buyer of the record.
    pub user_id: UserId,
    /// Units bought, of all requests.
    pub units: u32,
    /// The first request.
    pub(crate) first_request: RequestId,
}

/// Who bought in a sale, as Redis remembers it.
#[derive(Clone)]
pub struct Buyers {
    pub(super) redis: Arc<Keyspace>,
}

impl Buyers {
    /// One page of a sale's buyers, about `count` from `cursor` (`"0"` begins), and where to go on; `None` at the end. One may
    /// come twice; what cannot be read is left out.
    pub(crate) async fn page(
        &self,
        sale: &SaleId,
        shard: u16,
        cursor: &str,
        count: u32,
    ) -> Result<(Vec<Buyer>, Option<String>), RedisFault> {
        let args =
            vec![text(self.redis.keys.buyers(shard, sale)), text(cursor), text("COUNT"), text(count.to_string())];
        let mut reply = list(self.redis.command("HSCAN", 0, args).await?)?.into_iter();
        let next = reply.next().and_then(|cursor| optional_text(&cursor)).unwrap_or_default();
        let fields = list(reply.next().unwrap_or(Value::Null))?;
        let read = |pair: &[Value]| {
            let record = pair.get(1)?.as_string()?;
            let (units, first) = record.split_once(' ')?;
            let user_id = UserId::parse(&pair.first()?.as_string()?).ok()?;
            Some(Buyer { user_id, units: units.parse().ok()?, first_request: RequestId::parse(first).ok()? })
        };
        Ok((fields.chunks_exact(2).filter_map(read).collect(), (next != "0").then_some(next)))
    }
}
