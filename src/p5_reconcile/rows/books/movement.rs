//! The newest that the database has of sales, to know whether anything was written since. Reads only, the ends of two indexes.

use crate::domain::ids::SaleId;
use crate::p5_reconcile::rows::BookRows;
use crate::store::mysql::fault::DbError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Unsigned};
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// Sales of one statement.
const SALES_MAX: usize = 100;

/// The newest of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Movement {
    /// Its last row in the journal.
    pub flow_id: u64,
    /// The sum of the highest acceptance numbers with an outcome, over all shards and epochs.
    pub numbers: u64,
}

#[derive(QueryableByName)]
struct Newest {
    /// The place of its sale in the statement.
    #[diesel(sql_type = BigInt)]
    at: i64,
    #[diesel(sql_type = Unsigned<BigInt>)]
    newest: u64,
}

impl BookRows {
    /// What the database has of each of `sales`.
    pub async fn movements(&self, sales: &[SaleId]) -> Result<HashMap<SaleId, Movement>, DbError> {
        let mut found = HashMap::with_capacity(sales.len());
        for page in sales.chunks(SALES_MAX) {
            let mut movements = vec![Movement::default(); page.len()];
            for row in self.newest(page, last_flow).await? {
                if let Some(movement) = usize::try_from(row.at).ok().and_then(|at| movements.get_mut(at)) {
                    movement.flow_id = row.newest;
                }
            }
            for row in self.newest(page, last_numbers).await? {
                if let Some(movement) = usize::try_from(row.at).ok().and_then(|at| movements.get_mut(at)) {
                    movement.numbers += row.newest;
                }
            }
            found.extend(page.iter().cloned().zip(movements));
        }
        Ok(found)
    }

    /// The rows of one statement that has a part for each sale.
    async fn newest(&self, sales: &[SaleId], part: fn(usize) -> String) -> Result<Vec<Newest>, DbError> {
        let parts: Vec<String> = (0..sales.len()).map(part).collect();
        let query = format!("/* books::movements */ {}", parts.join(" UNION ALL "));
        self.db
            .run("books_movements", async |conn| {
                let mut query = diesel::sql_query(query.clone()).into_boxed();
                for sale in sales {
                    let sale = sale.as_str().as_bytes();
                    query = query.bind::<Binary, _>(sale).bind::<Binary, _>(sale);
                }
                Ok(query.load(conn).await?)
            })
            .await
    }
}

/// The bounds instead of "=": see `series`.
fn last_flow(at: usize) -> String {
    format!(
        "(SELECT {at} AS at, flow_id AS newest FROM stock_flow FORCE INDEX (ix_flow_sale) \
         WHERE sale_id >= ? AND sale_id <= ? ORDER BY sale_id DESC, flow_id DESC LIMIT 1)"
    )
}

/// As `known` reads them.
fn last_numbers(at: usize) -> String {
    format!(
        "(SELECT {at} AS at, COALESCE(MAX(number), 0) AS newest FROM request_outcome \
         WHERE sale_id >= ? AND sale_id <= ? GROUP BY sale_id, shard, epoch)"
    )
}
