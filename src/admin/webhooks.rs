//! Webhooks over HTTP (L5): what waits and what is dead, single deliveries, and their replay.

use super::act_body::ActBody;
use super::calls::{OperateCall, ViewCall};
use super::json_api::{AdminAnswer, JsonBody, ReadProblems, WriteProblems, answer};
use super::state::Admin;
use crate::events::webhooks::deliveries::{
    DeliveriesPage, DeliveryDocument, ReplayedDeliveries, WebhookDocument, webhooks_overview,
};
use crate::events::webhooks::forms::{DeliveriesForm, ReplayForm};
use crate::http::problem::{Kind, Problem};
use actix_web::web;
use serde::{Deserialize, Serialize};

/// Webhooks, each with what of it waits and is dead.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct WebhooksAnswer {
    webhooks: Vec<WebhookDocument>,
}

/// List the webhooks: what waits and what is dead.
#[utoipa::path(
    get, path = "/admin/v1/webhooks", operation_id = "list_webhooks", tag = "webhooks",
    responses((status = 200, description = "Those of the configuration, and those that have rows only", body = WebhooksAnswer), ReadProblems)
)]
pub(super) async fn overview(_call: ViewCall, admin: web::Data<Admin>) -> AdminAnswer {
    answer(WebhooksAnswer { webhooks: webhooks_overview(&admin.servers.rows.webhooks, &admin.webhooks).await? })
}

/// List deliveries in a state, by webhook, those that wait or are dead for longest first.
#[utoipa::path(
    get, path = "/admin/v1/webhooks/deliveries", operation_id = "list_deliveries", tag = "webhooks",
    params(DeliveriesForm),
    responses((status = 200, description = "Deliveries, how many there are on all pages, counted up to 10,000, and `next` when there are more", body = DeliveriesPage), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<DeliveriesForm>) -> AdminAnswer {
    answer(DeliveriesPage::read(&admin.servers.rows.webhooks, &query.into_inner().filter()?).await?)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct DeliveryPath {
    /// Number of the delivery.
    delivery_id: u64,
}

crate::http::openapi::problem_responses! {
    /// Of calls that read one delivery.
    DeliveryProblems: 400, 401, 404, 429, 500, 503;
}

/// One delivery.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DeliveryAnswer {
    delivery: DeliveryDocument,
}

/// One delivery, with its event.
#[utoipa::path(
    get, path = "/admin/v1/webhooks/deliveries/{delivery_id}", operation_id = "show_delivery", tag = "webhooks",
    params(DeliveryPath),
    responses((status = 200, description = "The delivery", body = DeliveryAnswer), DeliveryProblems)
)]
pub(super) async fn show(_call: ViewCall, admin: web::Data<Admin>, path: web::Path<DeliveryPath>) -> AdminAnswer {
    let id = path.delivery_id;
    let Some(row) = admin.servers.rows.webhooks.get(id).await? else {
        let english =
            format!("there is no delivery {id}; delivered ones are deleted after webhook_delivery.retention_s");
        let chinese = format!("没有投递 {id}；已送达的投递在 webhook_delivery.retention_s 之后删除");
        return Err(Kind::DeliveryNotFound.because_both(english, chinese));
    };
    answer(DeliveryAnswer { delivery: DeliveryDocument::with_data(row) })
}

type ReplayBody = ActBody<ReplayForm>;

/// Send deliveries again: at once, with all their tries, under the same `webhook-id`.
///
/// A webhook that was closed because its receiver answered 410 is open again. All dead ones are sent again also when the caller does not
/// wait for the answer; the number of dead ones shows how far it is.
#[utoipa::path(
    post, path = "/admin/v1/webhooks/replay", operation_id = "replay_deliveries", tag = "webhooks",
    request_body = ReplayBody,
    responses((status = 200, description = "How many, and the numbers that are of no delivery", body = ReplayedDeliveries), WriteProblems)
)]
pub(super) async fn replay(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<ReplayBody>,
) -> AdminAnswer {
    let form = body.form.checked()?;
    let actor = call.actor(body.by.as_deref())?;
    let _turn = if form.dead { Some(admin.replaying.try_lock().map_err(|_| under_way())?) } else { None };
    answer(form.replay(&admin.servers.rows.webhooks, &actor, &|_| {}).await?)
}

fn under_way() -> Problem {
    Kind::Conflict.because_both(
        "another replay of dead deliveries is under way in this process; the number of dead ones shows how far it is",
        "本进程正在执行另一次死投递的重放；死投递的数量显示其进度",
    )
}
