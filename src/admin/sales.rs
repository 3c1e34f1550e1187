//! Sales: list, show, and everything an operator does to one. `SaleControl` does the work, as for the command line.

use super::calls::{OperateCall, ViewCall};
use super::json_api::{AdminAnswer, JsonBody, ReadProblems, SaleReadProblems, WriteProblems, answer};
use super::sale_write::{OperatorBody, SaleWrite};
use super::state::Admin;
use crate::domain::grant_names::NAME_BYTES_MAX;
use crate::domain::operator::Operation;
use crate::domain::sale::Sale;
use crate::http::extract::SaleInPath;
use crate::http::problem::{Kind, Problem};
use crate::sales::rows::grants::Reclaimed;
use crate::sales::{SaleAct, SaleDetail};
use actix_web::web;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// Sales as the database knows them.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct SaleList {
    /// Newest first.
    #[schema(value_type = Vec<Sale>)]
    sales: Arc<Vec<Sale>>,
}

/// What a reclaim offers again.
#[derive(Serialize, utoipa::ToSchema)]
struct ReclaimedUnits {
    /// Name of the new grant.
    grant: String,
    /// Failed requests whose units it has.
    requests: usize,
    units: i64,
}

/// A sale after a reclaim.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ReclaimDone {
    #[serde(flatten)]
    sale: SaleDetail,
    /// What this call offers again; null where there was nothing.
    reclaimed: Option<ReclaimedUnits>,
}

/// List the newest sales.
#[utoipa::path(
    get, path = "/admin/v1/sales", operation_id = "list_sales", tag = "sales",
    responses((status = 200, description = "Sales", body = SaleList), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>) -> AdminAnswer {
    let sales = admin.sales.try_get(async { admin.servers.rows.sales.list().await.map_err(Problem::from) }).await?;
    answer(SaleList { sales })
}

/// Show one sale, with what Redis holds of it.
#[utoipa::path(
    get, path = "/admin/v1/sales/{sale_id}", operation_id = "show_sale", tag = "sales",
    params(SaleInPath),
    responses((status = 200, description = "The sale", body = SaleDetail), SaleReadProblems)
)]
pub(super) async fn show(_call: ViewCall, admin: web::Data<Admin>, sale: web::Path<SaleInPath>) -> AdminAnswer {
    answer(admin.sale_control.detail(&sale.sale_id).await?)
}

/// Put a sale's stock into Redis and open it.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/warm", operation_id = "warm_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn warm(write: SaleWrite) -> AdminAnswer {
    write.on_record(Operation::SaleWarm, "warmed", write.control().warm(write.sale_id())).await?;
    write.sale().await
}

/// Stop selling; can be resumed.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/pause", operation_id = "pause_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn pause(write: SaleWrite) -> AdminAnswer {
    write.on_record(Operation::SalePause, "paused", write.control().pause(write.sale_id())).await?;
    write.sale().await
}

/// Go on selling.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/resume", operation_id = "resume_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn resume(write: SaleWrite) -> AdminAnswer {
    write.on_record(Operation::SaleResume, "resumed", write.control().resume(write.sale_id())).await?;
    write.sale().await
}

/// End a sale for good.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/close", operation_id = "close_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn close(write: SaleWrite) -> AdminAnswer {
    write.on_record(Operation::SaleClose, "closed", write.control().close(write.sale_id())).await?;
    write.sale().await
}

/// Freeze a sale; the reconciler rebuilds what Redis holds of it.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/rebuild", operation_id = "rebuild_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn rebuild(write: SaleWrite) -> AdminAnswer {
    write.on_record(Operation::SaleRebuild, "frozen", write.control().freeze(write.sale_id())).await?;
    write.sale().await
}

/// Sell the units of final failures and of written-off gaps again, once each.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/reclaim", operation_id = "reclaim_sale", tag = "sales",
    params(SaleInPath), request_body = OperatorBody,
    responses(
        (status = 200, description = "The sale; in `reclaimed` the units that this call offers again, null when there were \
            none", body = ReclaimDone),
        WriteProblems,
    )
)]
pub(super) async fn reclaim(write: SaleWrite) -> AdminAnswer {
    let made = write.on_record(Operation::SaleReclaim, "reclaimed", write.control().reclaim(write.sale_id())).await?;
    let units = |made: Reclaimed| ReclaimedUnits { grant: made.grant_id, requests: made.requests, units: made.units };
    answer(ReclaimDone { sale: write.control().detail(write.sale_id()).await?, reclaimed: made.map(units) })
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TopUpBody {
    #[schema(minimum = 1)]
    units: u32,
    /// Name of this grant, at most 64 bytes of UTF-8: a repeated call with the same name adds nothing. Required, because a browser may
    /// repeat a call.
    #[schema(min_length = 1, max_length = 64)]
    grant: String,
    /// The operator, for the record.
    by: Option<String>,
}

/// Add units, once for each name of a grant.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/top-up", operation_id = "top_up_sale", tag = "sales",
    params(SaleInPath),
    request_body = TopUpBody, responses((status = 200, description = "The sale", body = SaleDetail), WriteProblems)
)]
pub(super) async fn top_up(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<TopUpBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    let (TopUpBody { units, grant, by }, id) = (body, &path.sale_id);
    if units == 0 {
        return Err(
            Kind::Unprocessable.because_both("units: expected a whole number from 1", "units：应为从 1 起的整数")
        );
    }
    if grant.trim().is_empty() || grant.len() > NAME_BYTES_MAX {
        let bytes = grant.len();
        return Err(Kind::Unprocessable.because_both(
            format!("grant: has {bytes} bytes, expected 1 to {NAME_BYTES_MAX} (of UTF-8, e.g. 21 Chinese characters)"),
            format!("grant：有 {bytes} 字节，应为 1 至 {NAME_BYTES_MAX} 字节（UTF-8，例如 21 个汉字）"),
        ));
    }
    let (sale_control, actor) = (&admin.sale_control, call.actor(by.as_deref())?);
    let asked = json!({ "units": units, "grant": grant });
    let act = SaleAct { actor: &actor, operation: Operation::SaleTopUp, sale_id: id, asked };
    sale_control.on_record(act, sale_control.top_up(id, &grant, units)).await?;
    admin.changed(id, "topped up").await;
    answer(sale_control.detail(id).await?)
}
