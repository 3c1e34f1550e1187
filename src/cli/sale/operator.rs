//! The operator behind the commands that change sales: each change is recorded.
//!
//! Input: who it is, what is asked for. Output: what was done, in a line, and the act. A crash leaves what the change itself leaves.

use super::remark_on_times;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::domain::ids::SaleId;
use crate::domain::operator::{Actor, Operation};
use crate::sales::forms::{NewSaleForm, WithdrawForm};
use crate::sales::{SaleAct, SaleControl, SaleControlError};
use serde_json::Value;

/// The name of a withdrawal or a move; one that is made up is printed before anything is done, for it must outlive a command that dies.
pub(in crate::cli) fn named(name: Option<String>) -> String {
    name.unwrap_or_else(|| {
        let name = format!("cli-{:016x}", rand::random::<u64>());
        output::remark(&format!("if this fails, repeat it with --name {name} and nothing is taken twice"));
        name
    })
}

/// Some errors come when units have left already: without the name a repeat would take as many once more.
pub(in crate::cli) fn may_repeat(error: SaleControlError, name: &str) -> Failure {
    match error.leaves_open() {
        true => Failure::Failed(format!("{error}; repeat it with --name {name} and nothing is taken twice")),
        false => error.into(),
    }
}

/// An operator who changes sales; every change is recorded.
pub(super) struct SaleOperator {
    pub(super) actor: Actor,
    pub(super) control: SaleControl,
}

impl SaleOperator {
    pub(super) async fn record<T>(
        &self,
        operation: Operation,
        sale_id: &SaleId,
        asked: Value,
        work: impl Future<Output = Result<T, SaleControlError>>,
    ) -> Result<T, SaleControlError> {
        self.control.on_record(SaleAct { actor: &self.actor, operation, sale_id, asked }, work).await
    }

    pub(super) async fn change<T>(
        &self,
        operation: Operation,
        sale_id: &SaleId,
        work: impl Future<Output = Result<T, SaleControlError>>,
    ) -> Result<T, SaleControlError> {
        self.record(operation, sale_id, Value::Null, work).await
    }

    pub(super) async fn create(&self, form: NewSaleForm) -> Result<(), Failure> {
        let (warm, planned) = (form.warm, form.plain()?);
        let sale = &planned.0;
        let created = || {
            output::line(&format!("created {} with {} units", sale.sale_id, sale.stock));
            remark_on_times(sale);
        };
        self.control.create(&self.actor, (&planned, warm), created).await?;
        if warm {
            output::line(&format!("warmed {}", sale.sale_id));
        }
        Ok(())
    }

    pub(super) async fn reclaim(&self, id: &SaleId) -> Result<(), Failure> {
        output::line(&match self.change(Operation::SaleReclaim, id, self.control.reclaim(id)).await? {
            Some(made) => format!(
                "{id} sells {} units again, of {} failed requests and of what was written off (grant {})",
                made.units, made.requests, made.grant_id
            ),
            None => format!("{id} has no units of final failures that are not on sale again"),
        });
        Ok(())
    }

    pub(super) async fn withdraw(&self, id: &SaleId, units: u32, name: Option<String>) -> Result<(), Failure> {
        let form = WithdrawForm { units, name: named(name) };
        let failed = |error: SaleControlError| may_repeat(error, &form.name);
        let withdrawing = self.control.withdraw(id, &form.name, form.units);
        let asked = serde_json::json!(form);
        let taken = self.record(Operation::SaleWithdraw, id, asked, withdrawing).await.map_err(failed)?;
        output::line(&format!(
            "{} of {} units are off sale in {id} (withdrawal {})",
            taken.taken, taken.asked, taken.name
        ));
        Ok(())
    }

    pub(super) async fn top_up(&self, id: &SaleId, units: u32, grant: Option<String>) -> Result<(), Failure> {
        let grant = grant.unwrap_or_else(|| {
            let name = format!("top-up-{:016x}", rand::random::<u64>());
            // Printed before anything is done: the name must outlive a command that dies.
            output::remark(&format!("if this fails, repeat it with --grant {name} and nothing is added twice"));
            name
        });
        // Some errors come after the commit: without the name a repeat would add the units once more.
        let failed = |error: SaleControlError| match error.leaves_open() {
            true => Failure::Failed(format!("{error}; repeat it with --grant {grant} and nothing is added twice")),
            false => error.into(),
        };
        let asked = serde_json::json!({ "units": units, "grant": grant });
        let adding = self.control.top_up(id, &grant, units);
        self.record(Operation::SaleTopUp, id, asked, adding).await.map_err(failed)?;
        output::line(&format!("{id} has {units} units more (grant {grant})"));
        Ok(())
    }
}
