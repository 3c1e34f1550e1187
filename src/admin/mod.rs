//! The operators' HTTP server: health, metrics, and the admin API behind a bearer token. Never on the public port.

mod api;

use crate::config::{Secret, Settings};
use crate::health::Readiness;
use crate::p5_reconcile::Auditor;
use crate::roles::{Role, Servers};
use crate::runtime::Stopper;
use crate::telemetry;
use actix_web::dev::Server;
use actix_web::{App, HttpResponse, HttpServer, web};
use std::net::TcpListener;

/// Connections at once; operators and probes, not crowds.
const CONNECTIONS_MAX: usize = 256;

/// What the handlers share.
pub struct Admin {
    token: Secret,
    readiness: Readiness,
    servers: Servers,
    auditor: Auditor,
    roles: Vec<Role>,
    window_ms: u64,
}

impl Admin {
    /// The admin server of a process that runs `roles`.
    #[must_use]
    pub fn new(settings: &Settings, servers: &Servers, roles: &[Role]) -> Self {
        let Servers { redis, db, rabbit } = servers.clone();
        Self {
            token: settings.admin.token.clone(),
            readiness: Readiness::new(servers.clone(), roles.to_vec()),
            auditor: Auditor {
                db,
                redis,
                rabbit,
                shards: settings.redis.shards,
                findings_max: settings.p5_reconcile.findings_max,
            },
            servers: servers.clone(),
            roles: roles.to_vec(),
            window_ms: settings.p5_reconcile.window_ms,
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
    let handle = server.handle();
    tokio::spawn(async move {
        stopper.stopped().await;
        handle.stop(true).await;
    });
    Ok(server)
}

fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/livez", web::get().to(live))
        .route("/readyz", web::get().to(ready))
        .route("/metrics", web::get().to(metrics))
        .service(web::scope("/admin/v1").configure(api::routes));
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
