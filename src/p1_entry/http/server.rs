//! Starts the public HTTP server and routes its requests to the handlers.

use super::front::FrontFactory;
use super::state::PublicApi;
use super::{body, cors, draws, drops, entries, events, my_orders, openapi, orders, places, sales, tokens};
use crate::config;
use crate::http::extract::{as_problem, path_config};
use crate::http::language::Language;
use crate::http::problem::Kind;
use crate::http::request_id::RequestIdMiddleware;
use crate::http::{ExtraRoutes, HttpPort, PortSettings, connections_max, end_gracefully, serve_port, worker_count};
use crate::p2_reserve::answer_on_this_thread;
use crate::runtime::Stopper;
use actix_service::IntoServiceFactory;
use actix_web::dev::Server;
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::middleware::{ErrorHandlers, from_fn};
use actix_web::{App, HttpRequest, HttpResponse, web};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// The routes, for the server and for tests.
pub(crate) fn routes(config: &mut web::ServiceConfig) {
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
                .default_service(web::to(|request| method_not_allowed(request, "GET, POST")))
                .wrap(from_fn(body::ignored)),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/tokens")
                .route(web::post().to(tokens::issue))
                .default_service(web::to(|request| method_not_allowed(request, "POST")))
                .wrap(from_fn(body::ignored)),
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
        .configure(lines)
        .service(
            web::resource("/v1/drops/{drop_id}")
                .route(web::get().to(drops::show))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(
            web::resource("/v1/orders")
                .route(web::get().to(my_orders::list))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(
            web::resource("/v1/orders/{request_id}")
                .route(web::get().to(my_orders::show))
                .route(web::delete().to(my_orders::cancel))
                .default_service(web::to(|request| method_not_allowed(request, "GET, DELETE"))),
        )
        .service(web::resource("/openapi.json").route(web::get().to(openapi::json)))
        .default_service(web::to(no_such_route));
}

/// The routes of lines.
fn lines(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/sales/{sale_id}/entries")
                .route(web::post().to(entries::enter))
                .default_service(web::to(|request| method_not_allowed(request, "POST"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/entries/mine")
                .route(web::get().to(entries::mine))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/entries/{entry_id}")
                .route(web::delete().to(entries::leave))
                .default_service(web::to(|request| method_not_allowed(request, "DELETE"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/draw")
                .route(web::get().to(draws::show))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        )
        .service(
            web::resource("/v1/sales/{sale_id}/draw/entries")
                .route(web::get().to(draws::list))
                .default_service(web::to(|request| method_not_allowed(request, "GET"))),
        );
}

async fn no_such_route(request: HttpRequest) -> HttpResponse {
    Kind::NoSuchRoute
        .because(format!("{}; the routes are listed in /openapi.json", request.path()))
        .respond(Language::of(request.headers()))
}

async fn method_not_allowed(request: HttpRequest, allowed: &'static str) -> HttpResponse {
    let detail = format!("{} {}, expected {allowed}", request.method(), request.path());
    let mut answer = Kind::MethodNotAllowed.because(detail).respond(Language::of(request.headers()));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Starts serving on `listener`. The returned server runs when awaited and stops gracefully on `stopper`.
pub fn serve(
    public: Arc<PublicApi>,
    listener: TcpListener,
    settings: &config::Http,
    extra_routes: Vec<ExtraRoutes>,
    stopper: Stopper,
) -> std::io::Result<Server> {
    let public = web::Data::from(public);
    let origins = settings.cors_origins.clone();
    let port = PortSettings {
        port: HttpPort::Public,
        workers_count: worker_count(settings),
        connections_max: connections_max(settings),
        keep_alive: Duration::from_secs(settings.keep_alive_s),
        head_timeout: Duration::from_millis(settings.head_timeout_ms),
        write_timeout: Duration::from_secs(settings.write_timeout_s),
        body_bytes_max: settings.body_bytes_max,
        // Who closes is gone: its long poll or event stream makes room at once, not with the second heartbeat that it does not take.
        half_closed: false,
        shutdown_timeout: Duration::from_secs(5),
    };
    let server = serve_port(listener, port, move || {
        // Called once on each worker's thread.
        answer_on_this_thread();
        let app = App::new()
            .app_data(public.clone())
            .app_data(path_config())
            .wrap(ErrorHandlers::new().default_handler(as_problem))
            .wrap(cors::for_pages_of(&origins))
            .wrap(RequestIdMiddleware)
            .configure(|config| {
                for routes in &extra_routes {
                    routes(config);
                }
            })
            .configure(routes);
        // Without origins there is no CORS middleware to pass.
        FrontFactory::new(app.into_factory(), origins.is_empty().then(|| public.clone()))
    })?;
    Ok(end_gracefully(server, stopper))
}
