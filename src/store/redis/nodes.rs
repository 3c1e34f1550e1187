//! Leases of node ids for request ids; see `domain/snowflake.rs` for what the fences mean.

use super::client::{RedisStore, integer, list, text};
use super::fault::RedisFault;
use super::scripts::LEASE_NODE;

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

impl RedisStore {
    /// Takes (`take`) or renews the lease of `node`; `None` when another owner holds it.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn lease_node(
        &self,
        node: u16,
        owner: &str,
        (now_ms, lease_ms): (i64, i64),
        take: bool,
    ) -> Result<Option<NodeLease>, RedisFault> {
        let take = if take { "1" } else { "0" };
        let args =
            [node.to_string().as_str(), owner, &now_ms.to_string(), &lease_ms.to_string(), take].map(text).to_vec();
        // Were it lost by a fail-over, the node id could be leased again for the same time.
        let fences = list(self.kept(&LEASE_NODE, vec![self.keys.nodes(node % self.shards.max(1))], args).await?)?;
        match fences.as_slice() {
            [before, now] => {
                let (after_ms, fence_ms) = (integer(before)?, integer(now)?);
                Ok((fence_ms > 0).then_some(NodeLease { node, after_ms, fence_ms }))
            }
            other => Err(RedisFault::Contract(format!("lease_node answered {other:?}"))),
        }
    }
}
