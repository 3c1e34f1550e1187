//! The routes of the admin API, below `/admin/v1`, each with the role that its handler takes. A method that a route does not have is
//! refused with those that it has.
//!
//! The table is the only way in: a route is made of a handler whose first argument is a judged call, so one without a role does not
//! compile. The document gets its `x-role` from the same table.

use super::calls::{CallFirst, Needed};
use super::{
    acts, audits, blocks, dlq, drops, failed_requests, forget, lines, order_export, order_steps, orders, passes,
    pipeline, process, refunds, sale_changes, sale_creation, sales, units, webhooks,
};
use crate::http::language::Language;
use crate::http::problem::Kind;
use actix_web::http::Method;
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, Route, web};

/// A handler with its method and the role that it takes.
pub(super) struct JudgedRoute {
    pub(super) method: Method,
    pub(super) needed: Needed,
    route: Route,
}

fn judged<H, A>(method: Method, handler: H) -> JudgedRoute
where
    H: Handler<A>,
    A: FromRequest + CallFirst + 'static,
    H::Output: Responder + 'static,
{
    JudgedRoute { needed: A::NEEDED, route: web::method(method.clone()).to(handler), method }
}

fn get<H, A>(handler: H) -> JudgedRoute
where
    H: Handler<A>,
    A: FromRequest + CallFirst + 'static,
    H::Output: Responder + 'static,
{
    const { assert!(matches!(A::NEEDED, Needed::View), "a GET changes nothing: its handler takes a ViewCall") };
    judged(Method::GET, handler)
}

fn post<H, A>(handler: H) -> JudgedRoute
where
    H: Handler<A>,
    A: FromRequest + CallFirst + 'static,
    H::Output: Responder + 'static,
{
    const { assert!(!matches!(A::NEEDED, Needed::View), "a POST changes something: its handler takes another call") };
    judged(Method::POST, handler)
}

/// Every path with its routes.
pub(super) fn table() -> Vec<(&'static str, Vec<JudgedRoute>)> {
    vec![
        ("/sales", vec![get(sales::list), post(sale_creation::create)]),
        ("/sales/{sale_id}", vec![get(sales::show)]),
        ("/sales/{sale_id}/warm", vec![post(sales::warm)]),
        ("/sales/{sale_id}/pause", vec![post(sales::pause)]),
        ("/sales/{sale_id}/resume", vec![post(sales::resume)]),
        ("/sales/{sale_id}/edit", vec![post(sale_changes::edit)]),
        ("/sales/{sale_id}/reschedule", vec![post(sale_changes::reschedule)]),
        ("/sales/{sale_id}/hide", vec![post(sale_changes::hide)]),
        ("/sales/{sale_id}/publish", vec![post(sale_changes::publish)]),
        ("/sales/{sale_id}/clone", vec![post(sale_changes::clone_sale)]),
        ("/sales/{sale_id}/top-up", vec![post(sales::top_up)]),
        ("/sales/{sale_id}/withdraw", vec![post(units::withdraw)]),
        ("/sales/{sale_id}/reclaim", vec![post(sales::reclaim)]),
        ("/sales/{sale_id}/rebuild", vec![post(sales::rebuild)]),
        ("/sales/{sale_id}/close", vec![post(sales::close)]),
        ("/sales/{sale_id}/audit", vec![get(audits::audit)]),
        ("/sales/{sale_id}/line", vec![get(lines::show)]),
        ("/sales/{sale_id}/line/entries", vec![get(lines::entries)]),
        ("/sales/{sale_id}/line/list", vec![get(lines::list)]),
        ("/sales/{sale_id}/line/draw", vec![post(lines::draw)]),
        ("/drops", vec![get(drops::list), post(drops::create)]),
        ("/drops/{drop_id}", vec![get(drops::show)]),
        ("/drops/{drop_id}/edit", vec![post(drops::edit)]),
        ("/drops/{drop_id}/warm", vec![post(drops::warm)]),
        ("/drops/{drop_id}/pause", vec![post(drops::pause)]),
        ("/drops/{drop_id}/resume", vec![post(drops::resume)]),
        ("/drops/{drop_id}/hide", vec![post(drops::hide)]),
        ("/drops/{drop_id}/publish", vec![post(drops::publish)]),
        ("/drops/{drop_id}/move", vec![post(units::move_units)]),
        ("/drops/{drop_id}/close", vec![post(drops::close)]),
        ("/orders", vec![get(orders::find)]),
        ("/orders/export", vec![get(order_export::export)]),
        ("/orders/{request_id}", vec![get(orders::show)]),
        ("/orders/{request_id}/paid", vec![post(order_steps::paid)]),
        ("/orders/{request_id}/paying", vec![post(order_steps::paying)]),
        ("/orders/{request_id}/cancel", vec![post(order_steps::cancel)]),
        ("/orders/{request_id}/refunded", vec![post(order_steps::refunded)]),
        ("/refunds", vec![get(refunds::list)]),
        ("/audits", vec![get(audits::runs)]),
        ("/acts", vec![get(acts::list)]),
        ("/blocks", vec![get(blocks::list), post(blocks::add)]),
        ("/blocks/remove", vec![post(blocks::remove)]),
        ("/buyers/forget", vec![post(forget::forget)]),
        ("/passes", vec![post(passes::issue)]),
        ("/dlq", vec![get(dlq::list)]),
        ("/dlq/replay", vec![post(dlq::replay)]),
        ("/dlq/give-up", vec![post(dlq::give_up)]),
        ("/webhooks", vec![get(webhooks::overview)]),
        ("/webhooks/deliveries", vec![get(webhooks::list)]),
        ("/webhooks/deliveries/{delivery_id}", vec![get(webhooks::show)]),
        ("/webhooks/replay", vec![post(webhooks::replay)]),
        ("/register", vec![get(failed_requests::list)]),
        ("/pipeline", vec![get(pipeline::pipeline)]),
        ("/openapi.json", vec![get(process::document)]),
        ("/whoami", vec![get(process::whoami)]),
    ]
}

pub(super) fn api_routes(config: &mut web::ServiceConfig) {
    for (path, routes) in table() {
        config.service(one(path, routes));
    }
}

fn one(path: &str, routes: Vec<JudgedRoute>) -> Resource {
    let methods: Vec<String> = routes.iter().map(|judged| judged.method.to_string()).collect();
    let allowed = methods.join(", ");
    let resource = routes.into_iter().map(|judged| judged.route).fold(web::resource(path), Resource::route);
    resource.default_service(web::to(move |request: HttpRequest| method_not_allowed(request, allowed.clone())))
}

async fn method_not_allowed(request: HttpRequest, allowed: String) -> HttpResponse {
    let call = format!("{} {}", request.method(), request.path());
    let (english, chinese) = (format!("{call}, expected {allowed}"), format!("{call}，应为 {allowed}"));
    let mut answer = Kind::MethodNotAllowed.because_both(english, chinese).respond(Language::of(request.headers()));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        answer.headers_mut().insert(ALLOW, allowed);
    }
    answer
}
