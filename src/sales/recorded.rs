//! What an operator does to a sale, with its row in `operator_acts`: the same for the command line and the admin API.
//!
//! Input: the work and who wants it. Output: what the work came to. The change in the database has the row in its own transaction, so
//! a crash leaves both or neither. A row that follows the work says that it failed, or that it had nothing to change there: one that
//! only made Redis follow leaves no row when its process dies.

use super::control::SaleControl;
use super::control_error::SaleControlError;
use crate::domain::ids::SaleId;
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use crate::sales::rows::acts::PendingAct;
use crate::sales::rows::error::SaleError;
use serde_json::{Value, json};

/// An act on a sale.
pub(crate) struct SaleAct<'a> {
    /// The operator who wanted the change.
    pub actor: &'a Actor,
    /// What is done.
    pub(crate) operation: Operation,
    /// To which sale.
    pub sale_id: &'a SaleId,
    /// What was asked for beyond that: units, the name of a grant. `Null`: nothing.
    pub asked: Value,
}

impl SaleControl {
    /// Does `work` and writes down who wanted it, what the sale was before and what it is now.
    ///
    /// # Errors
    /// The work's own; [`SaleControlError::NotRecorded`] when it was done and could not be written down.
    pub(crate) async fn on_record<T>(
        &self,
        act: SaleAct<'_>,
        work: impl Future<Output = Result<T, SaleControlError>>,
    ) -> Result<T, SaleControlError> {
        let mut row = self.row_of(&act).await;
        let pending = PendingAct::new(row.clone(), act.asked.clone());
        let done = pending.beside(work).await;
        if done.is_ok() && pending.is_written() {
            return done;
        }
        let mut after = json!({ "sale": self.shown(act.sale_id).await });
        if !act.asked.is_null() {
            after["asked"] = act.asked;
        }
        if let Err(error) = &done {
            row.outcome = ActOutcome::Failed;
            row.code = Some(code_of(error).to_owned());
            after["error"] = Value::String(error.to_string());
        }
        row.after = Some(after);
        let recorded = self.acts.record(&[row]).await;
        match (done, recorded) {
            (Ok(_), Err(error)) => Err(SaleControlError::NotRecorded(error)),
            (done, _) => done,
        }
    }

    /// Does `work` that the system tries by itself, again and again: only a change is on record, in its own transaction.
    pub(super) async fn change_on_record<T>(
        &self,
        act: SaleAct<'_>,
        work: impl Future<Output = Result<T, SaleControlError>>,
    ) -> Result<T, SaleControlError> {
        PendingAct::new(self.row_of(&act).await, act.asked).beside(work).await
    }

    async fn row_of(&self, act: &SaleAct<'_>) -> OperatorAct {
        let row = OperatorAct::new(act.actor, act.operation, ActTarget::Sale(act.sale_id.clone()));
        OperatorAct { before: self.shown(act.sale_id).await, ..row }
    }

    /// The sale with its terms; `None` when there is none, or when it cannot be read.
    async fn shown(&self, id: &SaleId) -> Option<Value> {
        let sale = self.rows.sales.get(id).await.ok()??;
        serde_json::to_value(sale).ok()
    }
}

/// A stable code of why an act failed.
const fn code_of(error: &SaleControlError) -> &'static str {
    match error {
        SaleControlError::NoSuchSale(_) | SaleControlError::Sale(SaleError::Unknown(_)) => "NO_SUCH_SALE",
        SaleControlError::NoSuchDrop(_) => "NO_SUCH_DROP",
        SaleControlError::OfDrop(..) => "OF_DROP",
        SaleControlError::Closed(_) => "CLOSED",
        SaleControlError::NotWarmed(_) => "NOT_WARMED",
        SaleControlError::KeysLost(_) => "KEYS_LOST",
        SaleControlError::OtherShards(..) => "OTHER_SHARDS",
        SaleControlError::Frozen(_) => "FROZEN",
        SaleControlError::Refused(refusal) => refusal.code(),
        SaleControlError::Redis(_) | SaleControlError::NotFollowed(..) => "REDIS",
        SaleControlError::Database(_) | SaleControlError::Sale(SaleError::Db(_)) | SaleControlError::NotRecorded(_) => {
            "DATABASE"
        }
        SaleControlError::Sale(SaleError::Exists(_) | SaleError::DropExists(_)) => "EXISTS",
        SaleControlError::Sale(SaleError::Archived(_)) => "ARCHIVED",
        SaleControlError::Sale(SaleError::GrantConflict(_)) => "GRANT_CONFLICT",
        SaleControlError::Sale(SaleError::GrantReserved(_)) => "GRANT_RESERVED",
        SaleControlError::Sale(SaleError::WithdrawalConflict(..)) => "WITHDRAWAL_CONFLICT",
        SaleControlError::Sale(SaleError::OtherDrop(..)) => "OTHER_DROP",
        SaleControlError::Draft(_) => "DRAFT",
        SaleControlError::Sale(SaleError::BooksDisagree(_) | SaleError::UnsoldDisagree(_)) => "BOOKS_DISAGREE",
        SaleControlError::Sale(SaleError::TooMuch(_)) => "TOO_MUCH",
        SaleControlError::Sale(SaleError::Status(..)) => "STATUS",
    }
}
