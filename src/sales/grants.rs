//! Gives Redis the grants that the database has and Redis is not known to have (E8). Operators' commands, automatic warm-ups
//! and P5 all go this way.
//!
//! Input: a sale. Output: its open grants in Redis, marked as applied. Redis takes each grant once, by its id and within its
//! epoch, so any number of callers may finish one at the same time. A crash between Redis and the mark leaves a grant that is
//! given again, without effect.

use super::handles::SaleHandles;
use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::domain::shard::{home_shard, share};
use crate::faults::{between_steps, crash_point, hold, left_out};
use crate::sales::rows::{GrantRows, SaleRows, grants};
use crate::store::mysql::DbError;
use crate::store::redis::{Granted, RedisFault};

/// Lists of grants read in one call; the rest waits for the next call.
const LISTS_MAX: u32 = 100;

/// How far the open grants of a sale are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantProgress {
    /// Redis has them all; the number of grants that were finished now.
    Done(usize),
    /// Redis has the sale frozen: its rebuild gives them.
    Frozen,
    /// Redis lost keys of the sale, or has another epoch of it: the rebuild comes first.
    KeysLost,
    /// The sale takes no units: a draft, which is given its grants when it is warmed, or closed.
    NotSelling,
}

/// Why their state is not known; repeating is safe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrantError {
    /// Redis did not answer, or refused.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// What happens without the record of a grant: the same units once more.
async fn returned_again(
    redis: &SaleHandles,
    id: &SaleId,
    (shards, epoch): (u16, u32),
    grant: &grants::Grant,
) -> Result<bool, GrantError> {
    let again = format!("{}-again", grant.grant_id);
    for shard in 0..shards {
        let units = share(grant.quantity, shard, shards);
        if redis.sale_keys.grant(id, shard, epoch, (&again, units)).await? != Granted::Now {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What giving a grant reads and marks.
#[derive(Clone)]
pub(crate) struct SaleAndGrantRows {
    pub(crate) sales: SaleRows,
    pub(crate) grants: GrantRows,
}

/// Gives Redis a sale's open grants. Repeating is safe.
pub(crate) async fn apply_open(
    rows: &SaleAndGrantRows,
    redis: &SaleHandles,
    shards: u16,
    id: &SaleId,
) -> Result<GrantProgress, GrantError> {
    let mut finished = 0;
    for _ in 0..LISTS_MAX {
        // The sale before the list: a process that read an epoch and then a grant as open has read the grant in that epoch or later,
        // and the keys of a rebuilt epoch know all grants that were open when it began.
        let Some(epoch) = selling_epoch(&rows.sales, id).await? else { return Ok(GrantProgress::NotSelling) };
        let open = rows.grants.unapplied(id, epoch).await?;
        if open.is_empty() {
            break;
        }
        hold!(GiverRead);
        let epoch = match left_out!(EpochBeforeList) {
            true => selling_epoch(&rows.sales, id).await?.unwrap_or(epoch),
            false => epoch,
        };
        for grant in open {
            match apply(&rows.grants, redis, (shards, epoch), &grant).await? {
                GrantProgress::Done(count) => finished += count,
                ended @ (GrantProgress::Frozen | GrantProgress::KeysLost | GrantProgress::NotSelling) => {
                    return Ok(ended);
                }
            }
        }
    }
    Ok(GrantProgress::Done(finished))
}

/// Gives Redis one grant of a sale, if it is open. Repeating is safe.
pub(crate) async fn apply_one(
    rows: &SaleAndGrantRows,
    redis: &SaleHandles,
    shards: u16,
    (id, grant_id): (&SaleId, &str),
) -> Result<GrantProgress, GrantError> {
    let Some(epoch) = selling_epoch(&rows.sales, id).await? else { return Ok(GrantProgress::NotSelling) };
    match rows.grants.unapplied_one(id, epoch, grant_id).await? {
        Some(grant) => apply(&rows.grants, redis, (shards, epoch), &grant).await,
        None => Ok(GrantProgress::Done(0)),
    }
}

/// The epoch of a sale that takes units.
async fn selling_epoch(sales: &SaleRows, id: &SaleId) -> Result<Option<u32>, DbError> {
    let sale = sales.get(id).await?;
    let selling = sale.filter(|sale| matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused));
    Ok(selling.map(|sale| sale.epoch))
}

/// Gives an open grant to every shard, then marks it.
async fn apply(
    grants: &GrantRows,
    redis: &SaleHandles,
    (shards, epoch): (u16, u32),
    grant: &grants::Grant,
) -> Result<GrantProgress, GrantError> {
    let (id, returned) = (&grant.sale_id, grant.returned()?);
    between_steps("grant: read").await;
    for shard in 0..shards {
        let units = share(grant.quantity, shard, shards);
        let of_shard: Vec<_> = returned.iter().filter(|bought| home_shard(&bought.0, shards) == shard).collect();
        let given = (grant.grant_id.as_str(), units);
        match redis.sale_keys.grant_returning(id, (shard, epoch), given, &of_shard).await? {
            Granted::Now | Granted::Before => {}
            Granted::Frozen => return Ok(GrantProgress::Frozen),
            Granted::KeysMissing | Granted::OtherEpoch => return Ok(GrantProgress::KeysLost),
        }
    }
    if left_out!(GrantOnce) && !returned_again(redis, id, (shards, epoch), grant).await? {
        return Ok(GrantProgress::KeysLost);
    }
    crash_point!(ActivationHalf);
    between_steps("grant: given").await;
    let marked = grants.mark_applied(id, &grant.grant_id).await?;
    if marked {
        tracing::info!(sale = %id, grant = %grant.grant_id, units = grant.quantity, "grant given");
    }
    // A sold-out mark must not outlive the units.
    redis.sale_cache.forget(id).await?;
    Ok(GrantProgress::Done(usize::from(marked)))
}
