//! How far each sale has come, in units: from Redis what was admitted, from the database what was ordered and what failed.
//!
//! Redis is read first: a unit can only move towards the database, so what is on its way is never shown below zero for long.

use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::p5_reconcile::rows::totals::Registered;
use crate::store::redis::ShardCount;
use futures::future::join_all;
use serde::Serialize;

/// Calls to Redis for one snapshot: with many shards fewer sales are shown.
const CALLS_MAX: usize = 256;
/// Sales shown at most.
const SALES_MAX: usize = 20;

/// One sale while it sells. Units, but for `accepted_requests` and `open`.
#[derive(Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(super) struct SaleFlow {
    sale_id: String,
    title: String,
    status: &'static str,
    /// The state in Redis; the worst one when the shards differ, absent when keys are missing.
    state: Option<&'static str>,
    starts_at_ms: i64,
    ends_at_ms: i64,
    granted: i64,
    remaining: Option<i64>,
    admitted: Option<i64>,
    accepted_requests: Option<u64>,
    /// Units of orders that stand: what ended orders brought back is not among them.
    landed: i64,
    failed: i64,
    /// Units that ended orders brought back. They were admitted once, and may be again. Absent when the database did not say.
    returned: Option<i64>,
    /// Open failed requests.
    open: i64,
}

/// The newest sales that are warmed or paused.
pub(super) async fn flows(admin: &Admin, sales: &[Sale], registered: &[Registered]) -> Vec<SaleFlow> {
    let shards = admin.context.shards;
    let most = (CALLS_MAX / usize::from(shards.max(1))).clamp(1, SALES_MAX);
    let live = sales.iter().filter(|sale| matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused));
    let live: Vec<&Sale> = live.take(most).collect();
    let counts = live.iter().map(|sale| {
        let redis = &admin.servers.redis;
        // A shard that cannot be read leaves the sale without Redis' side, not with half of it.
        join_all(
            (0..shards)
                .map(move |shard| async move { redis.sale_keys.count(&sale.sale_id, shard).await.ok().flatten() }),
        )
    });
    let counts = join_all(counts).await;
    let ids: Vec<&SaleId> = live.iter().map(|sale| &sale.sale_id).collect();
    let back = admin.servers.rows.books.returned(&ids).await;
    let back =
        back.inspect_err(|error| tracing::warn!(phase = "admin", %error, "units that came back are not known")).ok();
    live.iter()
        .zip(counts)
        .map(|(sale, counts)| {
            let all: Option<Vec<ShardCount>> = counts.into_iter().collect();
            let back = back.as_ref().map(|back| back.get(&sale.sale_id).copied().unwrap_or(0));
            SaleFlow::of(sale, all.as_deref(), registered, back)
        })
        .collect()
}

impl SaleFlow {
    fn of(sale: &Sale, redis: Option<&[ShardCount]>, registered: &[Registered], returned: Option<i64>) -> Self {
        let mine = || registered.iter().filter(|row| row.sale_id == sale.sale_id);
        let sum = |of: fn(&ShardCount) -> i64| redis.map(|counts| counts.iter().map(of).sum::<i64>());
        let remaining = sum(|count| count.stock + count.in_transit);
        let states = redis.into_iter().flatten().map(|count| count.meta.state.code());
        Self {
            sale_id: sale.sale_id.to_string(),
            title: sale.title.clone(),
            status: sale.status.code(),
            state: states.max_by_key(|code| usize::from(*code != "open")),
            starts_at_ms: sale.starts_at_ms,
            ends_at_ms: sale.ends_at_ms,
            granted: sale.granted,
            remaining,
            admitted: sum(|count| count.granted).zip(remaining).map(|(granted, remaining)| granted - remaining),
            accepted_requests: redis.map(|counts| counts.iter().map(|count| count.meta.number).sum()),
            landed: sale.granted - sale.stock,
            failed: mine().filter(|row| row.status == "failed_final").map(|row| row.units).sum(),
            returned,
            open: mine().filter(|row| row.status == "open").map(|row| row.count).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sale::MetaState;
    use crate::store::redis::{Meta, Trimmed};

    fn shard(state: MetaState, stock: i64, in_transit: i64) -> ShardCount {
        ShardCount {
            meta: Meta { state, epoch: 1, number: 7 },
            stock,
            granted: 50,
            in_transit,
            grants: 1,
            trimmed: Trimmed { count: 0, ordered: 0, failed: 0 },
            accepted: Some(7),
        }
    }

    fn sale() -> Sale {
        Sale { stock: 90, status: SaleStatus::Warmed, ..Sale::draft(SaleId::parse("s").unwrap(), 100, 1, 2) }
    }

    #[test]
    fn what_left_the_buckets_and_is_not_between_two_was_admitted() {
        let row = |sale: &str, status: &str, units, count| {
            let sale_id = SaleId::parse(sale).unwrap();
            Registered { sale_id, status: status.to_owned(), units, count }
        };
        let registered = [row("s", "failed_final", 3, 2), row("s", "open", 9, 4), row("other", "failed_final", 50, 50)];
        let counts = [shard(MetaState::Open, 40, 5), shard(MetaState::Frozen, 35, 0)];
        let flow = SaleFlow::of(&sale(), Some(&counts), &registered, Some(0));
        assert_eq!((flow.remaining, flow.admitted, flow.accepted_requests), (Some(80), Some(20), Some(14)));
        assert_eq!((flow.landed, flow.failed, flow.open, flow.state), (10, 3, 4, Some("frozen")));
    }

    #[test]
    fn without_redis_only_the_database_speaks() {
        let flow = SaleFlow::of(&sale(), None, &[], None);
        assert_eq!((flow.remaining, flow.admitted, flow.state, flow.landed), (None, None, None, 10));
    }
}
