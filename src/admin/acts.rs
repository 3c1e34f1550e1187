//! What people did so far, newest first.

use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::http::problem::Kind;
use crate::store::mysql::acts::{self, RecordedAct};
use actix_web::web;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Acts listed without `limit`.
const ACTS: u32 = 50;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ActsQuery {
    /// Only acts on this sale.
    sale_id: Option<String>,
    /// Only acts before this one.
    #[param(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    before: Option<u64>,
    /// How many; 50 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List what people did, newest first.
#[utoipa::path(
    get, path = "/admin/v1/acts", operation_id = "list_acts", tag = "records",
    params(ActsQuery),
    responses((status = 200, description = "Acts", body = Value), ReadProblems)
)]
pub(super) async fn list(admin: web::Data<Admin>, query: web::Query<ActsQuery>) -> AdminAnswer {
    let ActsQuery { sale_id, before, limit } = query.into_inner();
    let limit = limit.unwrap_or(ACTS);
    if !(1..=acts::PAGE_MAX).contains(&limit) {
        return Err(Kind::Unprocessable.because(format!("limit: expected 1 to {}", acts::PAGE_MAX)));
    }
    if before.is_some_and(|before| before == 0 || i64::try_from(before).is_err()) {
        return Err(Kind::Unprocessable.because("before: expected the act_id of an act"));
    }
    let sale_id = sale_id.as_deref().map(SaleId::parse).transpose();
    let sale_id = sale_id.map_err(|error| Kind::BadRequest.because(error.to_string()))?;
    let page = acts::list(&admin.servers.db, &acts::ActFilter { sale_id, before, limit }).await?;
    answer(json!({ "acts": page.iter().map(shown).collect::<Vec<_>>() }))
}

/// An act for a program: what was JSON is JSON again.
fn shown(act: &RecordedAct) -> Value {
    // Another version may have written it: shown as it is.
    let raw = |text: &Option<String>| text.clone().and_then(|text| RawValue::from_string(text).ok());
    json!({
        "act_id": act.act_id, "at_ms": act.at_ms, "actor_kind": act.actor_kind, "actor_id": act.actor_id,
        "actor_name": act.actor_name, "roles": act.roles, "auth_method": act.auth_method, "ip": act.ip,
        "action": act.action, "target_type": act.target_type, "target_id": act.target_id, "sale_id": act.sale_id,
        "outcome": act.outcome, "code": act.code, "reason": act.reason, "before": raw(&act.before_json),
        "after": raw(&act.after_json), "request_id": act.request_id,
    })
}
