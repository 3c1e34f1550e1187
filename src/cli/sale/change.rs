//! `seckill sale edit`, `reschedule`, `hide`, `publish` and `clone`: changes of a sale that exists, on record.

use super::SaleOperator;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::domain::ids::SaleId;
use crate::domain::operator::Operation;
use crate::http::bad_form::BadForm;
use crate::sales::forms::{CloneForm, RescheduleForm, SaleEditForm};
use crate::sales::{ChangeRefusal, SaleChange, SaleControlError};
use serde_json::json;

/// A value that no sale may have is a mistake of the call, everything else an answer of the system.
fn failure(error: SaleControlError) -> Failure {
    let SaleControlError::Refused(ChangeRefusal::Value(bad)) = error else { return error.into() };
    let BadForm { field, expected, .. } = bad;
    Failure::Usage(match field {
        "body" => format!("nothing to change: expected {expected}"),
        field => format!("--{}: expected {expected}", field.replace('_', "-")),
    })
}

impl SaleOperator {
    pub(super) async fn edit(&self, id: &SaleId, form: SaleEditForm, version: Option<u32>) -> Result<(), Failure> {
        let (asked, change) = (json!(form), SaleChange::Edit(form));
        let editing = self.control.change(id, &change, version);
        self.record(Operation::SaleEdit, id, asked, editing).await.map_err(failure)?;
        output::line(&format!("edited {id}"));
        Ok(())
    }

    pub(super) async fn reschedule(
        &self,
        id: &SaleId,
        form: RescheduleForm,
        version: Option<u32>,
    ) -> Result<(), Failure> {
        let (asked, change) = (json!(form), SaleChange::Reschedule(form));
        let moving = self.control.change(id, &change, version);
        self.record(Operation::SaleReschedule, id, asked, moving).await.map_err(failure)?;
        output::line(&format!("rescheduled {id}"));
        Ok(())
    }

    pub(super) async fn hide(&self, id: &SaleId) -> Result<(), Failure> {
        self.change(Operation::SaleHide, id, self.control.change(id, &SaleChange::Hide, None)).await?;
        output::line(&format!("{id} is hidden: to buyers there is no such sale"));
        Ok(())
    }

    pub(super) async fn publish(&self, id: &SaleId) -> Result<(), Failure> {
        self.change(Operation::SalePublish, id, self.control.change(id, &SaleChange::Publish, None)).await?;
        output::line(&format!("published {id}"));
        Ok(())
    }

    pub(super) async fn clone_sale(&self, of: &SaleId, form: &CloneForm) -> Result<(), Failure> {
        let asked = json!({ "of": of, "form": form });
        let cloning = self.control.clone_sale(of, form);
        let made = self.record(Operation::SaleClone, &form.id, asked, cloning).await.map_err(failure)?;
        output::line(&format!("created {} with {} units and the terms of {of}", made.sale_id, made.granted));
        super::remark_on_times(&made);
        Ok(())
    }
}
