//! Drops: list, show, create, and what operators do to all sales of one. `SaleControl` does the work, as for the command line.

use super::act_body::ActBody;
use super::calls::{OperateCall, ViewCall};
use super::json_api::{AdminAnswer, JsonBody, ReadProblems, SaleReadProblems, WriteProblems, answer};
use super::sale_write::{DropWrite, OperatorBody};
use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::http::extract::DropInPath;
use crate::http::language::Language;
use crate::http::problem::Problem;
use crate::sales::forms::{DropEditForm, NewDropForm};
use crate::sales::{DropDetail, DropSummary, DropVerb};
use actix_web::{HttpRequest, web};
use serde::Serialize;

type NewDropBody = ActBody<NewDropForm>;
type DropEditBody = ActBody<DropEditForm>;

#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DropList {
    drops: Vec<DropSummary>,
}

/// What became of a drop's sales.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DropActDone {
    /// How many of them failed; repeating the call is safe.
    failed_count: usize,
    sales: Vec<SaleActDone>,
    drop: DropDetail,
}

#[derive(Serialize, utoipa::ToSchema)]
struct SaleActDone {
    #[schema(value_type = String)]
    sale_id: SaleId,
    /// Why it was not done, in the language of the call; null: it was.
    problem: Option<String>,
}

/// List the newest drops, a thousand at most.
#[utoipa::path(
    get, path = "/admin/v1/drops", operation_id = "list_drops", tag = "drops",
    responses((status = 200, description = "Drops", body = DropList), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>) -> AdminAnswer {
    answer(DropList { drops: admin.sale_control.drops().await? })
}

/// Show a drop with its sales.
#[utoipa::path(
    get, path = "/admin/v1/drops/{drop_id}", operation_id = "show_drop", tag = "drops",
    params(DropInPath),
    responses((status = 200, description = "The drop", body = DropDetail), SaleReadProblems)
)]
pub(super) async fn show(_call: ViewCall, admin: web::Data<Admin>, drop: web::Path<DropInPath>) -> AdminAnswer {
    answer(admin.sale_control.drop_detail(&drop.drop_id).await?)
}

/// Create a drop and its sales as drafts, all or nothing.
///
/// Repeating it with the same drop changes nothing.
#[utoipa::path(
    post, path = "/admin/v1/drops", operation_id = "create_drop", tag = "drops", request_body = NewDropBody,
    responses((status = 200, description = "The drop", body = DropDetail), WriteProblems)
)]
pub(super) async fn create(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<NewDropBody>,
) -> AdminAnswer {
    let ActBody { form, by, .. } = body;
    let actor = call.actor(by.as_deref())?;
    let (drop, sales) = form.drafts()?;
    admin.sale_control.create_drop(&actor, &drop, &sales).await?;
    admin.drop_changed(&drop.drop_id, "created").await;
    answer(admin.sale_control.drop_detail(&drop.drop_id).await?)
}

/// Change what it is called, or its limit, until 30 seconds before the first of its sales starts.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/edit", operation_id = "edit_drop", tag = "drops",
    params(DropInPath), request_body = DropEditBody,
    responses((status = 200, description = "The drop", body = DropDetail), WriteProblems)
)]
pub(super) async fn edit(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<DropEditBody>,
    path: web::Path<DropInPath>,
) -> AdminAnswer {
    let (ActBody { form, by, .. }, id) = (body, &path.drop_id);
    admin.sale_control.edit_drop(&call.actor(by.as_deref())?, id, &form).await?;
    admin.drop_changed(id, "edited").await;
    answer(admin.sale_control.drop_detail(id).await?)
}

/// Put the stock of all its sales into Redis and open them.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/warm", operation_id = "warm_drop", tag = "drops",
    params(DropInPath), request_body = OperatorBody,
    responses((status = 200, description = "What became of each sale", body = DropActDone), WriteProblems)
)]
pub(super) async fn warm(write: DropWrite, request: HttpRequest) -> AdminAnswer {
    each(write, &request, DropVerb::Warm).await
}

/// Stop selling; can be resumed.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/pause", operation_id = "pause_drop", tag = "drops",
    params(DropInPath), request_body = OperatorBody,
    responses((status = 200, description = "What became of each sale", body = DropActDone), WriteProblems)
)]
pub(super) async fn pause(write: DropWrite, request: HttpRequest) -> AdminAnswer {
    each(write, &request, DropVerb::Pause).await
}

/// Go on selling.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/resume", operation_id = "resume_drop", tag = "drops",
    params(DropInPath), request_body = OperatorBody,
    responses((status = 200, description = "What became of each sale", body = DropActDone), WriteProblems)
)]
pub(super) async fn resume(write: DropWrite, request: HttpRequest) -> AdminAnswer {
    each(write, &request, DropVerb::Resume).await
}

/// Hide all its sales from buyers; not while they sell.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/hide", operation_id = "hide_drop", tag = "drops",
    params(DropInPath), request_body = OperatorBody,
    responses((status = 200, description = "What became of each sale", body = DropActDone), WriteProblems)
)]
pub(super) async fn hide(write: DropWrite, request: HttpRequest) -> AdminAnswer {
    each(write, &request, DropVerb::Hide).await
}

/// Show its hidden sales to buyers.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/publish", operation_id = "publish_drop", tag = "drops",
    params(DropInPath), request_body = OperatorBody,
    responses((status = 200, description = "What became of each sale", body = DropActDone), WriteProblems)
)]
pub(super) async fn publish(write: DropWrite, request: HttpRequest) -> AdminAnswer {
    each(write, &request, DropVerb::Publish).await
}

/// End all its sales for good.
#[utoipa::path(
    post, path = "/admin/v1/drops/{drop_id}/close", operation_id = "close_drop", tag = "drops",
    params(DropInPath), request_body = OperatorBody,
    responses((status = 200, description = "The drop", body = DropDetail), WriteProblems)
)]
pub(super) async fn close(write: DropWrite) -> AdminAnswer {
    let id = &write.path.drop_id;
    write.control().close_drop(&write.actor, id).await?;
    write.admin.drop_changed(id, "closed").await;
    answer(write.control().drop_detail(id).await?)
}

async fn each(write: DropWrite, request: &HttpRequest, verb: DropVerb) -> AdminAnswer {
    let (id, language) = (&write.path.drop_id, Language::of(request.headers()));
    let mut sales = Vec::new();
    for (sale_id, of_sale) in write.control().each_of_drop(&write.actor, id, verb).await? {
        let problem = of_sale.err().map(|error| Problem::from(error).words(language));
        sales.push(SaleActDone { sale_id, problem });
    }
    write.admin.drop_changed(id, "changed sale by sale").await;
    let failed_count = sales.iter().filter(|sale| sale.problem.is_some()).count();
    answer(DropActDone { failed_count, sales, drop: write.control().drop_detail(id).await? })
}
