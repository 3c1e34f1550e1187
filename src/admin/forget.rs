//! Forgets a buyer: the id becomes a pseudonym in all servers. Only `admin.token` may: it cannot be undone.

use super::act_body::ActBody;
use super::calls::AdminCall;
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer};
use super::state::Admin;
use crate::buyers::forget::Forgotten;
use crate::buyers::forms::ForgetForm;
use actix_web::web;

type ForgetBody = ActBody<ForgetForm>;

/// Forget a buyer: the id becomes a pseudonym wherever it stands. Orders and units stay as they are.
///
/// Refused with 409 while something of the buyer is on its way; the detail names it. It takes seconds, with very many orders minutes;
/// when the answer does not come, repeat it, or P5 ends it.
#[utoipa::path(
    post, path = "/admin/v1/buyers/forget", operation_id = "forget_buyer", tag = "buyers", request_body = ForgetBody,
    responses((status = 200, description = "The buyer is forgotten", body = Forgotten), WriteProblems)
)]
pub(super) async fn forget(
    call: AdminCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<ForgetBody>,
) -> AdminAnswer {
    let ActBody { form, by, .. } = body;
    let (actor, wanted) = (call.actor(by.as_deref())?, form.checked()?);
    answer(admin.forget.forget(&actor, &wanted).await?)
}
