//! Changes of a sale that exists, over HTTP: its terms, its times, whether buyers see it, and a new one with its terms.
//!
//! Input: the changes, and the version that the operator saw. Output: the change, on record; the sale as it is then. A crash leaves
//! what `SaleControl::change` leaves.

use super::act_body::{ActBody, ChangeBody};
use super::calls::OperateCall;
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer};
use super::sale_write::{OperatorBody, SaleWrite};
use super::state::Admin;
use crate::domain::operator::Operation;
use crate::http::extract::SaleInPath;
use crate::sales::forms::{CloneForm, RescheduleForm, SaleEditForm};
use crate::sales::{SaleAct, SaleChange, SaleDetail};
use actix_web::web;
use serde::Serialize;
use serde_json::json;

type EditBody = ChangeBody<SaleEditForm>;
type RescheduleBody = ChangeBody<RescheduleForm>;
type CloneBody = ActBody<CloneForm>;

/// Change the terms of a sale, until 30 seconds before its start.
///
/// Units are not among them: `POST …/top-up` adds some.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/edit", operation_id = "edit_sale", tag = "sales",
    params(SaleInPath), request_body = EditBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn edit(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<EditBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    changed(&admin, body, &path, (call, Operation::SaleEdit, SaleChange::Edit)).await
}

/// Move the start of a sale, until 30 seconds before it, or its end, until it has passed.
///
/// A start is at least 30 seconds away, an end in the future.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/reschedule", operation_id = "reschedule_sale", tag = "sales",
    params(SaleInPath), request_body = RescheduleBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn reschedule(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<RescheduleBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    changed(&admin, body, &path, (call, Operation::SaleReschedule, SaleChange::Reschedule)).await
}

async fn changed<T: Serialize>(
    admin: &Admin,
    body: ChangeBody<T>,
    path: &SaleInPath,
    (call, operation, change): (OperateCall, Operation, fn(T) -> SaleChange),
) -> AdminAnswer {
    let (id, actor, control) = (&path.sale_id, call.actor(body.by.as_deref())?, &admin.sale_control);
    let act = SaleAct { actor: &actor, operation, sale_id: id, asked: json!(body.form) };
    control.on_record(act, control.change(id, &change(body.form), body.version)).await?;
    admin.changed(id, operation.code()).await;
    answer(control.detail(id).await?)
}

/// Hide a sale from buyers: to them there is no such sale. Not while it sells; pause it first.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/hide", operation_id = "hide_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn hide(write: SaleWrite) -> AdminAnswer {
    let hiding = write.control().change(write.sale_id(), &SaleChange::Hide, None);
    write.on_record(Operation::SaleHide, "hidden", hiding).await?;
    write.sale().await
}

/// Show a hidden sale to buyers.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/publish", operation_id = "publish_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn publish(write: SaleWrite) -> AdminAnswer {
    let publishing = write.control().change(write.sale_id(), &SaleChange::Publish, None);
    write.on_record(Operation::SalePublish, "published", publishing).await?;
    write.sale().await
}

/// Create a draft with the terms of another sale.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/clone", operation_id = "clone_sale", tag = "sales",
    params(SaleInPath), request_body = CloneBody,
    responses((status = 200, description = "The new sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn clone_sale(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<CloneBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    let ActBody { form, by, .. } = body;
    let actor = call.actor(by.as_deref())?;
    let asked = json!({ "of": path.sale_id, "form": form });
    let (id, control) = (&form.id, &admin.sale_control);
    let act = SaleAct { actor: &actor, operation: Operation::SaleClone, sale_id: id, asked };
    control.on_record(act, control.clone_sale(&path.sale_id, &form)).await?;
    admin.changed(id, "cloned").await;
    answer(control.detail(id).await?)
}
