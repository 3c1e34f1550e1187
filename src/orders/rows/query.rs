//! Which orders are asked for, as conditions of a statement, and their rows. Reads only.
//!
//! Input: a filter. Output: text whose values are digits, hexadecimal digits and our own codes, so that it can stand in a statement any
//! number of times.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::OrderState;
use crate::orders::rows::row::OrderRow;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::orders;
use crate::store::mysql::values::{Values, literal};
use chrono::{DateTime, NaiveDateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// The last time that a column holds, Unix milliseconds: the end of the year 9999.
const TIME_MAX_MS: i64 = 253_402_300_799_999;

/// Most orders of a page.
pub const PAGE_MAX: u16 = 500;

/// Which orders are asked for.
#[derive(Debug, Clone, Default)]
pub struct OrdersQuery {
    /// Of this sale.
    pub sale: Option<SaleId>,
    /// Of this buyer.
    pub buyer: Option<UserId>,
    /// In this state; with `sale` or `buyer`.
    pub state: Option<OrderState>,
    /// Request ids from here on: where a time begins.
    pub from: Option<RequestId>,
    /// What comes behind this one in the list: where the page before ended; or the end of a time.
    pub before: Option<RequestId>,
    /// Accepted from then on, Unix milliseconds by the clock of Redis.
    pub accepted_from_ms: Option<i64>,
    /// Accepted before then.
    pub accepted_to_ms: Option<i64>,
    /// Most orders, 1 to [`PAGE_MAX`].
    pub limit: u16,
}

impl OrdersQuery {
    pub(super) const fn is_of_a_time(&self) -> bool {
        self.from.is_some() || self.accepted_from_ms.is_some() || self.accepted_to_ms.is_some()
    }
}

/// All that is asked for, of orders called `o`; `from` and `before` as ids.
pub(super) fn conditions(query: &OrdersQuery) -> String {
    let mut text = "TRUE".to_owned();
    let mut asked = |column: &str, value: Option<String>| {
        text.extend(value.map(|value| format!(" AND o.{column} {value}")));
    };
    let time = |at_ms: i64| {
        let mut value = Values::list(1);
        value.time(moment(at_ms));
        value.finish()
    };
    asked("user_id =", query.buyer.as_ref().map(|buyer| literal(buyer.as_str().as_bytes())));
    asked("sale_id =", query.sale.as_ref().map(|sale| literal(sale.as_str().as_bytes())));
    asked("request_id >=", query.from.map(|id| id.to_string()));
    asked("request_id <", query.before.map(|id| id.to_string()));
    asked("state =", query.state.map(|state| format!("'{}'", state.code())));
    asked("accepted_at >=", query.accepted_from_ms.map(time));
    asked("accepted_at <", query.accepted_to_ms.map(time));
    text
}

/// A time as the database has it; one that it cannot hold is the nearest that there is.
fn moment(unix_ms: i64) -> NaiveDateTime {
    let nearest = if unix_ms < 0 { DateTime::UNIX_EPOCH } else { DateTime::<Utc>::MAX_UTC };
    DateTime::from_timestamp_millis(unix_ms.clamp(0, TIME_MAX_MS)).unwrap_or(nearest).naive_utc()
}

/// A count, of a statement that bounds it.
#[derive(QueryableByName)]
pub(super) struct RowCount {
    #[diesel(sql_type = BigInt)]
    pub(super) n: i64,
}

/// An id out of an index: no row is read.
#[derive(QueryableByName)]
#[diesel(table_name = orders)]
pub(super) struct IdRow {
    pub(super) request_id: RequestId,
}

/// The orders of these requests that are in this state, if it is asked for, in the order of the ids. Archived ones are left out.
pub(super) async fn rows_of(
    conn: &mut Conn,
    ids: &[RequestId],
    state: Option<OrderState>,
) -> Result<Vec<OrderRow>, DbError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut wanted = orders::table
        .filter(orders::request_id.eq_any(ids.iter().map(|id| id.get())))
        .select(OrderRow::as_select())
        .into_boxed();
    if let Some(state) = state {
        wanted = wanted.filter(orders::state.eq(state.code()));
    }
    let rows: Vec<OrderRow> = wanted.load(conn).await?;
    let mut rows: HashMap<RequestId, OrderRow> = rows.into_iter().map(|row| (row.request_id, row)).collect();
    Ok(ids.iter().filter_map(|id| rows.remove(id)).collect())
}
