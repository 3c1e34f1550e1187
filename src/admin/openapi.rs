//! The admin API as a document: `/admin/v1/openapi.json`. A test compares it with the routes.

use super::{
    acts, audits, blocks, dlq, drops, failed_requests, forget, lines, order_export, order_steps, orders, passes,
    pipeline, process, refunds, routes, sale_changes, sale_creation, sales, units, webhooks,
};
use crate::http::openapi::{ADMIN_TOKEN, ProblemBody, ProblemCodes, ProblemResponse};
use actix_web::http::Method;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(title = "seckill admin", description = "What operators see of a flash-sale order system, and do to it."),
    paths(
        sales::list, sale_creation::create, sales::show, sale_changes::edit, sale_changes::reschedule,
        sale_changes::hide, sale_changes::publish, sale_changes::clone_sale, sales::warm, sales::pause, sales::resume, sales::top_up, units::withdraw, sales::reclaim,
        sales::rebuild, sales::close, lines::show, lines::entries, lines::list, lines::draw, drops::list, drops::create, drops::show, drops::edit, drops::warm, drops::pause, drops::resume, drops::hide,
        drops::publish, units::move_units, drops::close, orders::find, order_export::export, orders::show, order_steps::paid, order_steps::paying,
        order_steps::cancel, order_steps::refunded, refunds::list, audits::audit, audits::runs, acts::list, blocks::list, blocks::add, blocks::remove, forget::forget, passes::issue, dlq::list, dlq::replay, dlq::give_up,
        failed_requests::list, webhooks::overview, webhooks::list, webhooks::show, webhooks::replay, pipeline::pipeline, process::document, process::whoami
    ),
    components(schemas(ProblemBody), responses(ProblemResponse)),
    modifiers(&ADMIN_TOKEN, &ProblemCodes),
    security(("bearer" = [])),
    tags((name = "sales"), (name = "lines"), (name = "drops"), (name = "orders"), (name = "buyers"), (name = "records"), (name = "dead letters"), (name = "webhooks"), (name = "process"))
)]
struct AdminDocument;

/// The OpenAPI document of the admin API. `x-role` of an operation lists the roles that may call it, as its route has them; the
/// holder of `admin.token` always may.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = AdminDocument::openapi();
    for (path, routes) in routes::table() {
        let Some(item) = document.paths.paths.get_mut(&format!("/admin/v1{path}")) else { continue };
        for judged in routes {
            let operation = if judged.method == Method::GET { &mut item.get } else { &mut item.post };
            if let Some(operation) = operation {
                let role = ("x-role", judged.needed.roles());
                operation.extensions.get_or_insert_default().merge([role].into_iter().collect());
            }
        }
    }
    document
}
