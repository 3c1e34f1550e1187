//! A buyer's own orders (L4): listed, shown, cancelled; and the order that a CONFIRMED status shows.
//!
//! Input: a buyer, an order. Output: what the database says of it; another buyer's order is not there. Status questions are read in
//! groups, and each answer is kept: for a second while it can change, for minutes when the order has ended. So a crowd that watches
//! its deadlines is a trickle of reads. The other calls take of their buyer's rate, as purchases do, and are bounded: one account
//! cannot take the database from the others, and more than it bears get 503. A crash leaves nothing.

use super::catalog::{Catalog, CatalogLookup};
use super::kept_for::KeptFor;
use super::queued_orders::{NotSaid, QueuedOrders};
use super::rate_limits::RateLimits;
use super::status::{LedgerReads, StatusOrder, status_url};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::OrderState;
use crate::http::problem::{Kind, Problem};
use crate::orders::document::OrderDocument;
use crate::orders::rows::{Cancelled, ListedOrder, OrdersQuery};
use crate::p6_fulfil::{self, CancelError, FulfilContext};
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::store::mysql::DbError;
use moka::future::Cache;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Orders of a page.
pub(crate) const PAGE: u16 = 50;
/// Calls at the database at once, of one process.
const CALLS_MAX: usize = 64;
const BOUNDS: Bounds = Bounds { group_max: 500, waiting_max: 4_096, in_flight_max: 2, idle_end: None };
/// Shortest time from one grouped read to the next.
const GATHER: Duration = Duration::from_millis(5);

/// Longest wait of a status for its sale to be read.
const SALE_WAIT: Duration = Duration::from_millis(500);
/// What the next event may change is answered from memory for this time.
const CHANGING_TTL: Duration = Duration::from_secs(1);
/// An order that expired or was cancelled stays so.
const ENDED_TTL: Duration = Duration::from_secs(300);
/// Orders remembered; about 250 bytes each.
const KEPT_MAX: u64 = 20_000;

type Answer = Result<Option<ListedOrder>, ()>;

/// How long an order is answered from memory without another read.
fn kept_for(order: &Option<StatusOrder>) -> Duration {
    match order.as_ref().and_then(|order| order.state).and_then(OrderState::from_code) {
        Some(OrderState::Expired | OrderState::Cancelled) => ENDED_TTL,
        Some(OrderState::Unpaid | OrderState::Paid) | None => CHANGING_TTL,
    }
}

/// Orders of buyers, of one process.
pub struct MyOrders {
    context: FulfilContext,
    catalog: Catalog,
    queued: QueuedOrders,
    reads: QuestionBatcher<RequestId, Answer>,
    kept: Cache<RequestId, Option<StatusOrder>>,
    limits: Arc<RateLimits>,
    calls: Semaphore,
}

impl MyOrders {
    /// Starts the grouped reads, on the runtime this is called in.
    pub(crate) fn start(
        context: FulfilContext,
        catalog: Catalog,
        ledger_reads: LedgerReads,
        limits: Arc<RateLimits>,
    ) -> Self {
        let queued = QueuedOrders::new(ledger_reads, context.rows.sales.clone(), context.shards);
        let rows = context.orders.clone();
        let reads = QuestionBatcher::start(BOUNDS, move |request_ids: Vec<RequestId>| {
            let rows = rows.clone();
            async move {
                let (found, ()) = tokio::join!(rows.of_requests(&request_ids), tokio::time::sleep(GATHER));
                answers(&request_ids, found)
            }
        });
        let kept = Cache::builder().max_capacity(KEPT_MAX).expire_after(KeptFor(kept_for)).build();
        Self { context, catalog, queued, reads, kept, limits, calls: Semaphore::new(CALLS_MAX) }
    }

    /// The servers of P6, for the demo shop.
    pub(crate) const fn fulfil(&self) -> &FulfilContext {
        &self.context
    }

    /// What a CONFIRMED status says of its order; `None` where the sale has no payment step, and while the database cannot be
    /// asked.
    pub(crate) async fn part(&self, sale: &SaleId, request_id: RequestId) -> Option<StatusOrder> {
        // Terms are settled before the first order. While the sale cannot be read the order itself says whether it is to be paid.
        let has_payment_step = match Box::pin(self.catalog.lookup_within(sale, SALE_WAIT)).await {
            CatalogLookup::Found(view) => Some(view.sale.payment.is_some()),
            CatalogLookup::Missing | CatalogLookup::Loading | CatalogLookup::Unavailable => None,
        };
        if has_payment_step == Some(false) {
            return None;
        }
        // Of many who ask at once one reads; what cannot be read is not kept.
        let read = async {
            let found = self.reads.ask(request_id).await.map_err(|_busy| ())??;
            Ok::<_, ()>(found.map(OrderDocument::of).map(StatusOrder::of))
        };
        let order = self.kept.try_get_with(request_id, read).await.ok()?;
        order.filter(|order| has_payment_step.is_some() || order.state.is_some())
    }

    async fn call<T>(&self, work: impl Future<Output = Result<T, DbError>>) -> Result<T, Problem> {
        let _place = self
            .calls
            .try_acquire()
            .map_err(|_full| Kind::Overloaded.because_both("too many ask for their orders", "查询订单的人过多"))?;
        work.await.map_err(|error| {
            tracing::warn!(phase = "p1_entry", %error, "orders");
            match error {
                // Not of the moment: the database refuses what this order needs.
                DbError::Other(_) | DbError::Duplicate(_) | DbError::UnknownSale(_) => Kind::Internal.because_both(
                    "this is not possible as the order is on record, and repeating does not help; tell the shop the order's number",
                    "订单记录有误，无法执行，重试无效；请将订单号告知商家",
                ),
                DbError::Deadlock
                | DbError::LockWait
                | DbError::SaleLocked(_)
                | DbError::LeftUntried
                | DbError::Unavailable(_)
                | DbError::Timeout(_)
                | DbError::WrongNode(_)
                | DbError::Damaged(_) => Kind::Unavailable.because_both(
                    "orders cannot be read or changed right now; repeat it",
                    "订单暂时无法读取或修改，请重试",
                ),
            }
        })
    }

    /// A page of a buyer's orders, newest first, and where the next one begins.
    pub(crate) async fn list(
        &self,
        user: UserId,
        before: Option<RequestId>,
    ) -> Result<(Vec<OrderDocument>, Option<RequestId>), Problem> {
        self.limits.take_of_buyer(&user).await?;
        let query = OrdersQuery { buyer: Some(user), before, limit: PAGE, ..OrdersQuery::default() };
        let found = self.call(self.context.orders.find(&query)).await??;
        Ok((found.orders.into_iter().map(OrderDocument::of).collect(), found.next))
    }

    /// One order of a buyer.
    pub(crate) async fn one(&self, user: &UserId, request_id: RequestId) -> Result<OrderDocument, Problem> {
        self.limits.take_of_buyer(user).await?;
        self.read(user, request_id).await
    }

    /// A status that is asked for from now on shows what an act of this process made of the order, but for a read that was under way:
    /// that one is kept for a second, as every change is that another process makes.
    pub(crate) async fn has_changed(&self, request_id: RequestId) {
        self.kept.invalidate(&request_id).await;
    }

    /// The same without the rate, behind an act that has taken of it.
    pub(crate) async fn read(&self, user: &UserId, request_id: RequestId) -> Result<OrderDocument, Problem> {
        match self.call(self.context.orders.get(request_id)).await? {
            Some(order) if order.row.user_id == *user => Ok(OrderDocument::of(order)),
            Some(_) => Err(Kind::OrderNotFound.into()),
            None => Err(Box::pin(self.no_order(user, request_id)).await),
        }
    }

    /// Why a request of this buyer has no order.
    async fn no_order(&self, user: &UserId, request_id: RequestId) -> Problem {
        match self.queued.sale_of(user, request_id).await {
            Ok(Some(sale)) => Kind::OrderQueued
                .because_both("the purchase is accepted", "购买已受理")
                .about(request_id, status_url(&sale, request_id)),
            Ok(None) => Kind::OrderNotFound.into(),
            Err(NotSaid) => Kind::Unavailable
                .because_both("whether there is such an order is not known right now", "暂时无法得知是否有该订单"),
        }
    }

    /// Cancels an unpaid order of a buyer. Repeating is safe.
    pub(crate) async fn cancel(&self, user: &UserId, request_id: RequestId) -> Result<OrderDocument, Problem> {
        self.limits.take_of_buyer(user).await?;
        let work = async {
            match p6_fulfil::cancel_by_buyer(&self.context, request_id, user).await {
                Ok(cancelled) => Ok(Some(cancelled)),
                Err(CancelError::BeingRebuilt(_) | CancelError::NoOrderYet(_)) => Ok(None),
                Err(CancelError::Database(error)) => Err(error),
            }
        };
        let Some(cancelled) = self.call(work).await? else {
            let english = "orders of this sale cannot be cancelled for a moment; repeat it";
            return Err(Kind::Unavailable.because_both(english, "该活动的订单暂时不能取消，请稍后重试"));
        };
        self.has_changed(request_id).await;
        match cancelled {
            Cancelled::Now(..) | Cancelled::Before(_) => self.read(user, request_id).await,
            Cancelled::Refused(_, None) => {
                Err(Kind::Conflict
                    .because_both("orders of this sale cannot be cancelled here", "该活动的订单不能在此取消"))
            }
            Cancelled::Refused(_, Some(state)) => {
                let english = format!("the order is {}, only an unpaid one can be cancelled", state.code());
                Err(Kind::Conflict.because_both(english, format!("订单{}，只能取消待付款的订单", state.chinese())))
            }
            Cancelled::NoOrder => Err(Box::pin(self.no_order(user, request_id)).await),
        }
    }
}

/// The answers in the order of the questions.
fn answers(request_ids: &[RequestId], found: Result<Vec<ListedOrder>, DbError>) -> Vec<Answer> {
    match found {
        Ok(orders) => {
            let orders: HashMap<RequestId, ListedOrder> =
                orders.into_iter().map(|order| (order.row.request_id, order)).collect();
            // Two may ask about one order: it is cloned.
            request_ids.iter().map(|id| Ok(orders.get(id).cloned())).collect()
        }
        Err(error) => {
            tracing::warn!(phase = "p1_entry", count = request_ids.len(), %error, "orders of statuses");
            vec![Err(()); request_ids.len()]
        }
    }
}
