//! One sale in the database and what Redis holds of it, for `seckill sale show` and the admin API. Reads only.

use super::control::SaleControl;
use super::control_error::SaleControlError;
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::http::times::shown_time;
use crate::sales::forms::PlannedLine;
use serde::Serialize;

/// One sale with what Redis holds.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct SaleDetail {
    /// As the database knows it.
    pub sale: Sale,
    /// Its grants: name, units, and whether Redis has them.
    pub grants: Vec<String>,
    /// Units that come while it sells, in the order of their times.
    pub releases: Vec<ReleaseDetail>,
    /// The sale of its drop that gets what is unsold at its end.
    #[schema(value_type = Option<String>)]
    pub rollover_to: Option<SaleId>,
    /// Its line.
    pub line: Option<PlannedLine>,
    /// What Redis holds, shard by shard.
    pub shards: Vec<ShardDetail>,
    /// Units between two buckets; absent when a shard is not in Redis.
    pub in_transit: Option<i64>,
}

/// A release, and whether the database has given it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct ReleaseDetail {
    /// When, RFC 3339.
    #[schema(format = DateTime)]
    pub at: String,
    /// How many.
    pub units: u32,
    /// Whether its grant was made: named `release-` and its number, from 1.
    pub given: bool,
}

/// One shard of it; all absent when Redis does not have it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct ShardDetail {
    /// Number of the shard, from 0.
    pub shard: u16,
    /// The state that the reserve script obeys.
    pub state: Option<&'static str>,
    /// Unsold units of the bucket.
    pub remaining: Option<i64>,
    /// Units sent to other shards less units received from them; summed over the shards, what lies between two buckets.
    pub in_transit: Option<i64>,
    /// Requests accepted in this epoch.
    pub accepted_requests: Option<u64>,
}

impl SaleControl {
    /// Reads one sale from the database, and what Redis holds of it.
    pub(crate) async fn detail(&self, id: &SaleId) -> Result<SaleDetail, SaleControlError> {
        let sale = self.rows.sales.get(id).await?.ok_or_else(|| SaleControlError::NoSuchSale(id.clone()))?;
        let grants = self.rows.grants.list(id).await?;
        let known = self.rows.sales.timetable(id).await?;
        let mut shards = Vec::with_capacity(self.shards.into());
        for shard in 0..self.shards {
            let count = self.redis.sale_keys.count(id, shard).await?;
            shards.push(ShardDetail {
                shard,
                state: count.as_ref().map(|count| count.meta.state.code()),
                remaining: count.as_ref().map(|count| count.stock),
                in_transit: count.as_ref().map(|count| count.in_transit),
                accepted_requests: count.as_ref().map(|count| count.meta.number),
            });
        }
        let grants = grants
            .iter()
            .map(|grant| {
                let given = if grant.applied_at_ms.is_some() { "" } else { " (not in redis yet)" };
                format!("{} {}{given}", grant.grant_id, grant.quantity)
            })
            .collect();
        let in_transit = shards.iter().map(|shard| shard.in_transit).sum();
        let releases = known.timetable.releases.iter().zip(known.given);
        let releases = releases.map(|(of, given)| ReleaseDetail { at: shown_time(of.at_ms), units: of.units, given });
        let releases = releases.collect();
        let (rollover_to, line) = (known.timetable.rollover_to, known.timetable.line.map(PlannedLine::from));
        Ok(SaleDetail { sale, grants, releases, rollover_to, line, shards, in_transit })
    }
}
