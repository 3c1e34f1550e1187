//! Orders that were accepted in a time: a filter on their rows behind a range of ids, read part by part. Reads only.
//!
//! Input: what is asked for, with a time. Output: the first orders of it, and where the next page begins when not all ids were read. So a
//! page costs no more of a sale of ten million orders than of a small one.

use crate::domain::ids::RequestId;
use crate::orders::rows::query::{OrdersQuery, first, last_of};
use crate::orders::rows::row::OrderRow;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;

/// Orders that are read at a time.
const READ: u32 = 10_000;
/// How often, for one page.
const READS_MAX: u32 = 5;

/// Orders that were accepted in a time, and where to go on when not all ids were read.
pub(crate) async fn in_time(
    conn: &mut Conn,
    query: &OrdersQuery,
    limit: u16,
) -> Result<(Vec<OrderRow>, Option<RequestId>), DbError> {
    let mut rows = Vec::new();
    let mut before = query.before;
    for _ in 0..READS_MAX {
        let part = OrdersQuery { before, ..query.clone() };
        let all = OrdersQuery { state: None, accepted_from_ms: None, accepted_to_ms: None, ..part.clone() };
        let last = last_of(conn, &all, READ - 1).await?;
        let missing = limit.saturating_sub(u16::try_from(rows.len()).unwrap_or(u16::MAX));
        let read = OrdersQuery { from: last.or(query.from), ..part };
        rows.extend(first(conn, &read, missing).await?);
        before = last;
        if last.is_none() || rows.len() >= usize::from(limit) {
            return Ok((rows, None));
        }
    }
    Ok((rows, before))
}
