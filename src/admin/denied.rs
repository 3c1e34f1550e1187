//! The record of calls that a role did not allow: the first of a minute by itself, of the others their number.
//!
//! Input: a call that was judged. Output: rows in `operator_acts`. A crash loses the number, for at most a minute.

use super::calls::Denied;
use super::minutes::Noted;
use super::sign_in::SignedIn;
use super::state::Admin;
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use crate::http::problem::Problem;
use actix_web::{HttpMessage, HttpRequest, web};
use serde_json::json;

/// A call that its role did not allow is on record before it is answered; of further ones within a minute, their number is at its end.
pub(super) async fn record_denied(admin: &web::Data<Admin>, request: &HttpRequest) -> Result<(), Problem> {
    let denied = request.extensions().contains::<Denied>();
    let signed_in = request.extensions().get::<SignedIn>().filter(|_| denied).cloned();
    let Some(signed_in) = signed_in else { return Ok(()) };
    let ip = request.peer_addr().map(|address| address.ip().to_string());
    let actor = Actor::with_named_token(&signed_in.id, signed_in.roles(), None, ip);
    let what: String = format!("{} {}", request.method(), request.path()).chars().take(128).collect();
    let mut act = OperatorAct::new(&actor, Operation::AdminWrite, ActTarget::Entry(what));
    (act.outcome, act.code) = (ActOutcome::Denied, Some("FORBIDDEN".to_owned()));
    match admin.sign_in.denied.noted(&signed_in.id) {
        Noted::First => admin.servers.rows.acts.record(&[act]).await?,
        Noted::Second(minute) => {
            let (admin, signed_in) = (admin.clone(), signed_in.id);
            tokio::spawn(async move {
                let more = admin.sign_in.denied.after(minute).await;
                act.after =
                    Some(json!({ "calls": more, "within_s": 60, "the_first_of_them": act.target.code_and_id().1 }));
                if let Err(error) = admin.servers.rows.acts.record(&[act]).await {
                    tracing::warn!(token = signed_in, more, %error, "refused calls of the admin API are not on record");
                }
            });
        }
        Noted::Later => {}
    }
    Ok(())
}
