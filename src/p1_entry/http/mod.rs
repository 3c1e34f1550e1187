//! The public HTTP server; the contract is `openapi.rs`. Handlers translate between HTTP and the entry; they decide nothing.

mod body;
mod cors;
mod events;
mod headers;
mod openapi;
mod orders;
mod places;
mod sales;
mod tokens;

pub use openapi::document;

use super::auth::Authenticator;
use super::orders::Orders;
use super::status::Statuses;
use crate::config;
use crate::http::problem::{Kind, Problem};
use crate::http::request_id::RequestIdMiddleware;
use crate::http::{end_gracefully, worker_count};
use crate::p2_reserve::answer_on_this_thread;
use crate::runtime::Stopper;
use crate::store::mysql::Db;
use actix_web::dev::{Server, ServiceResponse};
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::middleware::{ErrorHandlerResponse, ErrorHandlers};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// What the handlers share.
pub struct Public {
    /// Access tokens.
    pub auth: Authenticator,
    /// Buying.
    pub orders: Orders,
    /// Asking.
    pub statuses: Statuses,
    /// The list of sales.
    pub sales: sales::SaleList,
    /// Longest body, bytes.
    pub body_bytes_max: usize,
    /// Time for a body to arrive.
    pub body_timeout: Duration,
    /// Most units in one request.
    pub quantity_max: u32,
}

impl Public {
    /// Puts the parts together.
    #[must_use]
    pub fn new(settings: &config::Settings, auth: Authenticator, orders: Orders, statuses: Statuses, db: Db) -> Self {
        Self {
            auth,
            orders,
            statuses,
            sales: sales::SaleList::new(db),
            body_bytes_max: settings.http.body_bytes_max,
            body_timeout: Duration::from_millis(settings.http.body_timeout_ms),
            quantity_max: settings.p1_entry.quantity_max,
        }
    }
}

/// The routes, for the server and for tests.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        // Patterns are tried in this order, so what a crowd sends stands first.
        .service(
            web::resource("/v1/sales/{sale_id}/orders")
                .route(web::post().to(orders::buy))
                .default_service(web::to(|request| method_not_allowed(request, "POST"))),
        )
        .service(
            web::resource("/v1/sales")
                .route(web::get().to(sales::list))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}")
                .route(web::get().to(sales::show))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/places")
                .route(web::post().to(places::enter))
                .route(web::get().to(places::show))
                .default_service(web::to(|request| method_not_allowed(request, "GET, POST"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/tokens")
                .route(web::post().to(tokens::issue))
                .default_service(web::to(|request| method_not_allowed(request, "POST"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/orders/{request_id}")
                .route(web::get().to(orders::show))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/orders/{request_id}/events")
                .route(web::get().to(events::follow))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(web::resource("/openapi.json").route(web::get().to(openapi::json)))
        .default_service(web::to(no_such_route));
}

async fn no_such_route(request: HttpRequest) -> HttpResponse {
    Kind::NoSuchRoute.because(format!("{}; the routes are listed in /openapi.json", request.path())).respond(&request)
}

async fn method_not_allowed(request: HttpRequest, allowed: &'static str) -> HttpResponse {
    let detail = format!("{} {}, expected {allowed}", request.method(), request.path());
    let mut answer = Kind::MethodNotAllowed.because(detail).respond(&request);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Routes beside the contract: the page that shows it, the demo shop of a local stack.
pub type Beside = Arc<dyn Fn(&mut web::ServiceConfig) + Send + Sync>;

/// Starts serving on `listener`. The returned server runs when awaited and stops gracefully on `stopper`.
///
/// # Errors
/// The listener's own error.
pub fn serve(
    public: Arc<Public>,
    listener: TcpListener,
    settings: &config::Http,
    beside: Vec<Beside>,
    stopper: Stopper,
) -> std::io::Result<Server> {
    let public = web::Data::from(public);
    let origins = settings.cors_origins.clone();
    let server = HttpServer::new(move || {
        // Called once on each worker's thread.
        answer_on_this_thread();
        App::new()
            .app_data(public.clone())
            .wrap(ErrorHandlers::new().default_handler_client(as_problem))
            .wrap(cors::for_pages_of(&origins))
            .wrap(RequestIdMiddleware)
            .configure(|config| {
                for routes in &beside {
                    routes(config);
                }
            })
            .configure(routes)
    })
    .workers(worker_count(settings))
    .client_request_timeout(Duration::from_millis(settings.head_timeout_ms))
    .keep_alive(Duration::from_secs(settings.keep_alive_s))
    .max_connections(settings.connections_max)
    .shutdown_timeout(5)
    .disable_signals()
    .listen(listener)?
    .run();
    Ok(end_gracefully(server, stopper))
}

/// Errors that actix makes by itself (a path that does not decode, a header it refuses) become problem answers too.
fn as_problem<B>(answer: ServiceResponse<B>) -> actix_web::Result<ErrorHandlerResponse<B>> {
    let is_problem = answer
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/problem+json"));
    if is_problem {
        return Ok(ErrorHandlerResponse::Response(answer.map_into_left_body()));
    }
    let kind = match answer.status().as_u16() {
        404 => Kind::NoSuchRoute,
        405 => Kind::MethodNotAllowed,
        408 => Kind::RequestTimeout,
        413 => Kind::BodyTooLarge,
        415 => Kind::WrongMediaType,
        _ => Kind::BadRequest,
    };
    let (request, _) = answer.into_parts();
    let response = Problem::from(kind).respond(&request);
    Ok(ErrorHandlerResponse::Response(ServiceResponse::new(request, response).map_into_right_body()))
}
