//! The start of a payment: the deadline of its order moves, once.
//!
//! Input: a request. Output: until when its buyer may pay, or why not any more. A crash before COMMIT leaves nothing, after it a
//! repeat reads the same deadline.

use crate::domain::ids::RequestId;
use crate::domain::operator::OperatorAct;
use crate::domain::order_life::{OrderEvent, OrderState, OrderTransition};
use crate::faults::crash_point;
use crate::orders::rows::acts::{self, OrderActResult};
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::locked::{lock, movable, retried};
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{orders, sales};
use crate::store::mysql::transaction::transaction;
use crate::trace_points::trace_point;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde_json::json;

/// What became of the start of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentStart {
    /// The buyer may pay until then, Unix milliseconds; the deadline moved when this was the first start.
    Until(i64),
    /// The order is not payable any more: its state, UNPAID when its deadline has passed and the sweep is on its way; `None`: its
    /// sale has no payment step.
    Refused(Option<OrderState>),
    /// There is no such order.
    NoOrder,
}

impl OrderRows {
    /// A payment is started: the deadline moves by the time to pay, once, and that is an act. Repeating is safe.
    pub async fn start(&self, request_id: RequestId, act: Option<&OperatorAct>) -> Result<PaymentStart, DbError> {
        let started = retried!(self.db.run("payment_start", async |conn| {
        transaction(conn, async |conn| {
            let Some(order) = lock(conn, request_id).await? else { return Ok(PaymentStart::NoOrder) };
            let Some(state) = order.row.state else { return Ok(PaymentStart::Refused(None)) };
            if !matches!(state.after(OrderEvent::PaymentStarted), OrderTransition::To(_)) {
                return Ok(PaymentStart::Refused(Some(state)));
            }
            let sale = order.row.sale_id.as_str().as_bytes();
            let columns = (sales::pay_within_s, sales::pay_grace_s);
            let (within, grace): (Option<u32>, u32) = sales::table.find(sale).select(columns).first(conn).await?;
            let within = u64::from(within.unwrap_or(0));
            // Never past twice the time, whatever a clock says.
            let later = format!(
                "LEAST(pay_by + INTERVAL {within} SECOND, created_at + INTERVAL {} SECOND)",
                within.saturating_mul(2)
            );
            // `expire_at` first: it is made from the `pay_by` of before.
            let set = format!(
                "/* orders::start */ UPDATE orders SET expire_at = {later} + INTERVAL {grace} SECOND, pay_by = {later}, \
                 paying_at = NOW(3) WHERE request_id = {request_id} AND state IN {} AND paying_at IS NULL AND expire_at > NOW(3)",
                movable(OrderEvent::PaymentStarted)
            );
            let moved = diesel::sql_query(set).execute(conn).await?;
            // Read whether or not it moved: a repeat gets the same deadline.
            let payable = orders::table.find(request_id.get()).filter(orders::expire_at.gt(diesel::dsl::sql("NOW(3)")));
            let pay_by: Option<UnixMs> =
                payable.select(orders::pay_by.assume_not_null()).first(conn).await.optional()?;
            let Some(pay_by) = pay_by else { return Ok(PaymentStart::Refused(Some(state))) };
            let pay_by_ms: i64 = pay_by.into();
            if moved > 0 {
                let done = OrderActResult { code: "DEADLINE_MOVED", ok: true, after: Some(json!({ "pay_by_ms": pay_by_ms })) };
                acts::write(conn, act, Some(&order), done).await?;
                trace_point!(OrderWritten { rid: request_id.to_string(), event: "PaymentStarted" });
                crash_point!(PayingWritten);
            }
            Ok(PaymentStart::Until(pay_by_ms))
        })
        .await
    }))?;
        if matches!(started, PaymentStart::Until(_)) {
            crash_point!(PayingCommitted);
            trace_point!(OrderChanged { rid: request_id.to_string(), event: "PaymentStarted" });
        }
        Ok(started)
    }
}
