//! Orders of a buyer, newest first by their ids. Reads only.
//!
//! `uk_sale_user` has a buyer's orders sale by sale, those of a sale in the order of their ids: at most one whose limit is one, and those
//! without. So the newest of each sale are read, and of these the newest: a page costs as much as the buyer has sales, however many
//! orders are in each.
//!
//! Input: a buyer, a filter. Output: the first orders of it.

use crate::domain::ids::{RequestId, UserId};
use crate::orders::rows::query::{IdRow, OrdersQuery, conditions, literal, rows_of};
use crate::orders::rows::row::OrderRow;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use diesel::prelude::*;
use diesel::sql_types::Binary;
use diesel_async::RunQueryDsl;
use std::cmp::Reverse;

/// Sales that one statement asks about.
const SALES_ASKED: usize = 100;

#[derive(QueryableByName)]
struct SaleRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
}

/// The newest orders of a buyer that are asked for.
pub(super) async fn newest(
    conn: &mut Conn,
    query: &OrdersQuery,
    buyer: &UserId,
    limit: u16,
) -> Result<Vec<OrderRow>, DbError> {
    let buyer = literal(buyer.as_str().as_bytes());
    let sales = match &query.sale {
        Some(sale) => vec![sale.as_str().as_bytes().to_vec()],
        None => sales_of(conn, &buyer).await?,
    };
    let mut ids = Vec::new();
    for asked in sales.chunks(SALES_ASKED) {
        let each: Vec<String> = asked.iter().map(|sale| of_sale(query, &buyer, sale, limit)).collect();
        let text = format!("/* orders::find */ {}", each.join(" UNION ALL "));
        let found: Vec<IdRow> = diesel::sql_query(text).load(conn).await?;
        ids.extend(found.into_iter().map(|row| row.request_id));
        ids.sort_unstable_by_key(|id: &RequestId| Reverse(*id));
        ids.truncate(limit.into());
    }
    rows_of(conn, &ids, query.state).await
}

/// The sales of a buyer, one look into the index for each. The bounds instead of "=": see `series::ends_of_series`.
async fn sales_of(conn: &mut Conn, buyer: &str) -> Result<Vec<Vec<u8>>, DbError> {
    let text = format!(
        "/* orders::find */ SELECT sale_id FROM orders FORCE INDEX (uk_sale_user) \
         WHERE user_id >= {buyer} AND user_id <= {buyer} GROUP BY user_id, sale_id"
    );
    let rows: Vec<SaleRow> = diesel::sql_query(text).load(conn).await?;
    Ok(rows.into_iter().map(|row| row.sale_id).collect())
}

/// The ids of the newest orders in one sale: without the column that makes them unique, and with it.
fn of_sale(query: &OrdersQuery, buyer: &str, sale: &[u8], limit: u16) -> String {
    let filter = conditions(&OrdersQuery { sale: None, ..query.clone() });
    let sale = literal(sale);
    let part = |unique: &str| {
        format!(
            "(SELECT o.request_id FROM orders o FORCE INDEX (uk_sale_user) WHERE o.user_id = {buyer} AND o.sale_id = {sale} \
             AND o.one_per_user_id {unique} AND {filter} ORDER BY o.request_id DESC LIMIT {limit})"
        )
    };
    [part("IS NULL"), part(&format!("= {buyer}"))].join(" UNION ALL ")
}
