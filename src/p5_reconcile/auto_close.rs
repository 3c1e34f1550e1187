//! Closes sales some time after their end, so that their keys leave Redis and no audit walks them for ever.
//!
//! Input: a sale and the audit of it that was just made. Output: the sale closed, on record, or left alone. A crash between the
//! database and Redis leaves a closed sale whose keys say otherwise; the next round of any leader mends it, however it was closed.

use super::audit::{SaleAudit, Window, audit_sale};
use super::context::{ReconcileContext, ReconcileError};
use crate::domain::ids::SaleId;
use crate::domain::operator::{Actor, ActorKind, AuthMethod, Operation};
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::sales::rows::error::SaleError;
use crate::sales::{SaleAct, SaleControl, SaleControlError};
use serde_json::json;

/// Who did it, for the record. A process of the system has the servers' passwords, as a shell has that closes a sale.
pub(super) fn system(name: &str) -> Actor {
    Actor {
        kind: ActorKind::Service,
        id: "p5_reconcile".to_owned(),
        name: name.to_owned(),
        roles: "operate".to_owned(),
        auth_method: AuthMethod::Shell,
        ip: None,
        call_id: None,
    }
}

/// Whether nothing of the sale is on its way: each accepted request has its outcome, each unit is where it belongs, and no person has
/// to pay any more. Whatever the audit could not see, or found wrong, keeps the sale open for a person.
fn is_settled(audit: &SaleAudit) -> bool {
    let sheet = &audit.counted;
    let undecided: u64 = audit.series.iter().map(|series| series.undecided).sum();
    let on_the_way =
        [sheet.in_flight, sheet.parked, sheet.leaked, sheet.in_transit, sheet.grants_open, sheet.life.unpaid];
    audit.consistent() && sheet.in_redis && undecided == 0 && on_the_way == [0; 6]
}

impl ReconcileContext {
    fn sale_control(&self) -> SaleControl {
        // Closing makes no keys, so the bound of the outbox is not read.
        let backlog_max = 0;
        SaleControl {
            redis: self.redis.of_sale(),
            rows: self.rows.giving.clone(),
            archived: self.rows.archived.clone(),
            acts: self.rows.acts.clone(),
            shards: self.shards,
            backlog_max,
        }
    }

    /// Whether the other sales of its drop are over, too; they are closed together, at the turn of the one whose id is the first.
    async fn is_drop_over(&self, sale: &Sale, after_s: u64) -> Result<bool, ReconcileError> {
        let Some(drop) = &sale.in_drop else { return Ok(true) };
        if !drop.is_acted_for_by(&sale.sale_id) {
            return Ok(false);
        }
        for other in drop.others(&sale.sale_id) {
            if !self.rows.giving.sales.ended_since(other, after_s).await? {
                return Ok(false);
            }
        }
        for other in drop.others(&sale.sale_id) {
            let Some(other) = self.rows.giving.sales.get(other).await? else { return Ok(false) };
            if !is_settled(&audit_sale(self, &other, Window::Now).await?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether every shard that still has the sale knows it as closed.
    async fn is_closed_in_redis(&self, id: &SaleId) -> Result<bool, ReconcileError> {
        for shard in 0..self.shards {
            let meta = self.redis.sale_keys.meta(id, shard).await?;
            if meta.is_some_and(|meta| meta.state != MetaState::Closed) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Closes `sale` if it ended `after_s` seconds ago (0: never) and `audit` found it settled. Of a closed sale that Redis does not
/// know as closed it finishes the close. Repeating is safe.
pub(super) async fn close_when_over(
    context: &ReconcileContext,
    (sale, audit): (&Sale, &SaleAudit),
    after_s: u64,
) -> Result<(), ReconcileError> {
    let (control, id) = (context.sale_control(), &sale.sale_id);
    let done = match sale.status {
        SaleStatus::Draft => return Ok(()),
        SaleStatus::Closed if audit.counted.in_redis && !context.is_closed_in_redis(id).await? => {
            control.finish_close(id).await
        }
        SaleStatus::Closed => return Ok(()),
        SaleStatus::Warmed | SaleStatus::Paused => {
            if after_s == 0
                || !is_settled(audit)
                || !context.rows.giving.sales.ended_since(id, after_s).await?
                || !context.is_drop_over(sale, after_s).await?
            {
                return Ok(());
            }
            let system = system("auto-close");
            let asked = json!({ "ended_since_s": after_s });
            let act = SaleAct { actor: &system, operation: Operation::SaleClose, sale_id: id, asked };
            let closed = control.on_record(act, control.close_ended(sale, after_s)).await;
            closed.inspect(|()| tracing::info!(phase = "p5_reconcile", sale = %id, "the sale is over and was closed"))
        }
    };
    match done {
        Ok(()) => Ok(()),
        Err(SaleControlError::Redis(error) | SaleControlError::NotFollowed(_, error)) => Err(error.into()),
        Err(SaleControlError::Database(error) | SaleControlError::NotRecorded(error)) => Err(error.into()),
        Err(SaleControlError::Sale(SaleError::Db(error))) => Err(error.into()),
        // An operator closed it at this moment, or extended it; anything else is seen again in the next round.
        Err(other) => {
            tracing::info!(phase = "p5_reconcile", sale = %id, error = %other, "the sale was not closed");
            Ok(())
        }
    }
}
