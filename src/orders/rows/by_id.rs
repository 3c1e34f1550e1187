//! Orders in the order of their ids, along the primary key: the newest of all sales, and those that were accepted in a time. Reads only.
//!
//! An id is made when a purchase token is issued, so a time of acceptance is no range of ids. It is a filter on the rows behind the ids
//! that it may have, read part by part, of whatever sale they are.
//!
//! Input: what is asked for. Output: the first orders of it, and where the next page begins when not all ids were read.
//! So a page costs no more of ten million orders than of few.

use crate::domain::ids::RequestId;
use crate::orders::rows::query::{IdRow, OrdersQuery, conditions};
use crate::orders::rows::row::{COLUMNS, OrderRow};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use diesel_async::RunQueryDsl;

/// Orders that are read at a time.
const READ: u32 = 10_000;
/// How often, for one page.
const READS_MAX: u32 = 5;

/// The newest orders that are asked for.
pub(super) async fn newest(conn: &mut Conn, query: &OrdersQuery, limit: u16) -> Result<Vec<OrderRow>, DbError> {
    let text = format!("/* orders::find */ SELECT {COLUMNS} {} LIMIT {limit}", chosen(query));
    Ok(diesel::sql_query(text).load(conn).await?)
}

/// The key is forced: with a sale among the conditions a server may take an index of it, and sort what it finds.
fn chosen(query: &OrdersQuery) -> String {
    format!("FROM orders o FORCE INDEX (PRIMARY) WHERE {} ORDER BY o.request_id DESC", conditions(query))
}

/// The request id this number of places behind the first one that is asked for; `None` where there are fewer.
async fn last_of(conn: &mut Conn, query: &OrdersQuery, offset: u32) -> Result<Option<RequestId>, DbError> {
    let text = format!("/* orders::find */ SELECT o.request_id {} LIMIT 1 OFFSET {offset}", chosen(query));
    let mut rows: Vec<IdRow> = diesel::sql_query(text).load(conn).await?;
    Ok(rows.pop().map(|row| row.request_id))
}

/// Orders that were accepted in a time, and where to go on when not all ids were read.
pub(super) async fn in_time(
    conn: &mut Conn,
    query: &OrdersQuery,
    limit: u16,
) -> Result<(Vec<OrderRow>, Option<RequestId>), DbError> {
    let mut rows = Vec::new();
    let mut before = query.before;
    for _ in 0..READS_MAX {
        let part = OrdersQuery { before, ..query.clone() };
        let all = OrdersQuery { from: query.from, before, ..OrdersQuery::default() };
        let last = last_of(conn, &all, READ - 1).await?;
        let missing = limit.saturating_sub(u16::try_from(rows.len()).unwrap_or(u16::MAX));
        let read = OrdersQuery { from: last.or(query.from), ..part };
        rows.extend(newest(conn, &read, missing).await?);
        before = last;
        if last.is_none() || rows.len() >= usize::from(limit) {
            return Ok((rows, None));
        }
    }
    Ok((rows, before))
}
