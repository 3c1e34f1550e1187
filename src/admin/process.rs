//! What a client asks of the process itself: the document of the admin API, and whose token it has. Keeps nothing.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::state::Admin;
use actix_web::web;
use serde::Serialize;
use utoipa::openapi::OpenApi;

/// Get this document.
#[utoipa::path(
    get, path = "/admin/v1/openapi.json", operation_id = "show_document", tag = "process",
    responses((status = 200, description = "OpenAPI 3.1", body = Object), ReadProblems)
)]
pub(super) async fn document(_call: ViewCall, document: web::Data<OpenApi>) -> AdminAnswer {
    answer(&**document)
}

/// Whose token it is, and what answers.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Whoami {
    /// Name of the token.
    name: String,
    /// The role of its holder.
    may: &'static str,
    /// The roles of the process.
    roles: Vec<&'static str>,
    /// The version of the process.
    #[schema(value_type = String)]
    version: &'static str,
}

/// Check the token.
#[utoipa::path(
    get, path = "/admin/v1/whoami", operation_id = "check_token", tag = "process",
    responses((status = 200, description = "The roles of the process and its version", body = Whoami), ReadProblems)
)]
pub(super) async fn whoami(call: ViewCall, admin: web::Data<Admin>) -> AdminAnswer {
    let (name, may) = call.token();
    let roles: Vec<&str> = admin.roles.iter().map(|role| role.name()).collect();
    answer(Whoami { name: name.to_owned(), may, roles, version: crate::build_info::version() })
}
