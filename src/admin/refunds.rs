//! Money that has to go back, listed for operators and the shop's backend.

use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::orders::payment;
use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::store::mysql::order_life;
use actix_web::web;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundsQuery {
    /// Only of this sale.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    sale: Option<SaleId>,
}

/// List payments whose money has to go back, oldest first.
#[utoipa::path(
    get, path = "/admin/v1/refunds", operation_id = "list_refunds", tag = "orders",
    params(RefundsQuery),
    responses((status = 200, description = "At most 1,000 payments, and how many there are", body = Value), ReadProblems)
)]
pub(super) async fn list(admin: web::Data<Admin>, query: web::Query<RefundsQuery>) -> AdminAnswer {
    let (payments, count) = order_life::refunds_needed(&admin.servers.db, query.sale.as_ref()).await?;
    answer(json!({ "payments": payments.iter().map(payment).collect::<Vec<_>>(), "count": count }))
}
