//! The newest that the database has of sales, to know whether anything was written since. Reads only, the ends of two indexes.

use crate::domain::ids::SaleId;
use crate::orders::rows::series::{ends_of_series, of_sale};
use crate::p5_reconcile::rows::BookRows;
use crate::store::mysql::fault::DbError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Unsigned};
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
    async fn newest(&self, sales: &[SaleId], part: fn(usize, &SaleId) -> String) -> Result<Vec<Newest>, DbError> {
        let parts: Vec<String> = sales.iter().enumerate().map(|(at, sale)| part(at, sale)).collect();
        let query = format!("/* books::movements */ {}", parts.join(" UNION ALL "));
        self.db.run("books_movements", async |conn| Ok(diesel::sql_query(query.clone()).load(conn).await?)).await
    }
}

fn last_flow(at: usize, sale: &SaleId) -> String {
    let of_sale = of_sale(sale);
    format!(
        "(SELECT {at} AS at, flow_id AS newest FROM stock_flow FORCE INDEX (ix_flow_sale) \
         WHERE {of_sale} ORDER BY sale_id DESC, flow_id DESC LIMIT 1)"
    )
}

fn last_numbers(at: usize, sale: &SaleId) -> String {
    format!("({})", ends_of_series(&format!("{at} AS at, COALESCE(MAX(number), 0) AS newest"), sale))
}
