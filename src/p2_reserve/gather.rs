//! Stock moves to the buyer (B4): brings units from the other buckets to a home bucket that has too few.
//!
//! Input: a purchase that its home bucket is too short for. Output: units in the home bucket, or the word that there are no
//! more over all buckets. One gathering at a time for each (sale, shard) in a process; the others wait for it.
//!
//! A crash between take and give leaves units in a transfer record: they are not sold, and the sale is not sold out while
//! they lie there. The next gathering for the same shard finds the record, else P5 does. A crash between give and forget
//! leaves a record that was given; giving it again changes nothing.

use super::Inner;
use crate::domain::ids::SaleId;
use crate::domain::sale::MetaState;
use crate::faults::crash_point;
use crate::store::redis::{Bucket, Given, RedisFault, Taken};
use futures::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// Looks at all buckets in one gathering. More are only needed when others move or buy units at the same time.
const ROUNDS_MAX: usize = 8;
/// Flights remembered; those nobody waits for are dropped above it.
const FLIGHTS_MAX: usize = 1_024;

/// What a gathering came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Units came into the home bucket: ask again.
    Brought,
    /// This many units are left over all buckets and none lies between two: fewer than wanted.
    Left(u64),
    /// It cannot be told: units lie between two buckets, or a bucket cannot be reached or is not open.
    Busy,
}

type Flight = Arc<tokio::sync::Mutex<Option<(Instant, Found)>>>;

/// The gatherings of one process.
#[derive(Default)]
pub(super) struct Gatherings {
    flights: Mutex<HashMap<(SaleId, u16), Flight>>,
}

impl Gatherings {
    fn flight(&self, sale: &SaleId, target: u16) -> Flight {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.len() >= FLIGHTS_MAX {
            flights.retain(|_, flight| Arc::strong_count(flight) > 1);
        }
        flights.entry((sale.clone(), target)).or_default().clone()
    }
}

/// Gathers `wanted` units in the bucket of `target`, or waits for a gathering that began later than this was asked.
pub(super) async fn gather(inner: &Arc<Inner>, sale: &SaleId, (target, epoch): (u16, u32), wanted: u64) -> Found {
    let asked_at = Instant::now();
    let mut last = inner.gatherings.flight(sale, target).lock_owned().await;
    match *last {
        Some((began_at, found)) if began_at >= asked_at => match found {
            // Enough for this one, although it was too little for the other.
            Found::Left(left) if left >= wanted => {}
            Found::Brought | Found::Left(_) | Found::Busy => return found,
        },
        Some(_) | None => {}
    }
    let work = Gather { inner: inner.clone(), sale: sale.clone(), target, epoch };
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
    // A task of its own: a buyer who goes away must not leave units between two buckets.
    let gathered = inner.runtime.spawn(async move {
        let began_at = Instant::now();
        let found = work.run(wanted).await.unwrap_or_else(|fault| {
            tracing::warn!(phase = "p2_reserve", sale = %work.sale, shard = work.target, error = %fault, "units could not be brought");
            Found::Busy
        });
        *last = Some((began_at, found));
        found
    });
    gathered.await.unwrap_or(Found::Busy)
}

struct Gather {
    inner: Arc<Inner>,
    sale: SaleId,
    target: u16,
    epoch: u32,
}

impl Gather {
    async fn run(&self, wanted: i64) -> Result<Found, RedisFault> {
        for _ in 0..ROUNDS_MAX {
            let (buckets, all) = self.look().await;
            let here = buckets.get(usize::from(self.target)).map_or(0, |bucket| bucket.stock);
            if here >= wanted {
                return Ok(Found::Brought);
            }
            let total: i64 = buckets.iter().map(|bucket| bucket.stock).sum();
            let between: i64 = buckets.iter().map(|bucket| bucket.sent - bucket.received).sum();
            if total >= wanted {
                if self.bring(&buckets, wanted - here).await? > 0 {
                    return Ok(Found::Brought);
                }
                continue;
            }
            if between != 0 || !all {
                // What someone began for this very bucket is found by taking again; the rest is in other hands.
                let brought = self.bring(&buckets, wanted - here).await? > 0;
                return Ok(if brought { Found::Brought } else { Found::Busy });
            }
            // Looked at one after the other, a moving unit could have been missed. If nothing has happened since, it was not.
            if self.look().await == (buckets, true) {
                return Ok(Found::Left(total.unsigned_abs()));
            }
        }
        Ok(Found::Busy)
    }

    /// The buckets of the sale by shard, and whether they are all there. One that is missing, of another epoch, not open, or
    /// whose server is away counts as empty: what is in it can neither be brought nor told.
    async fn look(&self) -> (Vec<Bucket>, bool) {
        let looks = (0..self.inner.shards).map(|shard| self.inner.redis.transfers.bucket(&self.sale, shard));
        let looked = join_all(looks).await;
        let usable = |bucket: &Bucket| bucket.state == MetaState::Open && bucket.epoch == self.epoch;
        let buckets: Vec<Option<Bucket>> =
            looked.into_iter().map(|bucket| bucket.ok().flatten().filter(usable)).collect();
        let all = buckets.iter().all(Option::is_some);
        let nothing = Bucket { state: MetaState::Open, epoch: self.epoch, number: 0, stock: 0, sent: 0, received: 0 };
        (buckets.into_iter().map(|bucket| bucket.unwrap_or(nothing)).collect(), all)
    }

    /// Moves units here, largest bucket first, until `missing` are here. Returns how many came. A server that gives nothing
    /// at the moment, because it is away or lacks its replicas, does not keep the others from giving.
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
        let redis = &self.inner.redis;
        let transfer = match redis.transfers.take(&self.sale, (source, self.target), self.epoch, wanted).await? {
            Taken::Record(transfer) => transfer,
            Taken::Empty | Taken::Refused => return Ok(0),
        };
        crash_point!(AfterTake);
        let came = match redis.transfers.give(&self.sale, &transfer).await? {
            Given::Now => transfer.units,
            Given::Before => 0,
            Given::KeysMissing | Given::Refused => return Ok(0),
        };
        crash_point!(AfterGive);
        redis.transfers.forget(&self.sale, &transfer).await?;
        metrics::counter!("seckill_p2_reserve_transfers_total").increment(1);
        metrics::counter!("seckill_p2_reserve_transferred_units_total").increment(came.unsigned_abs());
        tracing::debug!(phase = "p2_reserve", sale = %self.sale, ?transfer, came, "units moved");
        Ok(came)
    }
}
