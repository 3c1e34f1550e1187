//! Orders listed and found, for buyers, operators and the shop's backend. Reads only.
//!
//! Newest first, and a page begins where the last one ended. Each question has an index that answers it in its order: a buyer's orders
//! by id (`of_buyer`), those of a sale by acceptance (`of_sale`), all others by id (`by_id`).

use crate::domain::ids::RequestId;
use crate::http::bad_form::{BadForm, bad};
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::query::{OrdersQuery, PAGE_MAX, rows_of};
use crate::orders::rows::row::{OrderRow, OrderTerms, terms_of};
use crate::orders::rows::{by_id, of_buyer, of_sale};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;

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
    /// At most as many as were asked for; where a time or a state was asked for, and of a buyer with many, it may be fewer although there are more.
    pub orders: Vec<ListedOrder>,
    /// `before` of the next page; `None` on the last one.
    pub next: Option<RequestId>,
}

impl OrderRows {
    /// One page, newest first. An order that changes between two pages is neither missed nor listed twice. A [`BadForm`]: where the
    /// page is to begin is no request of this sale.
    pub async fn find(&self, query: &OrdersQuery) -> Result<Result<FoundOrders, BadForm>, DbError> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        // One more than the page has, to know whether there is another page.
        let most = limit + 1;
        self.db
            .run("orders_find", async |conn| {
                let (mut rows, rest) = match (&query.buyer, &query.sale) {
                    (Some(_), _) => of_buyer::newest(conn, query, most).await?,
                    (None, Some(sale)) if !query.is_of_a_time() => {
                        let Some(found) = of_sale::newest(conn, query, sale, most).await? else {
                            return Ok(bad("cursor", "an order of this sale", "本活动的订单"));
                        };
                        found
                    }
                    (None, _) if query.is_of_a_time() => by_id::in_time(conn, query, most).await?,
                    (None, _) => (by_id::newest(conn, query, most).await?, None),
                };
                let has_more = rows.len() > usize::from(limit);
                rows.truncate(limit.into());
                let next = if has_more { rows.last().map(|row| row.request_id) } else { rest };
                Ok(Ok(FoundOrders { orders: with_sales(conn, rows).await?, next }))
            })
            .await
    }
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
        let ids = &request_ids[..request_ids.len().min(PAGE_MAX.into())];
        self.db
            .run("orders_of", async |conn| {
                let rows = rows_of(conn, ids, None).await?;
                with_sales(conn, rows).await
            })
            .await
    }
}
