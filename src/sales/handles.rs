//! What the work on a sale may touch in Redis.

use crate::store::redis::{SaleCache, SaleKeys};

/// The handles of one sale's keys.
#[derive(Clone)]
pub struct SaleHandles {
    /// The sale's keys as a whole.
    pub(crate) sale_keys: SaleKeys,
    /// The cached sale, which is forgotten after a change.
    pub(crate) sale_cache: SaleCache,
}
