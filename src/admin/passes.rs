//! A pass for one buyer, signed by us. On record before it is handed out; the pass itself is not in the record.

use super::act_body::ActBody;
use super::calls::OperateCall;
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer};
use super::state::Admin;
use crate::buyers::forms::{BadPass, PassForm, PassOf};
use crate::buyers::passes::{IssuedPass, PassError, PassIssuer, new_jti};
use crate::domain::operator::{ActTarget, Operation, OperatorAct};
use crate::http::problem::{Kind, Problem};
use crate::runtime::now_ms;
use actix_web::web;
use serde_json::json;

type PassBody = ActBody<PassForm>;

impl From<BadPass> for Problem {
    fn from(bad: BadPass) -> Self {
        let chinese = format!("{}：应为{}", bad.field, bad.chinese);
        Kind::Unprocessable.because_both(bad.to_string(), chinese).of_field(bad.field, None)
    }
}

impl From<PassError> for Problem {
    fn from(error: PassError) -> Self {
        match error {
            PassError::NoSecret => Kind::Conflict
                .because_both(error.to_string(), "passes.secrets 为空：请填入与 api 进程相同的密钥，用其中第一个签发"),
            PassError::Sign(_) => Kind::Internal.because(error.to_string()),
        }
    }
}

/// Issue a pass for a buyer, signed with the first of `passes.secrets`.
///
/// It is for one sale or for all sales of a drop, whether they exist or not. What is no other field is a fact of the buyer. Nothing
/// takes a pass back before its time is over.
#[utoipa::path(
    post, path = "/admin/v1/passes", operation_id = "issue_pass", tag = "buyers", request_body = PassBody,
    responses((status = 200, description = "The pass", body = IssuedPass), WriteProblems)
)]
pub(super) async fn issue(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<PassBody>,
) -> AdminAnswer {
    let ActBody { form, by, .. } = body;
    let (actor, pass) = (call.actor(by.as_deref())?, form.checked(now_ms() / 1000, new_jti)?);
    let issued = PassIssuer::new(&admin.passes)?.issue(&pass)?;
    let mut act = OperatorAct::new(&actor, Operation::PassIssue, ActTarget::Buyer(pass.sub.clone()));
    act.sale_id = match &pass.of {
        PassOf::Sale(sale) => Some(sale.clone()),
        PassOf::Drop(_) => None,
    };
    act.after = Some(json!({ "of": pass.of, "facts": pass.facts, "exp": pass.exp, "jti": pass.jti }));
    admin.servers.rows.acts.record(&[act]).await?;
    answer(issued)
}
