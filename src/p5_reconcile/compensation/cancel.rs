//! Cancelling an order (E8): the database decides, then its units reach Redis as a grant like any other.
//!
//! A crash between the two leaves an unfinished grant; the next run of P5 finishes it.

use crate::domain::ids::RequestId;
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use crate::p5_reconcile::context::ReconcileContext;
use crate::sales::grants;
use crate::store::mysql::cancels::{self, Cancelled};
use crate::store::mysql::{Db, DbError, acts};

/// Cancels the order of a request and offers its units again. Returns what was found, and whether Redis has the units; if not, P5
/// gives them to it.
///
/// # Errors
/// [`DbError`], perhaps after the order was cancelled and before the act was recorded; repeating is safe.
pub(crate) async fn cancel_order(
    context: &ReconcileContext,
    request_id: RequestId,
    reason: &str,
    actor: &Actor,
) -> Result<(Cancelled, bool), DbError> {
    let cancelled = cancels::cancel(&context.db, request_id, reason, &actor.label()).await?;
    record(&context.db, request_id, reason, actor, &cancelled).await?;
    let sale_id = match &cancelled {
        Cancelled::Now(sale_id, _) | Cancelled::Before(sale_id) => sale_id,
        Cancelled::NoOrder => return Ok((cancelled, false)),
    };
    let given = grants::apply_open(&context.db, &context.redis.of_sale(), context.shards, sale_id).await;
    let in_redis = given.inspect_err(|error| {
        tracing::warn!(phase = "p5_reconcile", %request_id, %error, "cancelled; redis gets the units later");
    });
    Ok((cancelled, in_redis.is_ok()))
}

/// Records the operator's act, whatever it found.
async fn record(
    db: &Db,
    request_id: RequestId,
    reason: &str,
    actor: &Actor,
    cancelled: &Cancelled,
) -> Result<(), DbError> {
    let mut act = OperatorAct::new(actor, Operation::OrderCancel, ActTarget::Request(request_id.to_string()));
    act.reason = Some(reason.to_owned());
    let code = match cancelled {
        Cancelled::Now(sale_id, units) => {
            act.sale_id = Some(sale_id.clone());
            act.after = Some(serde_json::json!({ "units_back": units }));
            "CANCELLED"
        }
        Cancelled::Before(sale_id) => {
            act.sale_id = Some(sale_id.clone());
            "CANCELLED_BEFORE"
        }
        Cancelled::NoOrder => {
            act.outcome = ActOutcome::Failed;
            "NO_ORDER"
        }
    };
    act.code = Some(code.to_owned());
    acts::record(db, &[act]).await
}
