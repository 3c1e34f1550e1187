//! A new sale over HTTP: a draft, or opened at once.

use super::act_body::ActBody;
use super::calls::OperateCall;
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer};
use super::state::Admin;
use crate::sales::SaleDetail;
use crate::sales::forms::NewSaleForm;
use actix_web::web;

type NewSaleBody = ActBody<NewSaleForm>;

/// Create a sale as a draft, with `warm` also open it.
#[utoipa::path(
    post, path = "/admin/v1/sales", operation_id = "create_sale", tag = "sales", request_body = NewSaleBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn create(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<NewSaleBody>,
) -> AdminAnswer {
    let ActBody { form, by, .. } = body;
    let (actor, warm, planned) = (call.actor(by.as_deref())?, form.warm, form.plain()?);
    admin.sale_control.create(&actor, (&planned, warm), || {}).await?;
    let (sale, _) = planned;
    admin.changed(&sale.sale_id, "created").await;
    answer(admin.sale_control.detail(&sale.sale_id).await?)
}
