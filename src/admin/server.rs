//! The operators' HTTP server, and the token that the admin API needs.

use super::denied::record_denied;
use super::json_api::{BODY_BYTES_MAX, query_config};
use super::openapi;
use super::routes::api_routes;
use super::state::{Admin, CALLS_MAX};
use crate::http::extract::{as_problem, path_config};
use crate::http::language::Language;
use crate::http::problem::{Kind, Problem, RETRY_LATER_S};
use crate::http::{HttpPort, PortSettings, end_gracefully, serve_port};
use crate::runtime::Stopper;
use crate::{console, telemetry};
use actix_service::IntoServiceFactory;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::{ErrorHandlers, Next, from_fn};
use actix_web::{App, HttpRequest, HttpResponse, rt, web};
use std::net::TcpListener;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Connections at once. Far more than calls, so that probes and `/metrics` get in beside those that say nothing.
const CONNECTIONS_MAX: usize = 1_024;
/// How long an idle connection is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Longest time for a head: half heads keep probes waiting no longer than a probe waits.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time in which a client takes nothing of its answers.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts serving on `listener`; stops on `stopper`.
pub fn serve(admin: Admin, listener: TcpListener, stopper: Stopper) -> std::io::Result<Server> {
    let (admin, document) = (web::Data::new(admin), web::Data::new(openapi::document()));
    let port = PortSettings {
        port: HttpPort::Admin,
        workers_count: 1,
        connections_max: CONNECTIONS_MAX,
        keep_alive: KEEP_ALIVE,
        head_timeout: HEAD_TIMEOUT,
        write_timeout: WRITE_TIMEOUT,
        body_bytes_max: BODY_BYTES_MAX,
        half_closed: true,
        shutdown_timeout: Duration::from_secs(1),
    };
    let server = serve_port(listener, port, move || {
        App::new().app_data(admin.clone()).app_data(document.clone()).configure(routes).into_factory()
    })?;
    Ok(end_gracefully(server, stopper))
}

fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/livez", web::get().to(live))
        .route("/readyz", web::get().to(ready))
        .route("/metrics", web::get().to(metrics))
        .service(scope())
        .configure(console::routes);
}

async fn live() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body("ok\n")
}

async fn ready(admin: web::Data<Admin>) -> HttpResponse {
    let (probes, draining) = (admin.readiness.needs(), admin.readiness.is_draining());
    // Of the oldest result; none before the first probe has ended.
    let age_ms = probes.iter().filter_map(|probe| probe.age_ms).max();
    let ok = !draining && !probes.iter().any(|probe| probe.holds_back);
    let roles: Vec<&str> = admin.roles.iter().map(|role| role.name()).collect();
    let away = probes.iter().filter(|probe| !probe.ok && !probe.holds_back);
    let away: Vec<String> = away
        .map(|probe| format!("{}: {}", probe.name, probe.problem.as_deref().unwrap_or("it does not answer")))
        .collect();
    let body = serde_json::json!({
        "ready": ok, "draining": draining, "roles": roles, "warnings": away, "age_ms": age_ms, "needs": probes
    });
    if ok { HttpResponse::Ok().json(body) } else { HttpResponse::ServiceUnavailable().json(body) }
}

async fn metrics() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(telemetry::render())
}

/// The admin API, behind the token.
fn scope() -> impl actix_web::dev::HttpServiceFactory {
    web::scope("/admin/v1")
        .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
        .app_data(path_config())
        .app_data(query_config())
        .wrap(ErrorHandlers::new().default_handler(as_problem))
        .wrap(from_fn(guard))
        .configure(api_routes)
        .default_service(web::to(no_such_route))
}

async fn no_such_route(request: HttpRequest) -> HttpResponse {
    let call = format!("{} {}", request.method(), request.path());
    let english = format!("{call}; the routes are listed in /admin/v1/openapi.json");
    let chinese = format!("{call}；可用的路径见 /admin/v1/openapi.json");
    Kind::NoSuchRoute.because_both(english, chinese).respond(Language::of(request.headers()))
}

async fn guard(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let Some(admin) = request.app_data::<web::Data<Admin>>().cloned() else {
        return Err(Problem::from(Kind::Internal).into());
    };
    let refused = match admin.sign_in.check(&request) {
        Err(problem) => problem.respond(Language::of(request.headers())),
        // One spelling for each route. An id of any kind has no letter that needs another one.
        Ok(()) if request.uri().path().contains('%') => no_such_route(request.request().clone()).await,
        Ok(()) => match admin.calls.clone().try_acquire_owned() {
            Err(_) => too_many().respond(Language::of(request.headers())),
            Ok(place) => {
                let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
                let answering = answered(admin, place, next.call(request));
                if only_reads {
                    return answering.await;
                }
                // A client that goes stops no change half-way, and no act before it is on record.
                return rt::spawn(answering).await.unwrap_or_else(|_died| Err(Problem::from(Kind::Internal).into()));
            }
        },
    };
    Ok(request.into_response(refused).map_into_right_body())
}

/// The answer to a call that has a place; one that its role does not allow is on record first.
async fn answered<B: MessageBody + 'static>(
    admin: web::Data<Admin>,
    _place: OwnedSemaphorePermit,
    answering: impl Future<Output = Result<ServiceResponse<B>, actix_web::Error>>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let answer = answering.await?;
    match record_denied(&admin, answer.request()).await {
        Ok(()) => Ok(answer.map_into_left_body()),
        Err(problem) => {
            let unrecorded = problem.respond(Language::of(answer.request().headers()));
            Ok(answer.into_response(unrecorded).map_into_right_body())
        }
    }
}

fn too_many() -> Problem {
    let english = format!("{CALLS_MAX} calls are under way in this process; wait for some of them");
    let problem = Kind::RateLimited.because_both(english, format!("本进程已有 {CALLS_MAX} 个调用在进行，请稍候"));
    problem.retry_within_s(RETRY_LATER_S)
}
