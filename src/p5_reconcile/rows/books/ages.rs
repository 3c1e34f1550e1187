//! How old the outcomes above some acceptance numbers are: a gap of an epoch that ended is young while its message may be on its way.
//! Reads only; one statement for many gaps, because a fail-over that loses much leaves thousands.

use crate::domain::ids::SaleId;
use crate::p5_reconcile::rows::BookRows;
use crate::p5_reconcile::rows::books::Series;
use crate::store::mysql::fault::DbError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Integer, SmallInt, Unsigned};
use diesel_async::RunQueryDsl;

/// Numbers of one statement.
const NUMBERS_MAX: usize = 100;

#[derive(QueryableByName)]
struct Age {
    /// The place of its number in the statement.
    #[diesel(sql_type = BigInt)]
    at: i64,
    #[diesel(sql_type = BigInt)]
    age_ms: i64,
}

impl BookRows {
    /// How long ago the first number above each of `numbers` got its outcome, in milliseconds by the database's clock, in their order;
    /// `None` where there is none above. The bounds instead of "=": see `series`.
    pub async fn ages_above_ms(
        &self,
        sale_id: &SaleId,
        series: Series,
        numbers: &[u64],
    ) -> Result<Vec<Option<i64>>, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let mut ages = vec![None; numbers.len()];
        for (page, places) in numbers.chunks(NUMBERS_MAX).zip(ages.chunks_mut(NUMBERS_MAX)) {
            let parts: Vec<String> = (0..page.len()).map(part).collect();
            let parts = format!("/* books::ages */ {}", parts.join(" UNION ALL "));
            let found: Vec<Age> = self
                .db
                .patient()
                .run("books_ages", async |conn| {
                    let mut query = diesel::sql_query(parts.clone()).into_boxed();
                    for number in page {
                        query = query.bind::<Binary, _>(sale).bind::<Binary, _>(sale);
                        query = query
                            .bind::<Unsigned<SmallInt>, _>(series.shard)
                            .bind::<Unsigned<SmallInt>, _>(series.shard);
                        query =
                            query.bind::<Unsigned<Integer>, _>(series.epoch).bind::<Unsigned<Integer>, _>(series.epoch);
                        query = query.bind::<Unsigned<BigInt>, _>(*number);
                    }
                    Ok(query.load(conn).await?)
                })
                .await?;
            for Age { at, age_ms } in found {
                if let Some(place) = usize::try_from(at).ok().and_then(|at| places.get_mut(at)) {
                    *place = Some(age_ms);
                }
            }
        }
        Ok(ages)
    }
}

fn part(at: usize) -> String {
    format!(
        "(SELECT {at} AS at, CAST(TIMESTAMPDIFF(MICROSECOND, created_at, NOW(3)) DIV 1000 AS SIGNED) AS age_ms \
         FROM request_outcome FORCE INDEX (uk_acceptance) WHERE sale_id >= ? AND sale_id <= ? \
         AND shard >= ? AND shard <= ? AND epoch >= ? AND epoch <= ? AND number > ? \
         ORDER BY sale_id, shard, epoch, number LIMIT 1)"
    )
}
