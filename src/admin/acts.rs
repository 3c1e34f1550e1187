//! What people did so far, newest first.

use super::json_api::{answer, query, sale_id_in};
use super::state::Admin;
use crate::http::problem::Kind;
use crate::store::mysql::acts::{self, RecordedAct};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Acts listed without `limit`.
const ACTS: u32 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActsQuery {
    sale_id: Option<String>,
    /// Only acts before this one.
    before: Option<u64>,
    limit: Option<u32>,
}

pub(super) async fn list(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let work = async {
        let ActsQuery { sale_id, before, limit } = query(&request)?;
        let limit = limit.unwrap_or(ACTS);
        if !(1..=acts::PAGE_MAX).contains(&limit) {
            return Err(Kind::Unprocessable.because(format!("limit: expected 1 to {}", acts::PAGE_MAX)));
        }
        let sale_id = sale_id.as_deref().map(sale_id_in).transpose()?;
        let page = acts::list(&admin.servers.db, &acts::ActFilter { sale_id, before, limit }).await?;
        Ok(json!({ "acts": page.iter().map(shown).collect::<Vec<_>>() }))
    };
    answer(&request, work.await)
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
