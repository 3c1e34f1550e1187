//! Withdrawals and moves as operators ask for them: unsold units leave a sale, for good or for another sale of its drop.
//!
//! Input: how many units, under which name. Output: what left, in Redis first, then in the database. The row that says so comes before
//! both, and the act with it: a crash leaves an open row, which a repeat or P5 finishes.

use super::contention::again_after_contention;
use super::control::SaleControl;
use super::control_error::SaleControlError;
use super::forms::MoveForm;
use super::recorded::SaleAct;
use super::withdrawals::{WithdrawalError, WithdrawalProgress, finish};
use crate::domain::ids::{DropId, SaleId};
use crate::domain::operator::{Actor, Operation};
use crate::domain::sale::SaleStatus;
use crate::faults::crash_point;
use crate::sales::rows::error::SaleError;
use crate::sales::rows::grants::Withdrawal;
use serde::Serialize;
use serde_json::json;

/// Units that left a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct UnitsTaken {
    /// The name of the withdrawal or the move.
    pub name: String,
    /// Most units that were to leave.
    pub asked: i64,
    /// Units that left: fewer where fewer were unsold.
    pub taken: i64,
}

/// Units that left a sale for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct UnitsMoved {
    /// The name of the move.
    pub(crate) name: String,
    /// Most units that were to move.
    pub(crate) asked: i64,
    /// Units that moved: fewer where fewer were unsold.
    pub(crate) taken: i64,
    /// Whether the sale that got them is closed by now: they are in its books, unsold, and not on sale.
    pub(crate) target_closed: bool,
}

impl SaleControl {
    /// Takes up to `units` unsold units (1 or more) off sale, once for each name (1 to 55 bytes); returns what left, also when it left
    /// before.
    ///
    /// # Errors
    /// [`SaleControlError`]; after one that leaves open whether it was done, repeating with the same name is safe, and P5 does so.
    pub async fn withdraw(&self, id: &SaleId, name: &str, units: u32) -> Result<UnitsTaken, SaleControlError> {
        let (name, asked) = (name.to_owned(), units.into());
        let wanted = Withdrawal { sale_id: id.clone(), name, asked, moves_to: None, taken: None };
        again_after_contention(|| self.withdraw_once(&wanted)).await
    }

    /// Moves unsold units to another sale of the same drop, which is `drop` where one is named, on record.
    ///
    /// # Errors
    /// As of a withdrawal; [`SaleControlError::NoSuchDrop`].
    pub(crate) async fn move_in_drop(
        &self,
        actor: &Actor,
        drop: Option<&DropId>,
        form: &MoveForm,
    ) -> Result<UnitsMoved, SaleControlError> {
        let moving = async {
            if let Some(drop) = drop {
                let sales = self.known_drop(drop).await?.sale_ids;
                if !sales.contains(&form.from) || !sales.contains(&form.to) {
                    return Err(SaleError::OtherDrop(form.from.clone(), form.to.clone()).into());
                }
            }
            self.move_units(form).await
        };
        let act = SaleAct { actor, operation: Operation::DropMove, sale_id: &form.from, asked: json!(form) };
        self.on_record(act, moving).await
    }

    /// Once for each name; returns what left, also when it left before. What a target gets that was closed since counts as its own, unsold.
    pub(super) async fn move_units(&self, form: &MoveForm) -> Result<UnitsMoved, SaleControlError> {
        let MoveForm { from, to, units, name } = form;
        let (name, moves_to) = (name.clone(), Some(to.clone()));
        let wanted = Withdrawal { sale_id: from.clone(), name, asked: i64::from(*units), moves_to, taken: None };
        self.sale_of_ours(to).await?;
        let UnitsTaken { name, asked, taken } = again_after_contention(|| self.withdraw_once(&wanted)).await?;
        self.redis.sale_cache.forget(to).await?;
        again_after_contention(|| self.apply_grants(to)).await?;
        let target_closed = self.sale_of_ours(to).await?.status == SaleStatus::Closed;
        Ok(UnitsMoved { name, asked, taken, target_closed })
    }

    async fn withdraw_once(&self, wanted: &Withdrawal) -> Result<UnitsTaken, SaleControlError> {
        let id = &wanted.sale_id;
        self.sale_of_ours(id).await?;
        let begun = self.rows.grants.begin_withdrawal(wanted).await.map_err(refused)?;
        crash_point!(WithdrawalBegun);
        match finish(&self.rows, &self.redis, self.shards, &begun).await {
            Ok(WithdrawalProgress::Done(taken)) => Ok(UnitsTaken { name: begun.name, asked: begun.asked, taken }),
            Ok(WithdrawalProgress::Frozen) => Err(SaleControlError::Frozen(id.clone())),
            Ok(WithdrawalProgress::KeysLost) => Err(SaleControlError::KeysLost(id.clone())),
            Err(WithdrawalError::Redis(error)) => Err(error.into()),
            Err(WithdrawalError::Sale(error)) => Err(error.into()),
        }
    }
}

/// A sale that has nothing on sale says so in its own words.
fn refused(error: SaleError) -> SaleControlError {
    if let SaleError::Status(id, status) = &error {
        match status {
            SaleStatus::Closed => return SaleControlError::Closed(id.clone()),
            SaleStatus::Draft => return SaleControlError::Draft(id.clone()),
            SaleStatus::Warmed | SaleStatus::Paused => {}
        }
    }
    error.into()
}
