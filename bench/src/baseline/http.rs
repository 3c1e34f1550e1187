//! For the benchmark: the least an Actix server can do for an authenticated request. The same check of the access token, the same
//! number of workers, an answer of the same size, and nothing behind it.

use actix_web::dev::Server;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use futures::StreamExt;
use seckill::config;
use seckill::domain::ids::UserId;
use seckill::http::{end_gracefully, worker_count};
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::runtime::Stopper;
use std::net::TcpListener;
use std::time::Duration;

/// About what a refusal of the real API is.
const GONE: &str = r#"{"type":"about:blank","title":"Sold out","status":410,"detail":"everything is sold","code":"P1-S2","sale_id":"bench"}"#;

/// The buyer of a request that was read to its end; `None` without a valid access token.
pub(super) async fn buyer(auth: &Authenticator, request: &HttpRequest, mut body: web::Payload) -> Option<UserId> {
    // Read and dropped chunk by chunk: gathering it would cost an allocation that a purchase does not need.
    while let Some(Ok(_chunk)) = body.next().await {}
    let token = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    token.and_then(|token| token.strip_prefix("Bearer ")).and_then(|token| auth.check(token).ok())
}

/// The answer to a buyer who gets nothing.
pub(super) fn gone() -> HttpResponse {
    HttpResponse::Gone().content_type("application/problem+json").body(GONE)
}

async fn refuse(auth: web::Data<Authenticator>, request: HttpRequest, body: web::Payload) -> HttpResponse {
    match buyer(&auth, &request, body).await {
        Some(_buyer) => gone(),
        None => HttpResponse::Unauthorized().finish(),
    }
}

/// Answers 410 to every request with a valid access token, on every path, until `stopper` is pulled.
///
/// # Errors
/// The listener's own error.
pub fn serve(
    auth: Authenticator,
    listener: TcpListener,
    settings: &config::Http,
    stopper: Stopper,
) -> std::io::Result<Server> {
    let auth = web::Data::new(auth);
    let routes = move |services: &mut web::ServiceConfig| {
        services.app_data(auth.clone()).default_service(web::to(refuse));
    };
    server(listener, settings, stopper, routes)
}

/// A server with the settings of the public port; each worker calls `routes` once.
pub(super) fn server(
    listener: TcpListener,
    settings: &config::Http,
    stopper: Stopper,
    routes: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> std::io::Result<Server> {
    let server = HttpServer::new(move || App::new().configure(&routes))
        .workers(worker_count(settings))
        .client_request_timeout(Duration::from_millis(settings.head_timeout_ms))
        .keep_alive(Duration::from_secs(settings.keep_alive_s))
        .max_connections(settings.connections_max)
        .shutdown_timeout(1)
        .disable_signals()
        .listen(listener)?
        .run();
    Ok(end_gracefully(server, stopper))
}
