//! Takes the units of open withdrawals out of Redis, then out of the database. Operators' commands and P5 both go this way.
//!
//! Input: an open row of `stock_withdrawals`. Output: its units off sale, its row ended. Shard after shard, always in this order: each
//! records what it gave, so before a shard is asked every process knows what is still wanted, and asks for no more. Any number of them
//! may finish one withdrawal at the same time, and it never gets more than was asked for. A crash between two shards, or between Redis
//! and the database, leaves records that the next process reads. A rebuild in between gives all units back, with another epoch, in which
//! it begins again.

use super::grants::SaleAndGrantRows;
use super::handles::SaleHandles;
use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::domain::shard::taken_evenly;
use crate::faults::crash_point;
use crate::sales::rows::error::SaleError;
use crate::sales::rows::grants::{Withdrawal, WithdrawalEnd};
use crate::store::mysql::DbError;
use crate::store::redis::{RedisFault, Withdrawn};

/// Rebuilds that one call follows; the rest is left to the next call.
const EPOCHS_MAX: u32 = 5;
/// How old an open withdrawal is when P5 finishes it, seconds: its own process had its time.
const OPEN_AFTER_S: u32 = 3;

/// How far a withdrawal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithdrawalProgress {
    /// Ended, with this number of units.
    Done(i64),
    /// Redis has the sale frozen: the rebuild comes first.
    Frozen,
    /// Redis lost keys of the sale, went back in time, or has another epoch of it: the rebuild comes first.
    KeysLost,
}

/// Why it is not known, or not finished; repeating is safe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WithdrawalError {
    /// Redis did not answer, or refused.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Sale(#[from] SaleError),
}

impl From<DbError> for WithdrawalError {
    fn from(error: DbError) -> Self {
        Self::Sale(error.into())
    }
}

/// What Redis gave in an epoch.
enum Taken {
    All(i64),
    Stopped(WithdrawalProgress),
}

/// Finishes a withdrawal. Repeating is safe.
pub(crate) async fn finish(
    rows: &SaleAndGrantRows,
    redis: &SaleHandles,
    shards: u16,
    withdrawal: &Withdrawal,
) -> Result<WithdrawalProgress, WithdrawalError> {
    if let Some(taken) = withdrawal.taken {
        return Ok(WithdrawalProgress::Done(taken));
    }
    let (id, mut stopped) = (&withdrawal.sale_id, WithdrawalProgress::KeysLost);
    let mut tried = None;
    for _ in 0..EPOCHS_MAX {
        let Some(sale) = rows.sales.get(id).await? else { return Err(SaleError::Unknown(id.clone()).into()) };
        if tried == Some(sale.epoch) {
            break;
        }
        tried = Some(sale.epoch);
        let taken = match take(rows, redis, (&sale, shards), withdrawal).await? {
            Taken::All(taken) => taken,
            // A rebuild may have moved on since the sale was read.
            Taken::Stopped(progress) => {
                stopped = progress;
                continue;
            }
        };
        match rows.grants.end_withdrawal(withdrawal, (sale.epoch, taken)).await? {
            WithdrawalEnd::Now => {
                crash_point!(WithdrawalEnded);
                tracing::info!(sale = %id, withdrawal = %withdrawal.name, units = taken, "units withdrawn");
                // It shows how many units there ever were.
                redis.sale_cache.forget(id).await?;
                return Ok(WithdrawalProgress::Done(taken));
            }
            WithdrawalEnd::Before(taken) => return Ok(WithdrawalProgress::Done(taken)),
            WithdrawalEnd::OtherEpoch => {}
        }
    }
    Ok(stopped)
}

/// Takes the units from the shards.
async fn take(
    rows: &SaleAndGrantRows,
    redis: &SaleHandles,
    (sale, shards): (&Sale, u16),
    withdrawal: &Withdrawal,
) -> Result<Taken, WithdrawalError> {
    let (id, grant_id) = (&sale.sale_id, withdrawal.grant_id());
    let mut buckets = Vec::with_capacity(shards.into());
    for shard in 0..shards {
        buckets.push(redis.sale_keys.count(id, shard).await?.map_or(0, |counted| counted.stock));
    }
    // What each bucket should give by now. Others may plan otherwise, or buyers be quicker: a later shard makes up for what an earlier
    // one did not have.
    let plan = taken_evenly(&buckets, withdrawal.asked);
    let mut left_to_later: i64 = plan.iter().sum();
    let mut wanted = withdrawal.asked;
    for (shard, planned) in (0..shards).zip(plan) {
        left_to_later -= planned;
        let most = (wanted - left_to_later).max(0);
        let number = rows.sales.highest_number(id, shard, sale.epoch).await?;
        match redis.sale_keys.withdraw(id, (shard, sale.epoch, number), (&grant_id, most)).await? {
            Withdrawn::Units(units) => wanted -= units,
            Withdrawn::Frozen => return Ok(Taken::Stopped(WithdrawalProgress::Frozen)),
            // Nothing of a closed sale is on sale, and no rebuild comes: what Redis has lost of it stays in the books as unsold.
            Withdrawn::KeysMissing | Withdrawn::OtherEpoch | Withdrawn::Rewound
                if sale.status == SaleStatus::Closed => {}
            Withdrawn::KeysMissing | Withdrawn::OtherEpoch | Withdrawn::Rewound => {
                return Ok(Taken::Stopped(WithdrawalProgress::KeysLost));
            }
        }
        if wanted < 0 {
            return Err(RedisFault::Contract(format!("shards gave {} units too many to {grant_id}", -wanted)).into());
        }
        crash_point!(WithdrawalTaken);
    }
    Ok(Taken::All(withdrawal.asked - wanted))
}

/// Finishes the open withdrawals of a sale that another process has left. Those of a sale that is to be rebuilt stay open.
///
/// # Errors
/// Those that concern more than one withdrawal; of one that the books do not allow the log says so, and it stays open.
pub(crate) async fn finish_open(
    rows: &SaleAndGrantRows,
    redis: &SaleHandles,
    shards: u16,
    id: &SaleId,
) -> Result<(), WithdrawalError> {
    for withdrawal in rows.grants.open_withdrawals(id, OPEN_AFTER_S).await? {
        match finish(rows, redis, shards, &withdrawal).await {
            Ok(_progress) => {}
            Err(WithdrawalError::Sale(refusal)) if !matches!(refusal, SaleError::Db(_)) => {
                tracing::warn!(sale = %id, withdrawal = %withdrawal.name, %refusal, "the withdrawal cannot be finished");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
