//! What a timetable does to a sale: a release gives it units, a rollover moves what is unsold at its end to another sale of its drop.
//!
//! Input: what is due. Output: a top-up or a move under a name of its own, on record. Both go the way of an operator's: a crash leaves an
//! open grant or an open withdrawal, which P5 finishes. Repeating either is safe.

use super::contention::again_after_contention;
use super::control::SaleControl;
use super::control_error::SaleControlError;
use super::forms::MoveForm;
use super::recorded::SaleAct;
use super::withdraw::UnitsMoved;
use crate::domain::ids::SaleId;
use crate::domain::operator::{Actor, Operation};
use crate::domain::sale::MetaState;
use crate::sales::rows::timetable::{DueRelease, DueRollover};
use serde_json::json;

impl SaleControl {
    /// Gives a sale the units of a release, once.
    pub(crate) async fn release(&self, actor: &Actor, due: &DueRelease) -> Result<(), SaleControlError> {
        let (id, number, units) = (&due.sale_id, due.release_no, due.quantity);
        let asked = json!({ "units": units, "release": number });
        let act = SaleAct { actor, operation: Operation::SaleTopUp, sale_id: id, asked };
        let giving = again_after_contention(|| self.top_up_once(id, || self.rows.grants.release(id, number, units)));
        self.change_on_record(act, giving).await
    }

    /// Moves what Redis has unsold of a sale that has ended; `None`: nothing is, or Redis has to have the sale whole first.
    pub(crate) async fn roll_over(
        &self,
        actor: &Actor,
        due: &DueRollover,
    ) -> Result<Option<UnitsMoved>, SaleControlError> {
        let (from, to) = (due.sale_id.clone(), due.moves_to.clone());
        let Some(units) = self.unsold_in_redis(&from).await?.filter(|units| *units > 0) else { return Ok(None) };
        let name = self.rows.sales.next_rollover(&from, &to).await?;
        let form = MoveForm { from, to, units, name };
        let act = SaleAct { actor, operation: Operation::DropMove, sale_id: &form.from, asked: json!(form) };
        self.change_on_record(act, self.move_units(&form)).await.map(Some)
    }

    /// Units in the buckets of a sale; `None` where one of them is frozen, or not there.
    async fn unsold_in_redis(&self, id: &SaleId) -> Result<Option<u32>, SaleControlError> {
        self.sale_of_ours(id).await?;
        let mut units = 0;
        for shard in 0..self.shards {
            match self.redis.sale_keys.count(id, shard).await? {
                Some(count) if matches!(count.meta.state, MetaState::Open | MetaState::Paused) => units += count.stock,
                Some(_) | None => return Ok(None),
            }
        }
        Ok(u32::try_from(units).ok())
    }
}
