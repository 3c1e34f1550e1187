//! Orders listed and looked up, for buyers, operators and the shop's backend. Reads only.
//!
//! Newest first, by request id: ids grow with time, so a page begins where the last one ended. Each question has an index that
//! answers it in this order (ix_orders_user, ix_orders_sale state by state, or the primary key), however many orders there are.

use super::super::columns::{MaybeOrderState, MaybeUnixMs, UnixMs};
use super::super::fault::DbError;
use super::super::pool::{Conn, Db};
use super::super::schema::{orders, sales};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::OrderState;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text, Unsigned};
use diesel_async::RunQueryDsl;

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
    /// When it was written, Unix milliseconds by the database's clock.
    pub created_at_ms: i64,
    #[diesel(deserialize_as = MaybeUnixMs)]
    /// When it got its state.
    pub state_at_ms: Option<i64>,
    #[diesel(deserialize_as = MaybeUnixMs)]
    /// The deadline that the buyer is told.
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
    /// Most orders, 1 to [`PAGE_MAX`].
    pub limit: u16,
}

/// One page, newest first.
pub async fn find(db: &Db, query: &OrdersQuery) -> Result<Vec<ListedOrder>, DbError> {
    let limit = query.limit.clamp(1, PAGE_MAX);
    let rows = db
        .run("orders_find", async |conn| {
            let mut rows = Vec::new();
            for walk in walks(query) {
                rows.extend(walk.page(conn, limit).await?);
            }
            Ok(rows)
        })
        .await?;
    let mut rows: Vec<ListedOrder> = rows;
    rows.sort_by_key(|order| std::cmp::Reverse(order.request_id));
    // An order that changes between two walks may be in both. The walks follow the life of orders: the later one is true.
    rows.dedup_by(|later, kept| {
        let same = later.request_id == kept.request_id;
        if same {
            std::mem::swap(later, kept);
        }
        same
    });
    rows.truncate(limit.into());
    Ok(rows)
}

/// A walk along one index, newest first, of what a question asks for.
struct Walk<'q> {
    query: &'q OrdersQuery,
    index: &'static str,
    /// Only orders in this state; `Some(None)`: only those without one.
    state: Option<Option<OrderState>>,
}

/// The walks that answer a question. Of a sale, one for each state: within one its index is in the order of ids. They come in the
/// order of a life, and what has no state before that: an operator cancels such an order, which makes it CANCELLED. So an order that
/// changes meanwhile moves into a walk that is still to come, and no page lacks it.
fn walks(query: &OrdersQuery) -> Vec<Walk<'_>> {
    let walk = |index, state| Walk { query, index, state };
    let one_state = query.state.map(Some);
    match (&query.buyer, &query.sale) {
        (Some(_), _) => vec![walk("ix_orders_user", one_state)],
        (None, Some(_)) if one_state.is_some() => vec![walk("ix_orders_sale", one_state)],
        (None, Some(_)) => {
            let states = std::iter::once(None).chain(OrderState::ALL.map(Some));
            states.map(|state| walk("ix_orders_sale", Some(state))).collect()
        }
        (None, None) => vec![walk("PRIMARY", one_state)],
    }
}

impl Walk<'_> {
    /// The index is forced: for the orders of a page that lies deep in a large sale both servers prefer to walk the primary key
    /// and read the orders of every other sale on the way (1,500,000 rows and four seconds of ten million).
    async fn page(&self, conn: &mut Conn, limit: u16) -> Result<Vec<ListedOrder>, DbError> {
        let Self { query, index, state } = self;
        let mut conditions = vec!["TRUE"];
        let mut asked = |condition: &'static str, is_asked: bool| conditions.extend(is_asked.then_some(condition));
        asked("user_id = ?", query.buyer.is_some());
        asked("sale_id = ?", query.sale.is_some());
        asked("request_id >= ?", query.from.is_some());
        asked("request_id < ?", query.before.is_some());
        asked("state = ?", matches!(state, Some(Some(_))));
        asked("state IS NULL", *state == Some(None));
        let text = format!(
            "/* order_life::find */ SELECT request_id, sale_id, user_id, quantity, amount_cents, state, created_at, state_at, pay_by \
             FROM orders FORCE INDEX ({index}) WHERE {} ORDER BY request_id DESC LIMIT {limit}",
            conditions.join(" AND ")
        );
        let mut page = diesel::sql_query(text).into_boxed::<Mysql>();
        for name in query.buyer.iter().map(UserId::as_str).chain(query.sale.iter().map(SaleId::as_str)) {
            page = page.bind::<Binary, _>(name.as_bytes().to_vec());
        }
        for id in query.from.iter().chain(&query.before) {
            page = page.bind::<Unsigned<BigInt>, _>(id.get());
        }
        if let Some(Some(state)) = state {
            page = page.bind::<Text, _>(state.code());
        }
        let rows: Vec<OrderRow> = page.load(conn).await?;
        with_sales(conn, rows).await
    }
}

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = orders)]
struct OrderRow {
    request_id: RequestId,
    sale_id: SaleId,
    user_id: UserId,
    quantity: u32,
    amount_cents: i64,
    #[diesel(deserialize_as = MaybeOrderState)]
    state: Option<OrderState>,
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
            created_at_ms: row.created_at_ms,
            state_at_ms: row.state_at_ms,
            pay_by_ms: row.pay_by_ms,
            currency,
            title,
        }
    };
    Ok(rows.into_iter().map(listed).collect())
}

/// The order of a request; `None` when there is none (yet).
pub async fn get(db: &Db, request_id: RequestId) -> Result<Option<ListedOrder>, DbError> {
    Ok(of_requests(db, &[request_id]).await?.pop())
}

/// The orders of requests; those without one are left out. At most [`PAGE_MAX`] requests.
pub async fn of_requests(db: &Db, request_ids: &[RequestId]) -> Result<Vec<ListedOrder>, DbError> {
    let ids: Vec<u64> = request_ids.iter().take(PAGE_MAX.into()).map(|id| id.get()).collect();
    db.run("orders_of", async |conn| {
        let rows = orders::table.filter(orders::request_id.eq_any(&ids)).select(OrderRow::as_select());
        let rows: Vec<OrderRow> = rows.load(conn).await?;
        with_sales(conn, rows).await
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::order_life::{OrderEvent, OrderTransition};

    #[test]
    fn an_order_that_changes_between_two_walks_moves_into_a_later_one() {
        let query = OrdersQuery { sale: Some(SaleId::parse("s").unwrap()), ..OrdersQuery::default() };
        let asked: Vec<_> = walks(&query).into_iter().map(|walk| walk.state).collect();
        let at = |state: Option<OrderState>| asked.iter().position(|asked| *asked == Some(state)).unwrap();
        assert_eq!(asked.len(), OrderState::ALL.len() + 1, "each state once, and those without one");
        assert!(at(None) < at(Some(OrderState::Cancelled)), "what has no state can only be cancelled");
        for state in OrderState::ALL {
            for event in OrderEvent::ALL {
                if let OrderTransition::To(next) = state.after(event) {
                    assert!(at(Some(state)) <= at(Some(next)), "{state:?}, {event:?}");
                }
            }
        }
    }
}
