//! How long accepted requests took to become orders, for `bench` and the operators.

use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;
use seckill::domain::ids::SaleId;
use seckill::store::mysql::{Db, DbError};

/// Lags that are counted by themselves, one for each millisecond; longer ones are left out.
const LAGS_MAX: u32 = 100_000;

/// Times from acceptance (Redis' clock) to the order's row (the database's clock) of one sale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lags {
    /// Milliseconds and how many orders took them, shortest first. Negative when the clocks disagree.
    counts: Vec<(i64, u64)>,
}

impl Lags {
    /// The lag that `percent` (0–100) of the orders did not exceed, milliseconds; `None` without orders.
    #[must_use]
    pub fn percentile_ms(&self, percent: u64) -> Option<i64> {
        let total: u64 = self.counts.iter().map(|(_, count)| count).sum();
        let wanted = (total * percent.min(100)).div_ceil(100).max(1);
        let mut seen = 0;
        self.counts.iter().find_map(|(lag_ms, count)| {
            seen += count;
            (seen >= wanted).then_some(*lag_ms)
        })
    }
}

#[derive(diesel::QueryableByName)]
struct LagRow {
    #[diesel(sql_type = BigInt)]
    lag_ms: i64,
    #[diesel(sql_type = BigInt)]
    orders: i64,
}

/// The lags of all orders of a sale. Reads every order: not for a sale that is hot right now.
pub async fn lags(db: &Db, sale_id: &SaleId) -> Result<Lags, DbError> {
    let query = format!(
        "/* lags::lags */ SELECT CAST(TIMESTAMPDIFF(MICROSECOND, accepted_at, created_at) DIV 1000 AS SIGNED) AS lag_ms, \
         COUNT(*) AS orders FROM orders WHERE sale_id = ? GROUP BY lag_ms ORDER BY lag_ms LIMIT {LAGS_MAX}"
    );
    let rows: Vec<LagRow> = db
        .run("lags", async |conn| {
            Ok(diesel::sql_query(query).bind::<Binary, _>(sale_id.as_str().as_bytes()).load(conn).await?)
        })
        .await?;
    Ok(Lags { counts: rows.into_iter().map(|row| (row.lag_ms, u64::try_from(row.orders).unwrap_or(0))).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_off_the_counts() {
        let lags = Lags { counts: vec![(1, 98), (5, 1), (900, 1)] };
        assert_eq!([50, 98, 99, 100].map(|p| lags.percentile_ms(p)), [Some(1), Some(1), Some(5), Some(900)]);
        assert_eq!(Lags::default().percentile_ms(99), None);
    }
}
