//! Money that has to go back, listed for operators and the shop's backend.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::orders::refunds::{REFUNDS_PAGE, RefundsForm, RefundsPage};
use actix_web::web;
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundsQuery {
    /// Only of this sale.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    sale: Option<SaleId>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// How many; 1,000 when left out. 0: only the count.
    #[param(minimum = 0, maximum = 1000)]
    limit: Option<u16>,
}

/// List payments whose money has to go back, oldest first.
#[utoipa::path(
    get, path = "/admin/v1/refunds", operation_id = "list_refunds", tag = "orders",
    params(RefundsQuery),
    responses((status = 200, description = "Payments, how many there are on all pages, and `next` when there are more", body = RefundsPage), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<RefundsQuery>) -> AdminAnswer {
    let RefundsQuery { sale, cursor, limit } = query.into_inner();
    let form = RefundsForm { sale, cursor, limit: limit.unwrap_or(REFUNDS_PAGE) };
    answer(RefundsPage::read(&admin.servers.rows.orders, &form.filter()?).await?)
}
