//! The operators' HTTP server: health, metrics, the console, and the admin API behind a bearer token. Never on the public
//! port.
//!
//! However many screens are open, each server is asked at most once a second for all of them ([`cached`]).

mod acts;
mod api;
mod audits;
mod cached;
mod dlq;
mod flows;
mod openapi;
mod pipeline;
mod readiness;
mod register;
mod sales;

pub use openapi::{ROUTES, document};
pub use readiness::{Readiness, ServerProbe};

use crate::config::{Secret, Settings};
use crate::console;
use crate::domain::sale::Sale;
use crate::http::end_gracefully;
use crate::p5_reconcile::dlq::DlqListing;
use crate::p5_reconcile::{MQ_DLQ_MAX, ReconcileContext};
use crate::roles::{Role, Servers};
use crate::runtime::Stopper;
use crate::store::rabbit::QueueDepth;
use crate::telemetry;
use actix_web::dev::Server;
use actix_web::{App, HttpResponse, HttpServer, web};
use cached::Cached;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Connections at once; operators and probes, not crowds.
const CONNECTIONS_MAX: usize = 256;
/// The picture of the pipeline and the list of sales are this fresh, milliseconds.
const PICTURE_MS: u64 = 1_000;
/// What the broker says is this fresh: asking takes a connection.
const QUEUES_MS: u64 = 1_500;
/// What is parked is this fresh: looking holds the messages for a moment.
const PARKED_MS: u64 = 3_000;

/// What the handlers share.
pub struct Admin {
    token: Secret,
    readiness: Readiness,
    servers: Servers,
    context: ReconcileContext,
    roles: Vec<Role>,
    window_ms: u64,
    backlog_max: u64,
    sales: Cached<Vec<Sale>>,
    snapshot: Cached<pipeline::Snapshot>,
    queues: Cached<Result<Vec<QueueDepth>, String>>,
    parked: Cached<DlqListing>,
    /// Held while a replay or give-up is under way.
    acting: Arc<Mutex<()>>,
}

impl Admin {
    /// The admin server of a process that runs `roles`.
    #[must_use]
    pub fn new(settings: &Settings, servers: &Servers, roles: &[Role]) -> Self {
        let Servers { redis, db, rabbit } = servers.clone();
        Self {
            token: settings.admin.token.clone(),
            readiness: Readiness::new(servers.clone(), roles.to_vec()),
            context: ReconcileContext {
                db,
                redis,
                rabbit,
                shards: settings.redis.shards,
                findings_max: settings.p5_reconcile.findings_max,
                mq_dlq_max: MQ_DLQ_MAX,
            },
            servers: servers.clone(),
            roles: roles.to_vec(),
            window_ms: settings.p5_reconcile.window_ms,
            backlog_max: settings.p1_entry.backlog_max,
            sales: Cached::new(PICTURE_MS),
            snapshot: Cached::new(PICTURE_MS),
            queues: Cached::new(QUEUES_MS),
            parked: Cached::new(PARKED_MS),
            acting: Arc::default(),
        }
    }
}

/// Starts serving on `listener`; stops on `stopper`.
///
/// # Errors
/// The listener's own error.
pub fn serve(admin: Admin, listener: TcpListener, stopper: Stopper) -> std::io::Result<Server> {
    let admin = web::Data::new(admin);
    let server = HttpServer::new(move || App::new().app_data(admin.clone()).configure(routes))
        .workers(1)
        .max_connections(CONNECTIONS_MAX)
        .shutdown_timeout(1)
        .disable_signals()
        .listen(listener)?
        .run();
    Ok(end_gracefully(server, stopper))
}

fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/livez", web::get().to(live))
        .route("/readyz", web::get().to(ready))
        .route("/metrics", web::get().to(metrics))
        .service(api::scope())
        .configure(console::routes);
}

async fn live() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body("ok\n")
}

async fn ready(admin: web::Data<Admin>) -> HttpResponse {
    let probes = admin.readiness.probe().await;
    let ok = probes.iter().all(|probe| probe.ok);
    let roles: Vec<&str> = admin.roles.iter().map(|role| role.name()).collect();
    let body = serde_json::json!({ "ready": ok, "roles": roles, "needs": probes });
    if ok { HttpResponse::Ok().json(body) } else { HttpResponse::ServiceUnavailable().json(body) }
}

async fn metrics() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(telemetry::render())
}
