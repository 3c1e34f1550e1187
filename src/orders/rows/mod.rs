//! The rows of orders and payments: what happens to an order after it was confirmed (P6), and how its rows are read. Each change is one conditional UPDATE, whose condition is made from the
//! table of domain/order_life.rs, in one transaction with everything that follows from it: stock, journal, grant, payment, event.
//!
//! Input: a payment, a start of one, a cancellation, a passed deadline. Output: what became of it; the loser of a race gets the state
//! that holds. A crash before COMMIT leaves nothing; after it, a repeat finds what was decided, the grant is open until the api or
//! P5 gives it to Redis, and the event waits in `order_events`.
//!
//! Locks are taken in the order of persisting, by every one of these: orders by ascending id, payments, journal, buyers, the hot
//! sale row, the grant.

mod acts;
mod cancel;
mod deadline;
mod early_payments;
pub mod failed_requests;
mod in_time;
mod lists;
pub mod outcomes;
mod overdue;
mod paying;
mod payments;
pub mod purchases;
mod refunds;
pub mod request_records;
mod units;

pub(crate) use cancel::cancel_grant;
pub use cancel::{CancelRequest, Cancelled};
pub use deadline::{BATCH_MAX, ExpiredBatch};
pub use lists::{FoundOrders, ListedOrder, OrdersQuery, PAGE_MAX};
pub use overdue::{OverdueOrder, OverdueSale};
pub use paying::PaymentStart;
pub use payments::{NewPayment, Payment, PaymentAnswer, PaymentRecorded};
pub use refunds::{NeededRefunds, REFUNDS_COUNTED_MAX, REFUNDS_PAGE_MAX, RefundMark, RefundPlace, RefundsFilter};

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::{OrderEvent, OrderState};
use crate::domain::payment::{Price, RefundReason};
use crate::events::published::PublishedEvent;
use crate::events::webhooks::rows::Subscriptions;
use crate::runtime::now_ms;
use crate::store::mysql::codes::read_sale_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::{Conn, Db};
use crate::store::mysql::schema::{orders, sales};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

mysql_handle! {
    /// What is on record of a request: its outcome, its order, its payments. Reads only.
    RequestRows
}
mysql_handle! {
    /// The register of failed requests.
    RegisterRows
}

/// How often a transaction that lost a deadlock is tried again.
const DEADLOCK_TRIES: u32 = 3;

/// The rows of orders, their payments and their register: the handle of P6 and of its front ends. Clones share what they know.
#[derive(Clone)]
pub struct OrderRows {
    db: Db,
    subscriptions: Subscriptions,
}

impl OrderRows {
    /// For the webhooks of these subscriptions.
    #[must_use]
    pub const fn new(db: Db, subscriptions: Subscriptions) -> Self {
        Self { db, subscriptions }
    }

    /// The same with a longer deadline, for what counts.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self { db: self.db.patient().clone(), subscriptions: self.subscriptions.clone() }
    }
}

/// A row of `orders`, locked, with what its sale says of it.
struct LockedOrder {
    request_id: RequestId,
    sale_id: SaleId,
    user_id: UserId,
    quantity: u32,
    amount_cents: i64,
    state: Option<OrderState>,
    cancelled: bool,
    version: u32,
    currency: String,
    limit_returns: bool,
    limited: bool,
}

impl LockedOrder {
    /// The event of a change of it; `version` after the change.
    fn changed<'a>(&'a self, event: PublishedEvent<'a>, version: u32) -> PublishedEvent<'a> {
        PublishedEvent {
            sale: Some(self.sale_id.as_str()),
            user: Some(self.user_id.as_str()),
            quantity: Some(self.quantity),
            amount: Some(self.amount_cents),
            currency: Some(&self.currency),
            version: Some(version),
            at: Some(now_ms()),
            ..event
        }
    }

    /// The event of its next version: it gets this state.
    fn state_event(&self, to: OrderState) -> PublishedEvent<'_> {
        self.changed(PublishedEvent::of_state(self.request_id, to), self.version + 1)
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = orders)]
struct LockedRow {
    sale_id: Vec<u8>,
    user_id: UserId,
    quantity: u32,
    amount_cents: i64,
    #[diesel(deserialize_as = crate::store::mysql::columns::MaybeOrderState)]
    state: Option<OrderState>,
    #[diesel(column_name = cancelled_at, deserialize_as = crate::store::mysql::columns::MaybeUnixMs)]
    cancelled_at_ms: Option<i64>,
    version: u32,
}

/// What a sale says of its orders: currency, whether limits return, whether there is a cumulative limit.
struct OrderTerms {
    currency: String,
    limit_returns: bool,
    limited: bool,
}

async fn terms_of(conn: &mut Conn, sale: &[u8]) -> Result<OrderTerms, DbError> {
    let columns = (sales::currency, sales::limit_returns, sales::per_user_limit);
    let (currency, limit_returns, limit): (String, bool, Option<u32>) =
        sales::table.find(sale).select(columns).first(conn).await?;
    Ok(OrderTerms { currency, limit_returns, limited: limit.is_some_and(|limit| limit > 1) })
}

/// The order of a request, locked until the transaction ends; `None` when there is none.
async fn lock(conn: &mut Conn, request_id: RequestId) -> Result<Option<LockedOrder>, DbError> {
    let row: Option<LockedRow> = orders::table
        .find(request_id.get())
        .select(LockedRow::as_select())
        .for_update()
        .first(conn)
        .await
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    let OrderTerms { currency, limit_returns, limited } = terms_of(conn, &row.sale_id).await?;
    Ok(Some(LockedOrder {
        request_id,
        sale_id: read_sale_id(&row.sale_id)?,
        user_id: row.user_id,
        quantity: row.quantity,
        amount_cents: row.amount_cents,
        // A build that knew no states writes `cancelled_at` alone.
        state: row.state.map(|state| if row.cancelled_at_ms.is_some() { OrderState::Cancelled } else { state }),
        cancelled: row.cancelled_at_ms.is_some(),
        version: row.version,
        currency,
        limit_returns,
        limited,
    }))
}

/// The event of money that has to go back; `order` with the version that the event has.
fn refund_event<'a>(
    request_id: RequestId,
    order: Option<(&'a LockedOrder, u32)>,
    payment_id: &'a str,
    price: &'a Price,
    reason: RefundReason,
) -> PublishedEvent<'a> {
    let of_request = PublishedEvent { version: Some(0), at: Some(now_ms()), ..PublishedEvent::of_refund(request_id) };
    PublishedEvent {
        reason: Some(reason.code()),
        payment_id: Some(payment_id),
        amount: Some(price.amount_cents),
        currency: Some(&price.currency),
        ..match order {
            Some((order, version)) => order.changed(of_request, version),
            None => of_request,
        }
    }
}

/// The condition of an UPDATE: the states from which `event` moves an order, as an SQL list.
fn movable(event: OrderEvent) -> String {
    let quoted: Vec<String> = event.movable_states().map(|code| format!("'{code}'")).collect();
    format!("({})", quoted.join(", "))
}

/// An UPDATE of a row that this transaction holds matched none, or too many: the row is not what it was read as.
fn moved_away(request_id: RequestId, matched: usize) -> DbError {
    DbError::Other(format!("order {request_id}: {matched} rows matched where one was locked"))
}

/// Repeats a transaction that lost a deadlock, a few times.
macro_rules! retried {
    ($work:expr) => {{
        let mut tries = 1;
        loop {
            match $work.await {
                Err($crate::store::mysql::DbError::Deadlock) if tries < crate::orders::rows::DEADLOCK_TRIES => {
                    tries += 1
                }
                done => break done,
            }
        }
    }};
}
use retried;
