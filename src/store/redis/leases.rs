//! Leases of node ids for request ids; see `domain/snowflake.rs` for what the fences mean.

use super::connection::{RedisFault, integer, list, optional_text, text};
use super::keyspace::Keyspace;
use super::scripts::LEASE_NODE;
use std::sync::Arc;

/// A lease that was granted or renewed. Unix milliseconds by the holder's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLease {
    /// The node id.
    pub node: u16,
    /// Nothing at or before this may be issued by a new holder.
    pub after_ms: i64,
    /// Nothing after this may be issued.
    pub fence_ms: i64,
}

/// The times of a lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTime {
    /// Now, Unix milliseconds by the holder's clock.
    pub now_ms: i64,
    /// How long it is to last, milliseconds.
    pub lease_ms: i64,
}

/// A lease as it is stored: who had the node id last, and up to when.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct HeldLease {
    /// The node id.
    pub node: String,
    /// The process that took it last.
    pub owner: String,
    /// It may issue nothing after this, Unix milliseconds by its own clock; long past: it is free.
    pub fence_ms: i64,
}

/// Leases of node ids for request ids.
#[derive(Clone)]
pub struct NodeLeases {
    pub(super) redis: Arc<Keyspace>,
}

impl NodeLeases {
    /// The leases of node ids that were ever taken on a shard (1,024 ids over all shards at most).
    pub(crate) async fn all(&self, shard: u16) -> Result<Vec<HeldLease>, RedisFault> {
        let fields = self.redis.command("HGETALL", 0, vec![text(self.redis.keys.nodes(shard))]).await?;
        let fields: Vec<String> = list(fields)?.iter().filter_map(optional_text).collect();
        Ok(fields.chunks_exact(2).filter_map(|pair| read_lease(pair.first()?, pair.get(1)?)).collect())
    }

    /// Takes (`take`) or renews the lease of `node`; `None` when another owner holds it. Repeating is safe.
    pub async fn lease(
        &self,
        node: u16,
        owner: &str,
        time: LeaseTime,
        take: bool,
    ) -> Result<Option<NodeLease>, RedisFault> {
        let LeaseTime { now_ms, lease_ms } = time;
        let take = if take { "1" } else { "0" };
        let args =
            [node.to_string().as_str(), owner, &now_ms.to_string(), &lease_ms.to_string(), take].map(text).to_vec();
        // Were it lost by a fail-over, the node id could be leased again for the same time.
        let fences = list(
            self.redis
                .script_replicated(&LEASE_NODE, vec![self.redis.keys.nodes(node % self.redis.shards.max(1))], args)
                .await?,
        )?;
        match fences.as_slice() {
            [before, now] => {
                let (after_ms, fence_ms) = (integer(before)?, integer(now)?);
                Ok((fence_ms > 0).then_some(NodeLease { node, after_ms, fence_ms }))
            }
            other => Err(RedisFault::Contract(format!("lease_node answered {other:?}"))),
        }
    }
}

/// Reads `<fence_ms> <owner>`, as `lua/lease_node.lua` writes it.
fn read_lease(node: &str, record: &str) -> Option<HeldLease> {
    let (fence, owner) = record.split_once(' ')?;
    Some(HeldLease { node: node.to_owned(), owner: owner.to_owned(), fence_ms: fence.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_as_the_script_writes_it() {
        let lease = read_lease("7", "1700000000000 web 1-00ff").unwrap();
        assert_eq!((lease.node.as_str(), lease.owner.as_str(), lease.fence_ms), ("7", "web 1-00ff", 1_700_000_000_000));
        assert_eq!(read_lease("7", "soon web"), None);
        assert_eq!(read_lease("7", "1700000000000"), None);
    }
}
