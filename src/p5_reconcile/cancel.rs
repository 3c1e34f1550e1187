//! Cancelling an order (E8): the database decides, then its units reach Redis as a grant like any other.
//!
//! A crash between the two leaves an unfinished grant; the next run of P5 finishes it.

use super::audit::{Auditor, SaleAuditError};
use crate::domain::ids::RequestId;
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use crate::store::mysql::cancels::{self, Cancelled};
use crate::store::mysql::{acts, sales};

impl Auditor {
    /// Cancels the order of a request and offers its units again. Returns what was found, and whether Redis has the units;
    /// if not, P5 brings them there.
    ///
    /// # Errors
    /// [`SaleAuditError`] when the database is away, maybe after the order was cancelled and before the act was written down;
    /// repeating is safe.
    pub async fn cancel_order(
        &self,
        request_id: RequestId,
        reason: &str,
        actor: &Actor,
    ) -> Result<(Cancelled, bool), SaleAuditError> {
        let cancelled = cancels::cancel(&self.db, request_id, reason, &actor.label()).await?;
        self.note_cancel(request_id, reason, actor, &cancelled).await?;
        let sale_id = match &cancelled {
            Cancelled::Now(sale_id, _) | Cancelled::Before(sale_id) => sale_id,
            Cancelled::NoOrder => return Ok((cancelled, false)),
        };
        let given = match sales::get(&self.db, sale_id).await? {
            Some(sale) => self.finish_grants(&sale).await,
            None => Ok(0),
        };
        let in_redis = given.inspect_err(|error| {
            tracing::warn!(phase = "p5_reconcile", %request_id, %error, "cancelled; redis gets the units later");
        });
        Ok((cancelled, in_redis.is_ok()))
    }

    /// Writes the act down, whatever it found.
    async fn note_cancel(
        &self,
        request_id: RequestId,
        reason: &str,
        actor: &Actor,
        cancelled: &Cancelled,
    ) -> Result<(), SaleAuditError> {
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
        Ok(acts::record(&self.db, &[act]).await?)
    }
}
