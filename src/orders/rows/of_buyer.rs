//! Orders of a buyer, newest first by their ids. Reads only.
//!
//! `uk_sale_user` has a buyer's orders sale by sale: they are few, and sorted. Of a buyer who has many they are searched along the primary
//! key, as those of a time are (`by_id`), a bounded number of orders for a page, which may have fewer than it could and say where the next
//! one begins.
//!
//! Input: a buyer, a filter. Output: the first orders of it.

use crate::domain::ids::RequestId;
use crate::orders::rows::by_id;
use crate::orders::rows::query::{IdRow, OrdersQuery, RowCount, conditions, rows_of};
use crate::orders::rows::row::OrderRow;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use diesel_async::RunQueryDsl;

/// Most orders that are sorted for a page.
const SORTED_MAX: i64 = 10_000;

/// The newest orders of the query's buyer that are asked for, and where to go on when not all were read.
pub(super) async fn newest(
    conn: &mut Conn,
    query: &OrdersQuery,
    limit: u16,
) -> Result<(Vec<OrderRow>, Option<RequestId>), DbError> {
    if has_many(conn, query).await? {
        return by_id::in_time(conn, query, limit).await;
    }
    let text =
        format!("/* orders::find */ SELECT o.request_id {} ORDER BY o.request_id DESC LIMIT {limit}", chosen(query));
    let ids: Vec<IdRow> = diesel::sql_query(text).load(conn).await?;
    let ids: Vec<RequestId> = ids.into_iter().map(|row| row.request_id).collect();
    Ok((rows_of(conn, &ids, query.state).await?, None))
}

fn chosen(query: &OrdersQuery) -> String {
    format!("FROM orders o FORCE INDEX (uk_sale_user) WHERE {}", conditions(query))
}

/// Whether the buyer has more orders, in the sale if one is asked for, than are sorted.
async fn has_many(conn: &mut Conn, query: &OrdersQuery) -> Result<bool, DbError> {
    let OrdersQuery { sale, buyer, .. } = query.clone();
    let all = OrdersQuery { sale, buyer, ..OrdersQuery::default() };
    let text = format!(
        "/* orders::find */ SELECT COUNT(*) AS n FROM (SELECT o.request_id {} LIMIT {}) AS some",
        chosen(&all),
        SORTED_MAX + 1
    );
    let counted: RowCount = diesel::sql_query(text).get_result(conn).await?;
    Ok(counted.n > SORTED_MAX)
}
