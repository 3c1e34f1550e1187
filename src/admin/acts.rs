//! Who acts through the admin API, and what people did so far.

use super::Admin;
use super::api::{answer, query};
use super::sales::named;
use crate::domain::operator::Actor;
use crate::http::problem::{Kind, Problem};
use crate::store::mysql::acts::{self, RecordedAct};
use crate::telemetry::http_request_id::HttpRequestId;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Longest name of an operator, characters; the register's column has 64, and a word goes before it.
const NAME_CHARS_MAX: usize = 48;
/// Acts listed without a word about it.
const ACTS: u32 = 50;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.route("/acts", web::get().to(list));
}

/// Who makes this call: a holder of the token who typed this name. The address is that of the connection, so of the proxy
/// before this port if there is one: what a header says of the way before it can be forged.
pub(super) fn actor(request: &HttpRequest, by: Option<&str>) -> Result<Actor, Problem> {
    let name = by.map(str::trim).filter(|name| !name.is_empty());
    if name.is_some_and(|name| name.chars().count() > NAME_CHARS_MAX) {
        return Err(Kind::Unprocessable.because(format!("by: expected at most {NAME_CHARS_MAX} characters")));
    }
    let call = request.headers().get("x-request-id").and_then(|id| HttpRequestId::given(id.as_bytes()));
    let ip = request.peer_addr().map(|address| address.ip().to_string());
    Ok(Actor::with_admin_token(name, ip, call.map(|id| id.to_string())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActsQuery {
    sale_id: Option<String>,
    /// Only acts before this one.
    before: Option<u64>,
    limit: Option<u32>,
}

async fn list(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let work = async {
        let ActsQuery { sale_id, before, limit } = query(&request)?;
        let limit = limit.unwrap_or(ACTS);
        if !(1..=acts::PAGE_MAX).contains(&limit) {
            return Err(Kind::Unprocessable.because(format!("limit: expected 1 to {}", acts::PAGE_MAX)));
        }
        let sale_id = sale_id.as_deref().map(named).transpose()?;
        let page = acts::list(&admin.servers.db, &acts::ActFilter { sale_id, before, limit }).await?;
        Ok(json!({ "acts": page.iter().map(shown).collect::<Vec<_>>() }))
    };
    answer(&request, work.await)
}

/// An act for a program: what was JSON is JSON again.
fn shown(act: &RecordedAct) -> Value {
    // Written by another version perhaps: shown as it is.
    let raw = |text: &Option<String>| text.clone().and_then(|text| RawValue::from_string(text).ok());
    json!({
        "act_id": act.act_id, "at_ms": act.at_ms, "actor_kind": act.actor_kind, "actor_id": act.actor_id,
        "actor_name": act.actor_name, "roles": act.roles, "auth_method": act.auth_method, "ip": act.ip,
        "action": act.action, "target_type": act.target_type, "target_id": act.target_id, "sale_id": act.sale_id,
        "outcome": act.outcome, "code": act.code, "reason": act.reason, "before": raw(&act.before_json),
        "after": raw(&act.after_json), "request_id": act.request_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_operator_is_named_by_what_was_typed_and_the_call_by_its_header() {
        let request = TestRequest::default()
            .insert_header(("x-request-id", "call-7"))
            .peer_addr("192.0.2.7:4711".parse().unwrap())
            .to_http_request();
        let (nobody, somebody) = (actor(&request, None).unwrap(), actor(&request, Some(" Li Wei ")).unwrap());
        assert_eq!((nobody.label().as_str(), somebody.label().as_str()), ("console", "console: Li Wei"));
        assert_eq!((somebody.ip.as_deref(), somebody.call_id.as_deref()), (Some("192.0.2.7"), Some("call-7")));
        assert!(actor(&request, Some(&"x".repeat(49))).is_err());
    }
}
