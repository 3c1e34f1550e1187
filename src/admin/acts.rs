//! What people did so far, newest first.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, answer, unexpected_query};
use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::http::problem::Kind;
use crate::sales::rows::acts::{self, RecordedAct};
use actix_web::web;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Acts listed without `limit`.
const ACTS: u32 = 50;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ActsQuery {
    /// Only acts on this sale.
    sale: Option<String>,
    /// The same by its older name; `sale` goes before it.
    sale_id: Option<String>,
    /// Only acts before this one.
    #[param(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    before: Option<u64>,
    /// How many; 50 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// A page of acts; one that is not full is the last.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ActsAnswer {
    /// Newest first.
    acts: Vec<ActDocument>,
}

/// List what people did, newest first.
#[utoipa::path(
    get, path = "/admin/v1/acts", operation_id = "list_acts", tag = "records",
    params(ActsQuery),
    responses((status = 200, description = "Acts", body = ActsAnswer), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<ActsQuery>) -> AdminAnswer {
    let ActsQuery { sale, sale_id, before, limit } = query.into_inner();
    let limit = limit.unwrap_or(ACTS);
    if !(1..=acts::PAGE_MAX).contains(&limit) {
        return Err(Kind::Unprocessable.because_both(
            format!("limit: expected 1 to {}", acts::PAGE_MAX),
            format!("limit：应为 1 至 {}", acts::PAGE_MAX),
        ));
    }
    if before.is_some_and(|before| before == 0 || i64::try_from(before).is_err()) {
        return Err(Kind::Unprocessable
            .because_both("before: expected the act_id of an act", "before：应为某条操作记录的 act_id"));
    }
    let sale_id = sale.or(sale_id).as_deref().map(SaleId::parse).transpose();
    let sale_id = sale_id.map_err(|error| unexpected_query(&error))?;
    let page = admin.servers.rows.acts.list(&acts::ActFilter { sale_id, before, limit }).await?;
    answer(ActsAnswer { acts: page.into_iter().map(ActDocument::of).collect() })
}

/// One act, for a program: what was JSON is JSON again.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Act)]
pub(super) struct ActDocument {
    /// Order of writing.
    act_id: u64,
    /// When, Unix milliseconds by the database's clock.
    at_ms: i64,
    /// `person` or `service`.
    actor_kind: String,
    /// The account that was proved.
    actor_id: String,
    /// Its name as it was then.
    actor_name: String,
    /// What the actor might do.
    roles: String,
    /// How the actor was known.
    auth_method: String,
    /// IP address of the connection.
    ip: Option<String>,
    /// The operation, as `category.operation`.
    #[schema(example = "order.cancel")]
    action: String,
    /// Sort of what it was about.
    target_type: String,
    /// Identity of what it was about, within its sort.
    target_id: String,
    /// The sale, if it was about one.
    #[schema(value_type = Option<String>)]
    sale_id: Option<SaleId>,
    /// `ok`, `denied` or `failed`.
    outcome: String,
    /// Stable code of what came of it.
    code: Option<String>,
    /// Why, in the actor's words.
    reason: Option<String>,
    /// What was there before: whatever JSON was written down.
    #[schema(value_type = Value)]
    before: Option<Box<RawValue>>,
    /// What was there after.
    #[schema(value_type = Value)]
    after: Option<Box<RawValue>>,
    /// `X-Request-Id` of the call.
    request_id: Option<String>,
}

impl ActDocument {
    fn of(act: RecordedAct) -> Self {
        // Another version may have written it: what is no JSON is left out.
        let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        Self {
            act_id: act.act_id,
            at_ms: act.at_ms,
            actor_kind: act.actor_kind,
            actor_id: act.actor_id,
            actor_name: act.actor_name,
            roles: act.roles,
            auth_method: act.auth_method,
            ip: act.ip,
            action: act.action,
            target_type: act.target_type,
            target_id: act.target_id,
            sale_id: act.sale_id,
            outcome: act.outcome,
            code: act.code,
            reason: act.reason,
            before: raw(act.before_json),
            after: raw(act.after_json),
            request_id: act.request_id,
        }
    }
}
