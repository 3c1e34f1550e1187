//! Cancelling an order: by its buyer while it is unpaid, by an operator or the shop's backend also when it is paid, and where the
//! sale has no payment step.
//!
//! One transaction: the order, the payment that has to go back now, journal, stock, grant, events, the operator's act.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::operator::OperatorAct;
use crate::domain::order_life::{OrderEvent, OrderState, OrderTransition};
use crate::domain::payment::{PaymentState, Price, RefundReason};
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::rows::order as events;
use crate::faults::{crash_point, left_out};
use crate::orders::rows::acts::{self, OrderActResult};
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::locked::{LockedOrder, lock, movable, moved_away, refund_event, retried};
use crate::orders::rows::row::OrderRow;
use crate::orders::rows::units::{ReturnedUnits, give_back};
use crate::store::mysql::codes::cut;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{orders, payments};
use crate::store::mysql::transaction::transaction;
use crate::trace_points::trace_point;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use diesel_async::RunQueryDsl;
use serde_json::json;

/// Number of orders of a buyer and a sale that give their limit back when they end unpaid; from then on those that the buyer cancels
/// do not.
/// Else one account could keep units off sale by buying and cancelling. Expired orders are not counted: `pay_within_s` slows them.
const RETURNS_MAX: i64 = 10;

/// Who cancels what, and why.
#[derive(Debug, Clone, Copy)]
pub struct CancelRequest<'a> {
    /// The request that became the order.
    pub request_id: RequestId,
    /// The buyer who asks; `None`: an operator or the shop's backend.
    pub buyer: Option<&'a UserId>,
    /// Why, in words, for the record.
    pub reason: &'a str,
    /// Who, for the record.
    pub by: &'a str,
    /// The act that it is; none of a buyer.
    pub act: Option<&'a OperatorAct>,
}

impl CancelRequest<'_> {
    const fn event(&self) -> OrderEvent {
        match self.buyer {
            Some(_) => OrderEvent::CancelledByBuyer,
            None => OrderEvent::CancelledByOperator,
        }
    }

    /// Whether it would cancel this order, which was read a moment ago; [`cancel`] decides by what holds then.
    #[must_use]
    pub(crate) fn would_cancel(&self, order: &OrderRow) -> bool {
        let moves = match order.state {
            Some(state) => matches!(state.after(self.event()), OrderTransition::To(_)),
            None => self.buyer.is_none(),
        };
        moves && self.buyer.is_none_or(|buyer| *buyer == order.user_id)
    }
}

/// What a cancellation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// The order was cancelled now, and this many units are unsold again; payments that have to go back.
    Now(SaleId, u32, Vec<String>),
    /// It was cancelled before; nothing changed.
    Before(SaleId),
    /// The order is in a state that cannot be cancelled by this caller; `None`: its sale has no payment step, and a buyer asks.
    Refused(SaleId, Option<OrderState>),
    /// There is no such order, or it is another buyer's.
    NoOrder,
}

impl OrderRows {
    /// Cancels the order of a request. Repeating is safe. Its buyer's limit stays used, because Redis still knows him; only an unpaid
    /// order whose sale has `limit_returns` gives it back, in Redis too.
    pub async fn cancel(&self, request: CancelRequest<'_>) -> Result<Cancelled, DbError> {
        let webhooks = self.subscriptions.wanted().await?;
        let cancelled = retried!(self.db.run("order_cancel", async |conn| {
            transaction(conn, async |conn| {
                let Some(order) = lock(conn, request.request_id).await? else { return Ok(Cancelled::NoOrder) };
                if request.buyer.is_some_and(|buyer| *buyer != order.row.user_id) {
                    return Ok(Cancelled::NoOrder);
                }
                let event = request.event();
                match order.row.state.map(|state| state.after(event)) {
                    Some(OrderTransition::Already) => return Ok(Cancelled::Before(order.row.sale_id)),
                    Some(OrderTransition::Refused) => {
                        return Ok(Cancelled::Refused(order.row.sale_id, order.row.state));
                    }
                    // Cancelled by a build that knew no states, beside this one.
                    None if order.row.cancelled_at_ms.is_some() => return Ok(Cancelled::Before(order.row.sale_id)),
                    None if request.buyer.is_some() => return Ok(Cancelled::Refused(order.row.sale_id, None)),
                    None | Some(OrderTransition::To(_)) => {}
                }
                trace_point!(OrderWritten {
                    rid: request.request_id.to_string(),
                    event: format!("{event:?}"),
                    had_state: order.row.state.is_some(),
                });
                let refunds = in_transaction(conn, &order, &request, event, &webhooks).await?;
                Ok(Cancelled::Now(order.row.sale_id, order.row.quantity, refunds))
            })
            .await
        }))?;
        if matches!(cancelled, Cancelled::Now(..)) {
            crash_point!(CancelCommitted);
            trace_point!(OrderChanged { rid: request.request_id.to_string(), event: format!("{:?}", request.event()) });
        }
        Ok(cancelled)
    }
}

/// The grant that carries the units of a cancelled order.
pub(crate) fn cancel_grant(request_id: RequestId) -> String {
    format!("cancel-{request_id}")
}

/// Whether the order stops counting against its buyer's limit: an unpaid one does where the sale says so, and a buyer's own cancellation
/// only so often. A buyer who buys and cancels all the time would keep units from the others for ever.
async fn returns_limit(conn: &mut Conn, order: &LockedOrder, request: &CancelRequest<'_>) -> Result<bool, DbError> {
    if !order.terms.limit_returns || order.row.state != Some(OrderState::Unpaid) {
        return Ok(false);
    }
    if request.buyer.is_none() {
        return Ok(true);
    }
    let returned = orders::table
        .filter(orders::sale_id.eq(order.row.sale_id.as_str().as_bytes()))
        .filter(orders::limit_returned.eq(true))
        .select(orders::request_id)
        .limit(RETURNS_MAX);
    let returned: Vec<u64> = match &order.row.person {
        None => returned.filter(orders::user_id.eq(order.row.user_id.as_str().as_bytes())).load(conn).await?,
        // By whichever account. There is no index by person: those that were cancelled in this sale are read.
        Some(person) => {
            let cancelled = returned.filter(orders::state.eq(OrderState::Cancelled.code()));
            cancelled.filter(orders::person.eq(person.as_str().as_bytes())).load(conn).await?
        }
    };
    Ok(i64::try_from(returned.len()).unwrap_or(RETURNS_MAX) < RETURNS_MAX)
}

async fn in_transaction(
    conn: &mut Conn,
    order: &LockedOrder,
    request: &CancelRequest<'_>,
    event: OrderEvent,
    webhooks: &WebhookSubscriptions,
) -> Result<Vec<String>, DbError> {
    let limit_returned = returns_limit(conn, order, request).await?;
    let condition = match order.row.state {
        Some(_) => format!("state IN {}", movable(event)),
        None => "state IS NULL AND cancelled_at IS NULL".to_owned(),
    };
    // Money that has to go back has an event of its own, and has a version of its own.
    let steps = if order.row.state == Some(OrderState::Paid) { 2 } else { 1 };
    let set = format!(
        "/* orders::cancel */ UPDATE orders SET state = 'CANCELLED', state_at = NOW(3), cancelled_at = NOW(3), \
         cancelled_by = ?, cancel_reason = ?, limit_returned = ?, version = version + {steps}, \
         one_per_user_id = IF(?, NULL, one_per_user_id) WHERE request_id = {} AND {condition}",
        order.row.request_id
    );
    let matched = diesel::sql_query(set)
        .bind::<Text, _>(cut(request.by, 64))
        .bind::<Text, _>(cut(request.reason, 1000))
        .bind::<Bool, _>(limit_returned)
        .bind::<Bool, _>(limit_returned)
        .execute(conn)
        .await?;
    if matched != 1 {
        return Err(moved_away(order.row.request_id, matched));
    }
    let has_money = order.row.state == Some(OrderState::Paid) && !left_out!(CancelRefunds);
    let refunds = if has_money { to_refund(conn, order).await? } else { Vec::new() };
    let mut events = vec![order.state_event(OrderState::Cancelled)];
    events.extend(refunds.iter().map(|(payment_id, price)| {
        refund_event(
            order.row.request_id,
            Some((order, order.row.version + 2)),
            payment_id,
            price,
            RefundReason::Cancelled,
        )
    }));
    events::write(conn, &events, webhooks).await?;
    let refunds: Vec<String> = refunds.iter().map(|(payment_id, _)| payment_id.clone()).collect();
    let limits = match limit_returned {
        true => vec![order.row.returned()],
        false => Vec::new(),
    };
    let returned = ReturnedUnits {
        sale_id: &order.row.sale_id,
        units: order.row.quantity.into(),
        kind: "cancel",
        reference: order.row.request_id.to_string(),
        grant_id: cancel_grant(order.row.request_id),
        limits: &limits,
        terms: &order.terms,
    };
    give_back(conn, &returned).await?;
    let after = json!({ "units_back": order.row.quantity, "refunds_needed": refunds, "reason": request.reason });
    let done = OrderActResult { code: OrderState::Cancelled.code(), ok: true, after: Some(after) };
    acts::write(conn, request.act, Some(order), done).await?;
    crash_point!(CancelWritten);
    Ok(refunds)
}

/// The money of a cancelled order has to go back: its payments.
async fn to_refund(conn: &mut Conn, order: &LockedOrder) -> Result<Vec<(String, Price)>, DbError> {
    let applied = payments::table
        .filter(payments::request_id.eq(order.row.request_id.get()))
        .filter(payments::state.eq(PaymentState::Applied.code()));
    let rows: Vec<(Vec<u8>, i64, String)> =
        applied.select((payments::payment_id, payments::amount_cents, payments::currency)).load(conn).await?;
    let now = diesel::dsl::sql("NOW(3)");
    diesel::update(applied)
        .set((
            payments::state.eq(PaymentState::RefundNeeded.code()),
            payments::reason.eq(RefundReason::Cancelled.code()),
            payments::state_at.eq(now),
        ))
        .execute(conn)
        .await?;
    let refund = |(payment_id, amount_cents, currency): (Vec<u8>, i64, String)| {
        (String::from_utf8_lossy(&payment_id).into_owned(), Price { amount_cents, currency })
    };
    Ok(rows.into_iter().map(refund).collect())
}
