//! Units that leave a sale, or move to another sale of its drop, over HTTP.
//!
//! Input: how many, under which name. Output: what left, on record, and the sale or the drop as it is then. A crash leaves what
//! `SaleControl` leaves: an open withdrawal, which a repeat or P5 finishes.

use super::act_body::ActBody;
use super::calls::OperateCall;
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer};
use super::state::Admin;
use crate::domain::operator::Operation;
use crate::http::extract::{DropInPath, SaleInPath};
use crate::sales::forms::{MoveForm, WithdrawForm};
use crate::sales::{DropDetail, SaleAct, SaleDetail, UnitsMoved, UnitsTaken};
use actix_web::web;
use serde::Serialize;
use serde_json::json;

type WithdrawBody = ActBody<WithdrawForm>;
type MoveBody = ActBody<MoveForm>;

/// A sale after a withdrawal.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct WithdrawDone {
    #[serde(flatten)]
    sale: SaleDetail,
    withdrawn: UnitsTaken,
}

/// What moved.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct MoveDone {
    /// Units that left the one sale and are the other one's now.
    moved: UnitsMoved,
    drop: DropDetail,
}

/// Take unsold units off sale, once for each name.
///
/// Fewer than asked for when fewer are unsold, or when buyers are quicker.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/withdraw", operation_id = "withdraw_units", tag = "sales",
    params(SaleInPath), request_body = WithdrawBody,
    responses(
        (status = 200, description = "The sale; in `withdrawn` the name, and how many units were asked for and taken", body = WithdrawDone),
        WriteProblems,
    )
)]
pub(super) async fn withdraw(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<WithdrawBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    let (ActBody { form, by, .. }, id, control) = (body, &path.sale_id, &admin.sale_control);
    form.check()?;
    let actor = call.actor(by.as_deref())?;
    let act = SaleAct { actor: &actor, operation: Operation::SaleWithdraw, sale_id: id, asked: json!(form) };
    let taken = control.on_record(act, control.withdraw(id, &form.name, form.units)).await?;
    admin.changed(id, "units withdrawn").await;
    answer(WithdrawDone { sale: control.detail(id).await?, withdrawn: taken })
}

/// Move unsold units from one sale of a drop to another, once for each name.
///
/// Fewer than asked for when fewer are unsold, or when buyers are quicker.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/move", operation_id = "move_units", tag = "drops",
    params(DropInPath), request_body = MoveBody,
    responses((status = 200, description = "What moved, and the drop", body = MoveDone), WriteProblems)
)]
pub(super) async fn move_units(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<MoveBody>,
    path: web::Path<DropInPath>,
) -> AdminAnswer {
    let (ActBody { form, by, .. }, id, control) = (body, &path.drop_id, &admin.sale_control);
    form.check()?;
    let moved = control.move_in_drop(&call.actor(by.as_deref())?, Some(id), &form).await?;
    admin.drop_changed(id, "units moved").await;
    answer(MoveDone { moved, drop: control.drop_detail(id).await? })
}
