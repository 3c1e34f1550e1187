//! A buyer's own orders (L4): listed, shown, cancelled; and the order that a CONFIRMED status tells of.
//!
//! Input: a buyer, an order. Output: what the database says of it; another buyer's order is not there. Status questions are read in
//! groups, so a crowd that watches its deadlines is a trickle of reads; the other calls are bounded, and more get 503. Keeps
//! nothing.

use super::catalog::Catalog;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::http::problem::{Kind, Problem};
use crate::p6_fulfil::{self, FulfilContext, OrderDocument};
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::store::mysql::DbError;
use crate::store::mysql::order_life::{self, Cancelled, ListedOrder, OrdersQuery};
use serde::Serialize;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Orders of a page.
pub(crate) const PAGE: u16 = 50;
/// Calls at the database at once, of one process.
const CALLS_MAX: usize = 64;
const BOUNDS: Bounds = Bounds { group_max: 500, waiting_max: 4_096, in_flight_max: 2, idle_end: None };
/// Shortest time from one grouped read to the next.
const GATHER: Duration = Duration::from_millis(5);

/// The order that became of a CONFIRMED request, in a sale with a payment step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct StatusOrder {
    /// UNPAID, PAID, EXPIRED or CANCELLED.
    #[schema(example = "UNPAID")]
    pub(crate) state: Option<&'static str>,
    /// What it costs, in the smallest unit of the currency.
    pub(crate) amount: i64,
    /// ISO 4217 code.
    #[schema(example = "CNY")]
    pub(crate) currency: String,
    /// The deadline of its payment, RFC 3339.
    pub(crate) pay_by: Option<String>,
}

type Answer = Result<Option<ListedOrder>, ()>;

/// Orders of buyers, of one process.
pub struct MyOrders {
    context: FulfilContext,
    catalog: Catalog,
    reads: QuestionBatcher<RequestId, Answer>,
    calls: Semaphore,
}

impl MyOrders {
    /// Starts the grouped reads, on the runtime this is called in.
    pub(crate) fn start(context: FulfilContext, catalog: Catalog) -> Self {
        let db = context.db.clone();
        let reads = QuestionBatcher::start(BOUNDS, move |request_ids: Vec<RequestId>| {
            let db = db.clone();
            async move {
                let (found, ()) = tokio::join!(order_life::of_requests(&db, &request_ids), tokio::time::sleep(GATHER));
                answers(&request_ids, found)
            }
        });
        Self { context, catalog, reads, calls: Semaphore::new(CALLS_MAX) }
    }

    /// The servers of P6, for the demo shop.
    pub(crate) const fn fulfil(&self) -> &FulfilContext {
        &self.context
    }

    /// What a CONFIRMED status says of its order; `None` where the sale has no payment step, and while the database cannot be asked.
    pub(crate) async fn part(&self, sale: &SaleId, request_id: RequestId) -> Option<StatusOrder> {
        let view = self.catalog.known(sale).await?;
        view.sale.payment?;
        let order = self.reads.ask(request_id).await.ok()?.ok()??;
        let OrderDocument { state, amount, currency, pay_by, .. } = OrderDocument::of(order);
        Some(StatusOrder { state, amount, currency, pay_by })
    }

    async fn call<T>(&self, work: impl Future<Output = Result<T, DbError>>) -> Result<T, Problem> {
        let _place = self
            .calls
            .try_acquire()
            .map_err(|_full| Kind::Overloaded.because_both("too many ask for their orders", "查询订单的人过多"))?;
        work.await.map_err(|error| {
            tracing::warn!(phase = "p1_entry", %error, "orders");
            Kind::Unavailable
                .because_both("orders cannot be read or changed right now; repeat it", "订单暂时无法读取或修改，请重试")
        })
    }

    /// A page of a buyer's orders, newest first, and where the next one begins.
    pub(crate) async fn list(
        &self,
        user: UserId,
        before: Option<RequestId>,
    ) -> Result<(Vec<OrderDocument>, Option<RequestId>), Problem> {
        let query = OrdersQuery { buyer: Some(user), before, limit: PAGE, ..OrdersQuery::default() };
        let orders = self.call(order_life::find(&self.context.db, &query)).await?;
        let full = orders.len() == usize::from(PAGE);
        let next = orders.last().filter(|_| full).map(|order| order.request_id);
        Ok((orders.into_iter().map(OrderDocument::of).collect(), next))
    }

    /// One order of a buyer.
    pub(crate) async fn one(&self, user: &UserId, request_id: RequestId) -> Result<OrderDocument, Problem> {
        let order = self.call(order_life::get(&self.context.db, request_id)).await?;
        order.filter(|order| order.user_id == *user).map(OrderDocument::of).ok_or_else(|| Kind::OrderNotFound.into())
    }

    /// Cancels an unpaid order of a buyer. Repeating is safe.
    pub(crate) async fn cancel(&self, user: &UserId, request_id: RequestId) -> Result<OrderDocument, Problem> {
        match self.call(p6_fulfil::cancel_by_buyer(&self.context, request_id, user)).await? {
            Cancelled::Now(..) | Cancelled::Before(_) => self.one(user, request_id).await,
            Cancelled::Refused(_, None) => {
                Err(Kind::Conflict
                    .because_both("orders of this sale cannot be cancelled here", "该活动的订单不能在此取消"))
            }
            Cancelled::Refused(_, Some(state)) => {
                let english = format!("the order is {}, only an unpaid one can be cancelled", state.code());
                Err(Kind::Conflict.because_both(english, format!("订单{}，只能取消待付款的订单", state.chinese())))
            }
            Cancelled::NoOrder => Err(Kind::OrderNotFound.into()),
        }
    }
}

/// The answers in the order of the questions.
fn answers(request_ids: &[RequestId], found: Result<Vec<ListedOrder>, DbError>) -> Vec<Answer> {
    match found {
        Ok(orders) => {
            let orders: HashMap<RequestId, ListedOrder> =
                orders.into_iter().map(|order| (order.request_id, order)).collect();
            // Two may ask about one order: it is cloned.
            request_ids.iter().map(|id| Ok(orders.get(id).cloned())).collect()
        }
        Err(error) => {
            tracing::warn!(phase = "p1_entry", count = request_ids.len(), %error, "orders of statuses");
            vec![Err(()); request_ids.len()]
        }
    }
}
