//! The boot fence of a shard's server: which incarnation it is in, and the reserve script that may be loaded there.

use super::connection::{RedisFault, ServerIncarnation};
use super::keyspace::Keyspace;
use std::sync::Arc;

/// The reserve script on the server of a shard: whether it is loaded, and loading it.
#[derive(Clone)]
pub struct BootFence {
    pub(super) redis: Arc<Keyspace>,
}

impl BootFence {
    /// The incarnation that the server of a shard is in.
    pub async fn incarnation(&self, shard: u16) -> Result<ServerIncarnation, RedisFault> {
        ServerIncarnation::of(&*self.redis.node_of_shard(shard)?).await
    }

    /// Whether the server of a shard knows the reserve script: no restart or fail-over since the boot fence was passed.
    pub async fn was_passed(&self, shard: u16) -> Result<bool, RedisFault> {
        self.redis.reserve_scripts.is_loaded(&self.redis.keys.outbox(shard)).await
    }

    /// Loads the reserve script on the server of a shard, for the incarnation it was compared in. Only to be called after
    /// every live sale passed the boot fence there.
    pub async fn load_script(&self, shard: u16, incarnation: &ServerIncarnation) -> Result<(), RedisFault> {
        self.redis.reserve_scripts.load(&self.redis.keys.outbox(shard), incarnation).await
    }

    /// Shards by the server they are on at the moment; those whose server is not known stand together.
    #[must_use]
    pub(crate) fn shards_by_server(&self) -> Vec<Vec<u16>> {
        self.redis.shards_by_server()
    }
}
