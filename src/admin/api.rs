//! `/admin/v1`: sales, audits and the pipeline for operators and the console.

use super::Admin;
use crate::domain::ids::SaleId;
use crate::p1_entry::problem::{Kind, Problem};
use crate::p5_reconcile::Window;
use crate::store::mysql::{DbError, sales};
use crate::store::rabbit::queue_depths;
use actix_web::{HttpRequest, HttpResponse, web};
use subtle::ConstantTimeEq;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/sales", web::get().to(list_sales))
        .route("/sales/{sale_id}/audit", web::get().to(audit))
        .route("/pipeline", web::get().to(pipeline));
}

fn allowed(admin: &Admin, request: &HttpRequest) -> Result<(), Problem> {
    let token = admin.token.expose();
    let given = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("");
    let given = given.strip_prefix("Bearer ").unwrap_or("");
    // In constant time: the answer must not tell how much of a guess was right.
    if !token.is_empty() && bool::from(given.as_bytes().ct_eq(token.as_bytes())) {
        return Ok(());
    }
    Err(Kind::Unauthorized.because("the admin API needs: Authorization: Bearer <admin.token>"))
}

fn broken(error: &DbError) -> Problem {
    Kind::Unavailable.because(error.to_string())
}

async fn list_sales(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let work = async {
        allowed(&admin, &request)?;
        sales::list(&admin.servers.db).await.map_err(|error| broken(&error))
    };
    match work.await {
        Ok(sales) => HttpResponse::Ok().json(serde_json::json!({ "sales": sales })),
        Err(problem) => problem.respond(&request),
    }
}

async fn audit(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>) -> HttpResponse {
    let work = async {
        allowed(&admin, &request)?;
        let id = SaleId::parse(&path).map_err(|error| Kind::BadRequest.because(error.to_string()))?;
        let sale = sales::get(&admin.servers.db, &id).await.map_err(|error| broken(&error))?;
        let sale = sale.ok_or_else(|| Kind::SaleNotFound.because(format!("there is no sale {id}")))?;
        let audited = admin.auditor.audit(&sale, Window::Ms(admin.window_ms)).await;
        audited.map_err(|error| Kind::Unavailable.because(error.to_string()))
    };
    match work.await {
        Ok(audit) => HttpResponse::Ok().json(serde_json::json!({ "consistent": audit.consistent(), "audit": audit })),
        Err(problem) => problem.respond(&request),
    }
}

async fn pipeline(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    if let Err(problem) = allowed(&admin, &request) {
        return problem.respond(&request);
    }
    let mut outbox = Vec::new();
    for shard in 0..admin.auditor.shards {
        let depth = admin.servers.redis.outbox_depth(shard).await.ok();
        let parked = admin.servers.redis.parked_count(shard).await.ok();
        outbox.push(serde_json::json!({
            "shard": shard,
            "outbox": depth.map(|(length, _)| length),
            "pending": depth.map(|(_, pending)| pending),
            "relay_dlq": parked,
        }));
    }
    let queues = queue_depths(&admin.servers.rabbit).await.map(|depths| {
        let rows =
            depths.iter().map(|d| serde_json::json!({ "queue": d.queue, "ready": d.ready, "consumers": d.consumers }));
        rows.collect::<Vec<_>>()
    });
    HttpResponse::Ok().json(serde_json::json!({ "shards": outbox, "queues": queues.ok() }))
}
