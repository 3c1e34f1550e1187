//! Acts on an order (F10), written in the transaction of the change: a crash leaves both or neither.

use crate::domain::ids::SaleId;
use crate::domain::operator::{ActOutcome, OperatorAct};
use crate::domain::order_life::OrderState;
use crate::domain::payment::PaymentState;
use crate::orders::rows::locked::LockedOrder;
use crate::sales::rows::acts::insert;
use crate::store::mysql::codes::read_sale_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use serde_json::{Value, json};

/// What came of an act.
pub(crate) struct OrderActResult<'a> {
    /// Stable code of it.
    pub(crate) code: &'a str,
    /// Whether what was asked for was done.
    pub(crate) ok: bool,
    /// What is there now; `None`: what the act asked for says it.
    pub(crate) after: Option<Value>,
}

/// Writes the act, if it is one: what was asked for, by whom, is with the caller; the order as it was locked is what was before.
pub(super) async fn write(
    conn: &mut Conn,
    act: Option<&OperatorAct>,
    order: Option<&LockedOrder>,
    done: OrderActResult<'_>,
) -> Result<(), DbError> {
    let before = order.map(|order| json!({ "status": order.row.state.map_or("CONFIRMED", OrderState::code) }));
    complete(conn, act, order.map(|order| order.row.sale_id.clone()), before, done).await
}

/// The act of marking that money went back.
pub(crate) async fn write_refunded(
    conn: &mut Conn,
    act: Option<&OperatorAct>,
    sale_id: Option<&[u8]>,
) -> Result<(), DbError> {
    let before = json!({ "payment": PaymentState::RefundNeeded.code() });
    let done = OrderActResult { code: PaymentState::Refunded.code(), ok: true, after: None };
    complete(conn, act, sale_id.map(read_sale_id).transpose()?, Some(before), done).await
}

async fn complete(
    conn: &mut Conn,
    act: Option<&OperatorAct>,
    sale_id: Option<SaleId>,
    before: Option<Value>,
    done: OrderActResult<'_>,
) -> Result<(), DbError> {
    let Some(act) = act else { return Ok(()) };
    let mut act = act.clone();
    (act.sale_id, act.before) = (sale_id, before);
    act.code = Some(done.code.to_owned());
    act.outcome = if done.ok { ActOutcome::Ok } else { ActOutcome::Failed };
    act.after = done.after.or(act.after);
    insert(conn, &act).await
}
