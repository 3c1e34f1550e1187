//! The boot fence: after a restart or fail-over of Redis, selling goes on only if Redis did not go back in time.
//!
//! A restarted or promoted server has an empty script cache, so the reserve script answers NOSCRIPT. Before it is loaded
//! again, the acceptance number of every live sale is compared with the highest one in the database. Redis behind the
//! database means Redis was rewound (an old file was restored, a lagging replica was promoted): the sale is frozen until P5
//! has rebuilt it (window 17).
//!
//! Input: a shard whose server does not know the script. Output: the script loaded there, or a [`FenceFault`]. A crash leaves some sales
//! frozen and the script not loaded: the next purchase compares again.
//!
//! With several Redis servers each has its own fence: sales on the others do not wait for it. A server is compared once, however
//! many groups of its shards wait for it.

use super::DurabilityGuard;
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::faults::{between_steps, left_out};
use crate::runtime::now_ms;
use crate::sales::rows::SaleRows;
use crate::store::mysql::DbError;
use crate::store::redis::{BootFence, Meta, RedisFault, SaleKeys, Transfers};
use futures::future::try_join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Longest comparison of a few sales.
const DEADLINE: Duration = Duration::from_secs(10);
/// Added for each live sale and shard: one look-up on each side.
const DEADLINE_PER_CHECK: Duration = Duration::from_millis(10);
/// Look-ups under way at once; the database's connections are also there for others.
const CHECKS_AT_ONCE: usize = 8;
/// Sales that ended longer ago are not compared: they sell nothing any more.
const COMPARED_AFTER_END_MS: i64 = 7 * 86_400_000;

/// Why the fence could not be passed. The reserve script stays unloaded and buyers get 503.
#[derive(Debug, thiserror::Error)]
pub enum FenceFault {
    /// The database does not answer; loading without the comparison could oversell.
    #[error("boot fence: {0}")]
    Database(#[from] DbError),
    /// Redis stopped answering again.
    #[error("boot fence: {0}")]
    Redis(#[from] RedisFault),
    /// The server came back with settings that break a promise.
    #[error("boot fence: {0}")]
    Unsafe(String),
    /// The comparison took too long.
    #[error("boot fence: no result within {} s", .0.as_secs())]
    Slow(Duration),
    /// Redis restarted while it was compared; the next request compares again.
    #[error("boot fence: redis restarted during the comparison")]
    RestartedMeanwhile,
}

/// What the fence may touch in Redis.
#[derive(Clone)]
pub struct FenceHandles {
    /// Which server has what, and the reserve script there.
    pub servers: BootFence,
    /// The sales' numbers and states.
    pub sale_keys: SaleKeys,
    /// Both sides of the transfers.
    pub transfers: Transfers,
}

/// The comparison, one at a time for each server in a process.
#[derive(Clone)]
pub struct Fence {
    redis: FenceHandles,
    sales: SaleRows,
    guard: DurabilityGuard,
    shards: u16,
    /// By shard; that of a server's first one is held while the server is compared.
    comparing: Arc<[Mutex<()>]>,
}

impl Fence {
    /// A fence between this Redis and this database; `guard` watches this Redis.
    #[must_use]
    pub fn new(redis: FenceHandles, sales: SaleRows, guard: DurabilityGuard, shards: u16) -> Self {
        let comparing = (0..shards).map(|_shard| Mutex::default()).collect();
        Self { redis, sales, guard, shards, comparing }
    }

    /// Compares every live sale with what the server of `shard` has of it, freezes those that were rewound, then loads the
    /// reserve script there. After an error the script is not loaded for this incarnation of the server, and buyers get 503; the next
    /// purchase compares again.
    pub async fn pass(&self, shard: u16) -> Result<(), FenceFault> {
        let first = self.shards_beside(shard).into_iter().min().unwrap_or(shard);
        let _alone = match self.comparing.get(usize::from(first)) {
            Some(comparing) => Some(timeout(DEADLINE, comparing.lock()).await.map_err(|_| FenceFault::Slow(DEADLINE))?),
            None => None,
        };
        // Another group has passed the fence while this one waited.
        if self.redis.servers.was_passed(shard).await? { Ok(()) } else { self.compare_and_load(shard).await }
    }

    async fn compare_and_load(&self, shard: u16) -> Result<(), FenceFault> {
        let incarnation = self.redis.servers.incarnation(shard).await?;
        if left_out!(BootFence) {
            return Ok(self.redis.servers.load_script(shard, &incarnation).await?);
        }
        // A server that restarted may have come back with other settings than it had.
        if let Some(refusal) = self.guard.check().await? {
            return Err(FenceFault::Unsafe(refusal));
        }
        let on_server = self.shards_beside(shard);
        self.compare(&on_server).await?;
        // A restart between comparison and loading would hand the script to data that was not compared.
        if self.redis.servers.incarnation(shard).await? != incarnation || self.shards_beside(shard) != on_server {
            return Err(FenceFault::RestartedMeanwhile);
        }
        self.redis.servers.load_script(shard, &incarnation).await?;
        // The script sells nothing under another replication id. A restart that kept the id has the script: its data are compared now.
        if self.redis.servers.incarnation(shard).await? != incarnation {
            self.compare(&on_server).await?;
        }
        Ok(())
    }

    /// The shards on the same server, this one among them.
    fn shards_beside(&self, shard: u16) -> Vec<u16> {
        let all = self.redis.servers.shards_by_server();
        all.into_iter().find(|shards| shards.contains(&shard)).unwrap_or_else(|| vec![shard])
    }

    async fn compare(&self, shards: &[u16]) -> Result<(), FenceFault> {
        let clocks = try_join_all(shards.iter().map(|shard| self.redis.sale_keys.clock(*shard))).await?;
        let sales = self.sales.live_sales(now_ms() - COMPARED_AFTER_END_MS).await?;
        let pairs: Vec<(&Sale, u16)> =
            sales.iter().flat_map(|sale| shards.iter().map(move |shard| (sale, *shard))).collect();
        let checks = async {
            for chunk in pairs.chunks(CHECKS_AT_ONCE) {
                try_join_all(chunk.iter().map(|(sale, shard)| self.compare_one(sale, *shard))).await?;
            }
            // What a server lost may have been the door only: no number is missing then, and a click would get a unit of the line.
            between_steps("fence: compared").await;
            for sale in sales.iter().filter(|sale| sale.by_line && !left_out!(DoorInFence)) {
                for (shard, read_at) in shards.iter().zip(&clocks) {
                    self.redis.sale_keys.set_terms_read_at(sale, *shard, *read_at).await?;
                }
            }
            if self.shards > 1 && !left_out!(PairsInFence) {
                for chunk in sales.chunks(CHECKS_AT_ONCE) {
                    try_join_all(chunk.iter().map(|sale| self.compare_transfers(sale, shards))).await?;
                }
            }
            Ok::<(), FenceFault>(())
        };
        let count = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
        let limit = DEADLINE + DEADLINE_PER_CHECK.saturating_mul(count);
        timeout(limit, checks).await.map_err(|_| FenceFault::Slow(limit))??;
        tracing::info!(
            phase = "p2_reserve",
            ?shards,
            sales = sales.len(),
            "boot fence: every live sale that can be read was compared"
        );
        Ok(())
    }

    /// Compares a sale on a shard, and freezes it if it went back in time.
    async fn compare_one(&self, sale: &Sale, shard: u16) -> Result<(), FenceFault> {
        let mut sale = sale.clone();
        let judged_epoch = loop {
            let Some(judged_epoch) = self.epoch_to_freeze(&sale, shard).await? else { return Ok(()) };
            // A rebuild may have ended since the sale was read: then Redis is in the next epoch, and as new as the database.
            let Some(now) = self.sales.get(&sale.sale_id).await? else { return Ok(()) };
            if now.epoch == sale.epoch {
                break judged_epoch;
            }
            sale = now;
        };
        self.freeze(&sale.sale_id, shard, judged_epoch).await?;
        tracing::error!(
            phase = "p2_reserve", sale = %sale.sale_id, shard,
            "redis went back in time, the sale is frozen until it is rebuilt"
        );
        Ok(())
    }

    /// The epoch up to which the sale has to be frozen: the later of Redis' and the database's. `None` if Redis is in the sale's epoch
    /// and has all numbers that the database has, or if its keys are lost or damaged: the script sells nothing then.
    async fn epoch_to_freeze(&self, sale: &Sale, shard: u16) -> Result<Option<u32>, FenceFault> {
        let highest = self.sales.highest_number(&sale.sale_id, shard, sale.epoch).await?;
        let Some(meta) = self.readable_meta(&sale.sale_id, shard).await? else { return Ok(None) };
        let in_step = meta.epoch == sale.epoch && meta.number >= highest;
        if in_step {
            tracing::debug!(phase = "p2_reserve", sale = %sale.sale_id, shard, number = meta.number, highest, "boot fence passed");
        } else {
            tracing::warn!(
                phase = "p2_reserve", sale = %sale.sale_id, shard, number = meta.number, highest, epoch = meta.epoch,
                epoch_of_database = sale.epoch, "redis and the database differ"
            );
        }
        Ok((!in_step).then_some(meta.epoch.max(sale.epoch)))
    }

    /// Compares both sides of the sale's transfers from and to `shards`, and freezes it if one side went back. What is on a server that
    /// cannot be read now is compared when that server passes its fence, and by each audit.
    async fn compare_transfers(&self, sale: &Sale, shards: &[u16]) -> Result<(), FenceFault> {
        let (rewound, unread) = self.redis.transfers.rewound(&sale.sale_id, sale.epoch).await;
        if !unread.is_empty() {
            tracing::warn!(phase = "p2_reserve", sale = %sale.sale_id, ?unread, "transfers of these shards are not compared");
        }
        let Some(pair) = rewound.into_iter().find(|pair| pair.is_of(shards)) else { return Ok(()) };
        self.freeze(&sale.sale_id, shards.first().copied().unwrap_or(0), sale.epoch).await?;
        tracing::error!(
            phase = "p2_reserve", sale = %sale.sale_id, ?pair,
            "redis forgot a transfer between two shards, the sale is frozen until it is rebuilt"
        );
        Ok(())
    }

    /// Freezes the sale on all shards: units that moved between the buckets went back in time on the other shards too. `first` before the others:
    /// another server may be down, and then this one stays behind its fence. Keys of a later epoch than was judged sell on.
    pub(super) async fn freeze(&self, sale: &SaleId, first: u16, judged_epoch: u32) -> Result<(), RedisFault> {
        let others = (0..self.shards).filter(|shard| *shard != first);
        for shard in std::iter::once(first).chain(others) {
            self.redis.sale_keys.freeze(sale, shard, judged_epoch).await?;
        }
        metrics::counter!("seckill_p2_reserve_frozen_total").increment(1);
        Ok(())
    }

    /// The meta to compare; `None` when it is lost or unreadable. The script sells nothing of such a sale (A6) and P5 reports
    /// it; the other sales must not wait for it.
    async fn readable_meta(&self, sale: &SaleId, shard: u16) -> Result<Option<Meta>, RedisFault> {
        let damage = match self.redis.sale_keys.meta(sale, shard).await {
            Ok(Some(meta)) => return Ok(Some(meta)),
            Ok(None) => "lost".to_owned(),
            Err(RedisFault::Contract(error)) => error,
            Err(RedisFault::Refused(error)) if error.starts_with("WRONGTYPE") => error,
            Err(fault) => return Err(fault),
        };
        tracing::error!(phase = "p2_reserve", %sale, shard, %damage, "the sale's keys are lost or damaged, it stays closed");
        Ok(None)
    }
}
