//! Sales that no audit would read: Redis has accepted requests of them, and the database has no row of them, or still has them as
//! drafts. So it is after the database went back in time (a backup, a log that was cut off), and with a `mysql.url` of another
//! database. Their requests may be nowhere in the database, so "consistent" without them would be false.
//!
//! Input: all keys of Redis, then the sales and what is archived. Output: for each such sale an audit with one finding. Reads only; a
//! crash leaves nothing.
//!
//! Redis is read first. A sale has its row, and is no draft any more, before Redis can accept anything of it, and it leaves Redis
//! before its row goes: so what only Redis has is not just on its way.

use super::result::SaleAudit;
use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::store::redis::RedisFault;
use std::collections::HashSet;

/// An audit of each sale of which only Redis knows that it was sold, by id.
pub async fn unknown_sales(context: &ReconcileContext) -> Result<Vec<SaleAudit>, ReconcileError> {
    let there = context.redis.sale_keys.all_ids().await?;
    let known: HashSet<SaleId> =
        context.rows.giving.sales.released().await?.into_iter().map(|sale| sale.sale_id).collect();
    let mut audits = Vec::new();
    for id in there.into_iter().filter(|id| !known.contains(id)) {
        let Some(what) = accepted_by_redis(context, &id).await? else { continue };
        let row = match context.rows.giving.sales.get(&id).await? {
            // Removed from the database after it had left Redis, or since this began.
            _ if context.rows.archived.get(&id).await?.is_some() => continue,
            None => "has no row of it",
            Some(sale) if sale.status == SaleStatus::Draft => "has it as a draft",
            // Released since the list was read.
            Some(_) => continue,
        };
        let detail = format!(
            "{what}, and the database {row}: the row is lost or older than redis, or mysql.url is of another database"
        );
        audits.push(SaleAudit::of_unknown(id, detail));
    }
    Ok(audits)
}

/// What Redis has accepted of a sale; `None`: nothing, or it has left Redis by now.
async fn accepted_by_redis(context: &ReconcileContext, id: &SaleId) -> Result<Option<String>, ReconcileError> {
    let (mut newest, mut epoch) = (0, 0);
    for shard in 0..context.shards {
        match context.redis.sale_keys.meta(id, shard).await {
            Ok(Some(meta)) => (newest, epoch) = (newest + meta.number, epoch.max(meta.epoch)),
            Ok(None) => {}
            Err(RedisFault::Contract(why)) => {
                return Ok(Some(format!("redis has keys of it that cannot be read ({why})")));
            }
            Err(error) => return Err(error.into()),
        }
    }
    // In the first epoch numbers count from 1. A later one begins with what an earlier one has sold.
    let is_sold = newest > 0 || epoch > 1;
    Ok(is_sold.then(|| format!("redis has accepted {newest} requests of it in epoch {epoch}")))
}
