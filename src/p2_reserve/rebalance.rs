//! Stock moves to the buyer (B4): brings units from the other buckets to a home bucket that has too few.
//!
//! Input: a purchase that is too big for its home bucket. Output: units in the home bucket, or the fact that there are not
//! enough over all buckets. One rebalance at a time for each (sale, shard) in a process; the other purchases wait for it.
//!
//! A crash between take and give leaves units in a transfer record: they are not sold, and the sale is not sold out while
//! they are there. The next rebalance for the same shard finds the record, else P5 does. A crash between give and forget
//! leaves a record that was given; giving it again changes nothing.
//!
//! A bucket whose server forgot that it gave units has them once more. What shows it here freezes the sale for a rebuild: a gift that
//! its target refuses, or fewer units sent than received in two equal readings of all buckets.

use super::ReserveContext;
use crate::domain::ids::SaleId;
use crate::domain::sale::MetaState;
use crate::faults::crash_point;
use crate::store::redis::{Between, Bucket, Given, RedisFault, Taken};
use futures::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// Times all buckets are read in one rebalance. More than one is only needed when units move or are sold meanwhile.
const ROUNDS_MAX: usize = 8;
/// Results remembered; above it, results that no purchase waits for are dropped.
const RESULTS_MAX: usize = 1_024;

/// The bucket that is too short.
#[derive(Debug, Clone, Copy)]
pub(super) struct HomeBucket<'a> {
    pub sale: &'a SaleId,
    pub shard: u16,
    /// The sale's epoch, as the caller knows it.
    pub epoch: u32,
}

/// The result of a rebalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rebalanced {
    /// Units came into the home bucket: try again.
    Brought,
    /// Units left over all buckets, fewer than wanted; none is between two.
    Left(u64),
    /// Not known: units are between two buckets, or a bucket cannot be reached or is not open.
    Busy,
}

/// When the last rebalance of a bucket began, and its result. Locked while one runs.
type LastRebalance = Arc<tokio::sync::Mutex<Option<(Instant, Rebalanced)>>>;

/// The rebalances of one process.
#[derive(Default)]
pub(super) struct Rebalances {
    results: Mutex<HashMap<(SaleId, u16), LastRebalance>>,
}

impl Rebalances {
    fn last(&self, bucket: HomeBucket<'_>) -> LastRebalance {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if results.len() >= RESULTS_MAX {
            results.retain(|_, result| Arc::strong_count(result) > 1);
        }
        results.entry((bucket.sale.clone(), bucket.shard)).or_default().clone()
    }
}

/// Brings units until `wanted` are in the bucket, or waits for a rebalance that began after this call.
pub(super) async fn rebalance(context: &Arc<ReserveContext>, bucket: HomeBucket<'_>, wanted: u64) -> Rebalanced {
    let asked_at = Instant::now();
    let mut last = context.rebalances.last(bucket).lock_owned().await;
    match *last {
        Some((began_at, result)) if began_at >= asked_at => match result {
            // Enough for this purchase, although it was too little for the other one.
            Rebalanced::Left(left) if left >= wanted => {}
            Rebalanced::Brought | Rebalanced::Left(_) | Rebalanced::Busy => return result,
        },
        Some(_) | None => {}
    }
    let HomeBucket { sale, shard, epoch } = bucket;
    let work = Rebalancing { context: context.clone(), sale: sale.clone(), target: shard, epoch };
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
    // A task of its own: a buyer who goes away must not leave units between two buckets.
    let rebalanced = context.runtime.spawn(async move {
        let began_at = Instant::now();
        let result = work.run(wanted).await.unwrap_or_else(|fault| {
            tracing::warn!(phase = "p2_reserve", sale = %work.sale, shard = work.target, error = %fault, "units could not be brought");
            Rebalanced::Busy
        });
        *last = Some((began_at, result));
        result
    });
    rebalanced.await.unwrap_or(Rebalanced::Busy)
}

struct Rebalancing {
    context: Arc<ReserveContext>,
    sale: SaleId,
    target: u16,
    epoch: u32,
}

impl Rebalancing {
    async fn run(&self, wanted: i64) -> Result<Rebalanced, RedisFault> {
        for _ in 0..ROUNDS_MAX {
            let (buckets, all) = self.buckets().await;
            let here = buckets.get(usize::from(self.target)).map_or(0, |bucket| bucket.stock);
            if here >= wanted {
                return Ok(Rebalanced::Brought);
            }
            let total: i64 = buckets.iter().map(|bucket| bucket.stock).sum();
            let between: i64 = buckets.iter().map(|bucket| bucket.sent - bucket.received).sum();
            if total >= wanted {
                if self.bring(&buckets, wanted - here).await? > 0 {
                    return Ok(Rebalanced::Brought);
                }
                continue;
            }
            if between < 0 && all && self.buckets().await == (buckets.clone(), true) {
                self.freeze("fewer units were sent than received").await?;
                return Ok(Rebalanced::Busy);
            }
            if between != 0 || !all {
                // A transfer that was begun for this very bucket is found by taking again; the others are not this one's.
                let brought = self.bring(&buckets, wanted - here).await? > 0;
                return Ok(if brought { Rebalanced::Brought } else { Rebalanced::Busy });
            }
            // The buckets were read one after the other, so a moving unit could be missed. If nothing changed since, none was.
            if self.buckets().await == (buckets, true) {
                return Ok(Rebalanced::Left(total.unsigned_abs()));
            }
        }
        Ok(Rebalanced::Busy)
    }

    /// The buckets of the sale by shard, and whether all of them are usable. A bucket that is missing, of another epoch, not
    /// open, or on a server that cannot be reached counts as empty: its units can neither be brought nor counted.
    async fn buckets(&self) -> (Vec<Bucket>, bool) {
        let context = &self.context;
        let reads = (0..context.shards).map(|shard| context.redis.transfers.bucket(&self.sale, shard));
        let usable = |bucket: &Bucket| bucket.state == MetaState::Open && bucket.epoch == self.epoch;
        let buckets: Vec<Option<Bucket>> =
            join_all(reads).await.into_iter().map(|bucket| bucket.ok().flatten().filter(usable)).collect();
        let all = buckets.iter().all(Option::is_some);
        let nothing = Bucket { state: MetaState::Open, epoch: self.epoch, number: 0, stock: 0, sent: 0, received: 0 };
        (buckets.into_iter().map(|bucket| bucket.unwrap_or(nothing)).collect(), all)
    }

    /// Moves units here, largest bucket first, until `missing` are here. Returns how many came. A server that gives nothing
    /// at the moment, because it cannot be reached or lacks its replicas, does not stop the others.
    async fn bring(&self, buckets: &[Bucket], missing: i64) -> Result<i64, RedisFault> {
        let mut sources: Vec<(u16, i64)> = (0..).zip(buckets).map(|(shard, bucket)| (shard, bucket.stock)).collect();
        sources.retain(|(shard, _)| *shard != self.target);
        sources.sort_by_key(|(_, stock)| std::cmp::Reverse(*stock));
        let (mut brought, mut failed) = (0, None);
        for (source, _) in sources {
            if brought >= missing {
                break;
            }
            match self.transfer(source, missing - brought).await {
                Ok(came) => brought += came,
                Err(fault) => failed = Some(fault),
            }
        }
        match failed {
            Some(fault) if brought == 0 => Err(fault),
            Some(_) | None => Ok(brought),
        }
    }

    /// Take, give, forget. Returns the units that came.
    async fn transfer(&self, source: u16, wanted: i64) -> Result<i64, RedisFault> {
        let transfers = &self.context.redis.transfers;
        let between = Between { source, target: self.target };
        let transfer = match transfers.take(&self.sale, between, self.epoch, wanted).await? {
            Taken::Record(transfer) => transfer,
            Taken::Empty | Taken::Refused => return Ok(0),
        };
        crash_point!(AfterTake);
        let came = match transfers.give(&self.sale, &transfer).await? {
            Given::Now => transfer.units,
            Given::Before => 0,
            Given::KeysMissing | Given::Refused => return Ok(0),
            // This call may only come late, after others have finished the transfer: both sides are read again.
            Given::Behind => {
                let (rewound, _unread) = transfers.rewound(&self.sale, self.epoch).await;
                if rewound.iter().any(|pair| pair.sells_twice()) {
                    self.freeze("a shard forgot that it gave units").await?;
                }
                return Ok(0);
            }
        };
        crash_point!(AfterGive);
        transfers.forget(&self.sale, &transfer).await?;
        metrics::counter!("seckill_p2_reserve_transfers_total").increment(1);
        metrics::counter!("seckill_p2_reserve_transferred_units_total").increment(came.unsigned_abs());
        tracing::debug!(phase = "p2_reserve", sale = %self.sale, ?transfer, came, "units moved");
        Ok(came)
    }

    /// Units are in two buckets: nothing more is sold before a rebuild has counted them again.
    async fn freeze(&self, why: &'static str) -> Result<(), RedisFault> {
        self.context.fence.freeze(&self.sale, self.target, self.epoch).await?;
        tracing::error!(
            phase = "p2_reserve", sale = %self.sale, shard = self.target, why,
            "redis went back in time, the sale is frozen until it is rebuilt"
        );
        Ok(())
    }
}
