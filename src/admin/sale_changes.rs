//! Changes of a sale that exists, over HTTP: its terms, its times, whether buyers see it, and a new one with its terms.
//!
//! Input: the changes, and the version that the operator saw. Output: the change, on record; the sale as it is then. A crash leaves
//! what `SaleControl::change` leaves.

use super::calls::OperateCall;
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer, unexpected_body};
use super::sale_write::{OperatorBody, SaleWrite};
use super::state::Admin;
use crate::domain::operator::Operation;
use crate::domain::sale_change::{NewTimes, SaleChange, SaleEdit};
use crate::domain::sale_clone::CloneForm;
use crate::http::extract::SaleInPath;
use crate::http::problem::{Kind, Problem};
use crate::sales::SaleAct;
use actix_web::web;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What the calls have in common; the rest is the form.
#[derive(Deserialize)]
pub(super) struct ChangeBody {
    version: Option<u32>,
    by: Option<String>,
    #[serde(flatten)]
    form: Map<String, Value>,
}

/// A change of a sale's terms. What is left out stays as it is.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "describes `ChangeBody` with the fields of `SaleEdit`; a test compares them")]
pub(super) struct EditBody {
    /// What is sold.
    #[schema(min_length = 1, max_length = 64)]
    product: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    title: Option<String>,
    /// In the currency's smallest unit; from 1 where there is a payment step.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    price_cents: Option<i64>,
    /// Three capital letters.
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: Option<String>,
    /// Most units a buyer may have; null: no limit.
    #[schema(minimum = 1)]
    limit: Option<u32>,
    token_required: Option<bool>,
    waiting_room: Option<bool>,
    /// Seconds that a buyer has to pay; null: no payment step.
    #[schema(minimum = 1, maximum = 2_592_000)]
    pay_within_s: Option<u32>,
    #[schema(maximum = 86_400)]
    pay_grace_s: Option<u32>,
    limit_returns: Option<bool>,
    /// The version that was seen: with another one nothing is changed. Left out: whatever it is.
    version: Option<u32>,
    /// The operator, for the record.
    #[schema(max_length = 48)]
    by: Option<String>,
}

/// New times of a sale. What is left out stays as it is.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "describes `ChangeBody` with the fields of `NewTimes`; a test compares them")]
pub(super) struct RescheduleBody {
    /// RFC 3339.
    #[schema(format = DateTime)]
    starts_at: Option<String>,
    /// RFC 3339.
    #[schema(format = DateTime)]
    ends_at: Option<String>,
    /// The version that was seen: with another one nothing is changed. Left out: whatever it is.
    version: Option<u32>,
    /// The operator, for the record.
    #[schema(max_length = 48)]
    by: Option<String>,
}

/// A new sale with the terms of another one.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "describes `ChangeBody` with the fields of `CloneForm`; a test compares them")]
pub(super) struct CloneBody {
    /// The new sale's.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    id: String,
    /// RFC 3339.
    #[schema(format = DateTime)]
    starts_at: String,
    /// RFC 3339.
    #[schema(format = DateTime)]
    ends_at: String,
    /// Units; left out: as many as the other sale was ever granted.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    stock: Option<i64>,
    /// Whether buyers do not see it until it is published.
    #[serde(default)]
    hidden: bool,
    /// The operator, for the record.
    #[schema(max_length = 48)]
    by: Option<String>,
}

/// Reads the form of a change, strictly.
fn read<T: DeserializeOwned>(form: &Map<String, Value>) -> Result<T, Problem> {
    serde_json::from_value(Value::Object(form.clone())).map_err(|error| unexpected_body(&error))
}

/// Change the terms of a sale, until 30 seconds before its start.
///
/// Units are not among them: `POST …/top-up` adds some.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/edit", operation_id = "edit_sale", tag = "sales",
    params(SaleInPath), request_body = EditBody,
    responses((status = 200, description = "The sale", body = Value), WriteProblems)
)]
pub(super) async fn edit(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<ChangeBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    if body.form.contains_key("stock") {
        let chinese = "stock：不能在此修改；用 top-up 增加库存";
        return Err(Kind::Unprocessable.because_both("stock: expected none in an edit; add units with top-up", chinese));
    }
    let change = SaleChange::Edit(read::<SaleEdit>(&body.form)?);
    changed(&admin, body, &path, (call, Operation::SaleEdit, change)).await
}

/// Move the start of a sale, until 30 seconds before it, or its end, until it has passed.
///
/// A start is at least 30 seconds away, an end in the future.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/reschedule", operation_id = "reschedule_sale", tag = "sales",
    params(SaleInPath), request_body = RescheduleBody,
    responses((status = 200, description = "The sale", body = Value), WriteProblems)
)]
pub(super) async fn reschedule(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<ChangeBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    let change = SaleChange::Reschedule(read::<NewTimes>(&body.form)?);
    changed(&admin, body, &path, (call, Operation::SaleReschedule, change)).await
}

async fn changed(
    admin: &Admin,
    body: ChangeBody,
    path: &SaleInPath,
    (call, operation, change): (OperateCall, Operation, SaleChange),
) -> AdminAnswer {
    let (id, actor, control) = (&path.sale_id, call.actor(body.by.as_deref())?, &admin.sale_control);
    let act = SaleAct { actor: &actor, operation, sale_id: id, asked: Value::Object(body.form) };
    control.on_record(act, control.change(id, &change, body.version)).await?;
    admin.changed(id, operation.code()).await;
    answer(control.detail(id).await?)
}

/// Hide a sale from buyers: to them there is no such sale. Not while it sells; pause it first.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/hide", operation_id = "hide_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = Value), WriteProblems)
)]
pub(super) async fn hide(write: SaleWrite) -> AdminAnswer {
    let hiding = write.control().change(&write.sale_id, &SaleChange::Hide, None);
    write.on_record(Operation::SaleHide, "hidden", hiding).await?;
    write.sale().await
}

/// Show a hidden sale to buyers.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/publish", operation_id = "publish_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = Value), WriteProblems)
)]
pub(super) async fn publish(write: SaleWrite) -> AdminAnswer {
    let publishing = write.control().change(&write.sale_id, &SaleChange::Publish, None);
    write.on_record(Operation::SalePublish, "published", publishing).await?;
    write.sale().await
}

/// Create a draft with the terms of another sale.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/clone", operation_id = "clone_sale", tag = "sales",
    params(SaleInPath), request_body = CloneBody,
    responses((status = 200, description = "The new sale", body = Value), WriteProblems)
)]
pub(super) async fn clone_sale(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<ChangeBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    if body.version.is_some() {
        return Err(Kind::BadRequest.because_both(
            "version: expected none, a clone changes nothing of the other sale",
            "version：不应给出，克隆不会更改原活动",
        ));
    }
    let (form, actor): (CloneForm, _) = (read(&body.form)?, call.actor(body.by.as_deref())?);
    let asked = json!({ "of": path.sale_id, "form": body.form });
    let (id, control) = (&form.id, &admin.sale_control);
    let act = SaleAct { actor: &actor, operation: Operation::SaleClone, sale_id: id, asked };
    control.on_record(act, control.clone_sale(&path.sale_id, &form)).await?;
    admin.changed(id, "cloned").await;
    answer(control.detail(id).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use utoipa::PartialSchema;

    /// serde lists the fields that it knows when it finds another one.
    fn fields_of<T: DeserializeOwned>(ours: &[&str]) -> BTreeSet<String> {
        let refusal = serde_json::from_value::<T>(json!({ "?": 1 })).err().unwrap().to_string();
        refusal.split('`').skip(3).step_by(2).chain(ours.iter().copied()).map(str::to_owned).collect()
    }

    fn documented<T: PartialSchema>() -> BTreeSet<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn the_documented_bodies_have_the_fields_that_are_read() {
        assert_eq!(documented::<EditBody>(), fields_of::<SaleEdit>(&["version", "by"]));
        assert_eq!(documented::<RescheduleBody>(), fields_of::<NewTimes>(&["version", "by"]));
        assert_eq!(documented::<CloneBody>(), fields_of::<CloneForm>(&["by"]));
    }
}
