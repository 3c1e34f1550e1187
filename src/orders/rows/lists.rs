//! Orders listed and found, for buyers, operators and the shop's backend. Reads only.
//!
//! Newest first, by request id: ids grow with time, so a page begins where the last one ended. Each question has an index that
//! answers it in this order (ix_orders_user, ix_orders_sale or the primary key). Orders of a sale in one state are found among its
//! newest, or, where these are not enough, by the state (ix_orders_deadline), whose entries are sorted. Orders that were accepted in a
//! time are no range of ids: an id is made when a purchase token is issued. They are searched among the ids that the time may have,
//! a bounded number of orders for a page, which may have fewer orders than it could and say where the next one begins.

use crate::domain::ids::RequestId;
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::in_time::in_time;
use crate::orders::rows::query::{OrdersQuery, PAGE_MAX, bound, conditions, first, last_of};
use crate::orders::rows::row::{COLUMNS, OrderRow, OrderTerms, terms_of};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::orders;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// An order as it was read, and what its sale says of it; the sale's part is empty where the sale has no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedOrder {
    /// Its row.
    pub row: OrderRow,
    /// Of its sale.
    pub terms: OrderTerms,
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

/// With what the sales of these orders say; a page has few sales.
async fn with_sales(conn: &mut Conn, rows: Vec<OrderRow>) -> Result<Vec<ListedOrder>, DbError> {
    let known = terms_of(conn, &rows.iter().map(|row| &row.sale_id).collect::<Vec<_>>()).await?;
    let listed = |row: OrderRow| {
        let terms = known.get(&row.sale_id).cloned().unwrap_or_default();
        ListedOrder { row, terms }
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
