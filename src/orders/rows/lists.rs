//! Orders listed and found, for buyers, operators and the shop's backend. Reads only.
//!
//! Each walk names its index: for a page deep in a sale MariaDB took the primary key, and read 1,500,000 rows.
//! Newest first, by request id: ids grow with time, so a page begins where the last one ended. Each question has an index that
//! answers it in this order (ix_orders_user, ix_orders_sale or the primary key). Orders of a sale in one state are found among its
//! newest, or, where these are not enough, by the state (ix_orders_deadline), whose entries are sorted. Orders that were accepted in a
//! time are no range of ids: an id is made when a purchase token is issued. They are searched among the ids that the time may have,
//! a bounded number of orders for a page, which may have fewer orders than it could and say where the next one begins.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::OrderState;
use crate::orders::rows::OrderRows;
use crate::orders::rows::in_time::in_time;
use crate::store::mysql::columns::{MaybeOrderState, MaybeUnixMs, UnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{orders, sales};
use chrono::{DateTime, NaiveDateTime, Utc};
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// The last time that a column holds, Unix milliseconds: the end of the year 9999.
const TIME_MAX_MS: i64 = 253_402_300_799_999;

/// Most orders of a page.
pub const PAGE_MAX: u16 = 500;

/// An order as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct ListedOrder {
    /// The request that became this order.
    pub request_id: RequestId,
    /// The sale that sold it.
    pub sale_id: SaleId,
    /// The buyer who owns it.
    pub user_id: UserId,
    /// Number of units, at least 1.
    pub quantity: u32,
    /// What it costs, in the currency's smallest unit.
    pub amount_cents: i64,
    #[diesel(deserialize_as = MaybeOrderState)]
    /// Where it is; `None`: its sale has no payment step.
    pub state: Option<OrderState>,
    #[diesel(deserialize_as = UnixMs)]
    /// When Redis accepted it, Unix milliseconds by its clock.
    pub accepted_at_ms: i64,
    #[diesel(deserialize_as = UnixMs)]
    /// When it was written, Unix milliseconds by the database's clock.
    pub created_at_ms: i64,
    #[diesel(deserialize_as = MaybeUnixMs)]
    /// When it got its state.
    pub state_at_ms: Option<i64>,
    #[diesel(deserialize_as = MaybeUnixMs)]
    /// The deadline that the buyer sees.
    pub pay_by_ms: Option<i64>,
    /// ISO 4217 code.
    pub currency: String,
    /// What the sale calls itself.
    pub title: String,
}

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

/// A page of orders, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundOrders {
    /// At most as many as were asked for; where a time was asked for it may be fewer although there are more.
    pub orders: Vec<ListedOrder>,
    /// `before` of the next page; `None` on the last one.
    pub next: Option<RequestId>,
}

/// For a page of orders in one state this number of times as many orders of the sale are read over.
const READ_OVER: u32 = 50;
/// What is read of an order.
const COLUMNS: &str = "o.request_id, o.sale_id, o.user_id, o.quantity, o.amount_cents, o.state, o.accepted_at, o.created_at, o.state_at, o.pay_by";

impl OrderRows {
    /// One page, newest first. Where no time is asked for it comes from one statement, so that an order that changes meanwhile is neither
    /// missed nor listed twice.
    pub async fn find(&self, query: &OrdersQuery) -> Result<FoundOrders, DbError> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let of_sale = query.sale.is_some() && query.buyer.is_none();
        self.db
            .run("orders_find", async |conn| {
                // One more than the page has, to know whether there is another page.
                let (mut rows, rest) = match (query.is_of_a_time(), query.state) {
                    (true, _) => in_time(conn, query, limit + 1).await?,
                    (false, Some(_)) if of_sale => (in_state(conn, query, limit + 1).await?, None),
                    (false, Some(_) | None) => (first(conn, query, limit + 1).await?, None),
                };
                let has_more = rows.len() > usize::from(limit);
                rows.truncate(limit.into());
                let next = if has_more { rows.last().map(|row| row.request_id) } else { rest };
                Ok(FoundOrders { orders: with_sales(conn, rows).await?, next })
            })
            .await
    }
}

impl OrdersQuery {
    const fn is_of_a_time(&self) -> bool {
        self.accepted_from_ms.is_some() || self.accepted_to_ms.is_some()
    }
}

/// The request id this number of places behind the first one that is asked for; `None` where there are fewer.
pub(crate) async fn last_of(conn: &mut Conn, query: &OrdersQuery, offset: u32) -> Result<Option<RequestId>, DbError> {
    let text = format!("SELECT o.request_id {} ORDER BY o.request_id DESC LIMIT 1 OFFSET {offset}", chosen(query));
    let row: Option<IdRow> = bound(query, &text).get_result(conn).await.optional()?;
    Ok(row.map(|row| row.request_id))
}

#[derive(QueryableByName)]
#[diesel(table_name = orders)]
struct IdRow {
    request_id: RequestId,
}

/// Orders of a sale in one state. Where they are not among the newest of the sale, all of the state are sorted: entries of an index,
/// not rows.
async fn in_state(conn: &mut Conn, query: &OrdersQuery, limit: u16) -> Result<Vec<OrderRow>, DbError> {
    let stateless = OrdersQuery { state: None, ..query.clone() };
    let last_read = last_of(conn, &stateless, u32::from(limit) * READ_OVER).await?;
    let newest = OrdersQuery { from: last_read.or(query.from), ..query.clone() };
    let rows = first(conn, &newest, limit).await?;
    if rows.len() >= usize::from(limit) || newest.from == query.from {
        return Ok(rows);
    }
    let sorted = format!(
        "SELECT {COLUMNS} FROM (SELECT o.request_id FROM orders o FORCE INDEX (ix_orders_deadline) {} \
         ORDER BY o.request_id DESC LIMIT {limit}) AS chosen \
         JOIN orders o FORCE INDEX (PRIMARY) ON o.request_id = chosen.request_id ORDER BY o.request_id DESC",
        conditions(query)
    );
    Ok(bound(query, &sorted).load(conn).await?)
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

fn conditions(query: &OrdersQuery) -> String {
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

type BoundQuery = diesel::query_builder::BoxedSqlQuery<'static, Mysql, diesel::query_builder::SqlQuery>;

/// A statement with the values of its [`conditions`].
fn bound(query: &OrdersQuery, text: &str) -> BoundQuery {
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

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = orders)]
pub(crate) struct OrderRow {
    pub(crate) request_id: RequestId,
    sale_id: SaleId,
    user_id: UserId,
    quantity: u32,
    amount_cents: i64,
    #[diesel(deserialize_as = MaybeOrderState)]
    state: Option<OrderState>,
    #[diesel(column_name = accepted_at, deserialize_as = UnixMs)]
    accepted_at_ms: i64,
    #[diesel(column_name = created_at, deserialize_as = UnixMs)]
    created_at_ms: i64,
    #[diesel(column_name = state_at, deserialize_as = MaybeUnixMs)]
    state_at_ms: Option<i64>,
    #[diesel(column_name = pay_by, deserialize_as = MaybeUnixMs)]
    pay_by_ms: Option<i64>,
}

/// What the sales of these orders say; a page has few sales.
async fn with_sales(conn: &mut Conn, rows: Vec<OrderRow>) -> Result<Vec<ListedOrder>, DbError> {
    let mut ids: Vec<&[u8]> = rows.iter().map(|row| row.sale_id.as_str().as_bytes()).collect();
    ids.sort_unstable();
    ids.dedup();
    let known: Vec<(SaleId, String, String)> = match ids.is_empty() {
        true => Vec::new(),
        false => {
            let wanted = sales::table.filter(sales::sale_id.eq_any(ids));
            wanted.select((sales::sale_id, sales::currency, sales::title)).load(conn).await?
        }
    };
    let known: std::collections::HashMap<SaleId, (String, String)> =
        known.into_iter().map(|(sale, currency, title)| (sale, (currency, title))).collect();
    let listed = |row: OrderRow| {
        let (currency, title) = known.get(&row.sale_id).cloned().unwrap_or_default();
        ListedOrder {
            request_id: row.request_id,
            sale_id: row.sale_id,
            user_id: row.user_id,
            quantity: row.quantity,
            amount_cents: row.amount_cents,
            state: row.state,
            accepted_at_ms: row.accepted_at_ms,
            created_at_ms: row.created_at_ms,
            state_at_ms: row.state_at_ms,
            pay_by_ms: row.pay_by_ms,
            currency,
            title,
        }
    };
    Ok(rows.into_iter().map(listed).collect())
}

impl OrderRows {
    /// The order of a request; `None` when there is none (yet).
    pub async fn get(&self, request_id: RequestId) -> Result<Option<ListedOrder>, DbError> {
        Ok(self.of_requests(&[request_id]).await?.pop())
    }

    /// The orders of requests; those without one are left out. At most [`PAGE_MAX`] requests.
    pub async fn of_requests(&self, request_ids: &[RequestId]) -> Result<Vec<ListedOrder>, DbError> {
        let ids: Vec<u64> = request_ids.iter().take(PAGE_MAX.into()).map(|id| id.get()).collect();
        self.db
            .run("orders_of", async |conn| {
                let rows = orders::table.filter(orders::request_id.eq_any(&ids)).select(OrderRow::as_select());
                let rows: Vec<OrderRow> = rows.load(conn).await?;
                with_sales(conn, rows).await
            })
            .await
    }
}
