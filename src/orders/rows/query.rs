//! Which orders are asked for, as statements: each walks one index that it names, newest first.
//!
//! For a page deep in a sale MariaDB took the primary key, and read 1,500,000 rows. Input: a filter. Output: rows, in the order of their
//! ids. Reads only.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::OrderState;
use crate::orders::rows::row::{COLUMNS, OrderRow};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::orders;
use chrono::{DateTime, NaiveDateTime, Utc};
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Text, Unsigned};
use diesel_async::RunQueryDsl;

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
    /// Request ids from here on.
    pub from: Option<RequestId>,
    /// Request ids below this one: where the page before ended, or the end of a time.
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
        self.accepted_from_ms.is_some() || self.accepted_to_ms.is_some()
    }
}

/// The request id this number of places behind the first one that is asked for; `None` where there are fewer.
pub(crate) async fn last_of(conn: &mut Conn, query: &OrdersQuery, offset: u32) -> Result<Option<RequestId>, DbError> {
    let text = format!("SELECT o.request_id {} ORDER BY o.request_id DESC LIMIT 1 OFFSET {offset}", chosen(query));
    let row: Option<IdRow> = bound(query, &text).get_result(conn).await.optional()?;
    Ok(row.map(|row| row.request_id))
}

/// Of the orders that are passed over no row is read: their ids are in the index.
#[derive(QueryableByName)]
#[diesel(table_name = orders)]
struct IdRow {
    request_id: RequestId,
}

/// The first of what is asked for, along one index.
pub(crate) async fn first(conn: &mut Conn, query: &OrdersQuery, limit: u16) -> Result<Vec<OrderRow>, DbError> {
    let text = format!("SELECT {COLUMNS} {} ORDER BY o.request_id DESC LIMIT {limit}", chosen(query));
    Ok(bound(query, &text).load(conn).await?)
}

/// The index is forced: for the orders of a page that lies deep in a large sale both servers prefer to walk the primary key and read
/// the orders of every other sale on the way (1,500,000 rows and four seconds of ten million).
fn chosen(query: &OrdersQuery) -> String {
    let index = match (&query.buyer, &query.sale) {
        (Some(_), _) => "ix_orders_user",
        (None, Some(_)) => "ix_orders_sale",
        (None, None) => "PRIMARY",
    };
    format!("FROM orders o FORCE INDEX ({index}) {}", conditions(query))
}

pub(super) fn conditions(query: &OrdersQuery) -> String {
    let mut conditions = vec!["TRUE"];
    let mut asked = |condition: &'static str, is_asked: bool| conditions.extend(is_asked.then_some(condition));
    asked("o.user_id = ?", query.buyer.is_some());
    asked("o.sale_id = ?", query.sale.is_some());
    asked("o.request_id >= ?", query.from.is_some());
    asked("o.request_id < ?", query.before.is_some());
    asked("o.state = ?", query.state.is_some());
    asked("o.accepted_at >= ?", query.accepted_from_ms.is_some());
    asked("o.accepted_at < ?", query.accepted_to_ms.is_some());
    format!("WHERE {}", conditions.join(" AND "))
}

pub(super) type BoundQuery = diesel::query_builder::BoxedSqlQuery<'static, Mysql, diesel::query_builder::SqlQuery>;

/// A statement with the values of its [`conditions`].
pub(super) fn bound(query: &OrdersQuery, text: &str) -> BoundQuery {
    let mut page = diesel::sql_query(format!("/* orders::find */ {text}")).into_boxed::<Mysql>();
    for name in query.buyer.iter().map(UserId::as_str).chain(query.sale.iter().map(SaleId::as_str)) {
        page = page.bind::<Binary, _>(name.as_bytes().to_vec());
    }
    for id in query.from.iter().chain(&query.before) {
        page = page.bind::<Unsigned<BigInt>, _>(id.get());
    }
    if let Some(state) = query.state {
        page = page.bind::<Text, _>(state.code());
    }
    for at_ms in query.accepted_from_ms.iter().chain(&query.accepted_to_ms) {
        page = page.bind::<Datetime, _>(moment(*at_ms));
    }
    page
}

/// A time as the database has it; one that it cannot hold is the nearest that there is.
fn moment(unix_ms: i64) -> NaiveDateTime {
    let nearest = if unix_ms < 0 { DateTime::UNIX_EPOCH } else { DateTime::<Utc>::MAX_UTC };
    DateTime::from_timestamp_millis(unix_ms.clamp(0, TIME_MAX_MS)).unwrap_or(nearest).naive_utc()
}
