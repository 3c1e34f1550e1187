//! The admin API as a document: `/admin/v1/openapi.json`. A test compares it with the routes.

use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::sign_in::SignedIn;
use super::state::Admin;
use super::{
    acts, audits, dlq, failed_requests, order_export, order_steps, orders, pipeline, refunds, sale_changes,
    sale_creation, sales, webhooks,
};
use crate::http::openapi::{ADMIN_TOKEN, ProblemBody, ProblemCodes, ProblemResponse};
use actix_web::{HttpMessage, HttpRequest, web};
use serde_json::json;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(title = "seckill admin", description = "What operators see of a flash-sale order system, and do to it."),
    paths(
        sales::list, sale_creation::create, sales::show, sale_changes::edit, sale_changes::reschedule,
        sale_changes::hide, sale_changes::publish, sale_changes::clone_sale, sales::warm, sales::pause, sales::resume, sales::top_up, sales::reclaim,
        sales::rebuild, sales::close, orders::find, order_export::export, orders::show, order_steps::paid, order_steps::paying,
        order_steps::cancel, order_steps::refunded, refunds::list, audits::audit, audits::runs, acts::list, dlq::list, dlq::replay, dlq::give_up,
        failed_requests::list, webhooks::overview, webhooks::list, webhooks::show, webhooks::replay, pipeline::pipeline, json, whoami
    ),
    components(schemas(ProblemBody), responses(ProblemResponse)),
    modifiers(&ADMIN_TOKEN, &ProblemCodes),
    security(("bearer" = [])),
    tags((name = "sales"), (name = "orders"), (name = "records"), (name = "dead letters"), (name = "webhooks"), (name = "process"))
)]
struct AdminDocument;

/// The OpenAPI document of the admin API.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    AdminDocument::openapi()
}

/// Get this document.
#[utoipa::path(
    get, path = "/admin/v1/openapi.json", operation_id = "show_document", tag = "process",
    responses((status = 200, description = "OpenAPI 3.1", body = Value), ReadProblems)
)]
pub(super) async fn json() -> AdminAnswer {
    answer(document())
}

/// Check the token.
#[utoipa::path(
    get, path = "/admin/v1/whoami", operation_id = "check_token", tag = "process",
    responses((status = 200, description = "The roles of the process and its version", body = Value), ReadProblems)
)]
pub(super) async fn whoami(admin: web::Data<Admin>, request: HttpRequest) -> AdminAnswer {
    let signed_in = request.extensions().get::<SignedIn>().cloned();
    let (name, may) = signed_in.map_or_else(|| (String::new(), ""), |known| (known.id.clone(), known.roles()));
    let roles: Vec<&str> = admin.roles.iter().map(|role| role.name()).collect();
    answer(json!({ "name": name, "may": may, "roles": roles, "version": crate::build_info::version() }))
}
