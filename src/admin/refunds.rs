//! Money that has to go back, listed for operators and the shop's backend.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::state::Admin;
use crate::orders::forms::RefundsForm;
use crate::orders::refunds::RefundsPage;
use actix_web::web;

/// List payments whose money has to go back, oldest first.
#[utoipa::path(
    get, path = "/admin/v1/refunds", operation_id = "list_refunds", tag = "orders",
    params(RefundsForm),
    responses((status = 200, description = "Payments, how many there are on all pages, and `next` when there are more", body = RefundsPage), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<RefundsForm>) -> AdminAnswer {
    answer(RefundsPage::read(&admin.servers.rows.orders, &query.into_inner().filter()?).await?)
}
