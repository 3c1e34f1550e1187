//! The routes of the admin API, below `/admin/v1`. A method that a route does not have is refused with those that it has.

use super::{
    acts, audits, dlq, failed_requests, openapi, order_export, order_steps, orders, pipeline, refunds, sale_changes,
    sale_creation, sales, webhooks,
};
use crate::http::language::Language;
use crate::http::problem::Kind;
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, Resource, Route, web};

pub(super) fn api_routes(config: &mut web::ServiceConfig) {
    config
        .service(one("/sales", "GET, POST", [web::get().to(sales::list), web::post().to(sale_creation::create)]))
        .service(one("/sales/{sale_id}", "GET", [web::get().to(sales::show)]))
        .service(one("/sales/{sale_id}/warm", "POST", [web::post().to(sales::warm)]))
        .service(one("/sales/{sale_id}/pause", "POST", [web::post().to(sales::pause)]))
        .service(one("/sales/{sale_id}/resume", "POST", [web::post().to(sales::resume)]))
        .service(one("/sales/{sale_id}/edit", "POST", [web::post().to(sale_changes::edit)]))
        .service(one("/sales/{sale_id}/reschedule", "POST", [web::post().to(sale_changes::reschedule)]))
        .service(one("/sales/{sale_id}/hide", "POST", [web::post().to(sale_changes::hide)]))
        .service(one("/sales/{sale_id}/publish", "POST", [web::post().to(sale_changes::publish)]))
        .service(one("/sales/{sale_id}/clone", "POST", [web::post().to(sale_changes::clone_sale)]))
        .service(one("/sales/{sale_id}/top-up", "POST", [web::post().to(sales::top_up)]))
        .service(one("/sales/{sale_id}/reclaim", "POST", [web::post().to(sales::reclaim)]))
        .service(one("/sales/{sale_id}/rebuild", "POST", [web::post().to(sales::rebuild)]))
        .service(one("/sales/{sale_id}/close", "POST", [web::post().to(sales::close)]))
        .service(one("/sales/{sale_id}/audit", "GET", [web::get().to(audits::audit)]))
        .service(one("/orders", "GET", [web::get().to(orders::find)]))
        .service(one("/orders/export", "GET", [web::get().to(order_export::export)]))
        .service(one("/orders/{request_id}", "GET", [web::get().to(orders::show)]))
        .service(one("/orders/{request_id}/paid", "POST", [web::post().to(order_steps::paid)]))
        .service(one("/orders/{request_id}/paying", "POST", [web::post().to(order_steps::paying)]))
        .service(one("/orders/{request_id}/cancel", "POST", [web::post().to(order_steps::cancel)]))
        .service(one("/orders/{request_id}/refunded", "POST", [web::post().to(order_steps::refunded)]))
        .service(one("/refunds", "GET", [web::get().to(refunds::list)]))
        .service(one("/audits", "GET", [web::get().to(audits::runs)]))
        .service(one("/acts", "GET", [web::get().to(acts::list)]))
        .service(one("/dlq", "GET", [web::get().to(dlq::list)]))
        .service(one("/dlq/replay", "POST", [web::post().to(dlq::replay)]))
        .service(one("/dlq/give-up", "POST", [web::post().to(dlq::give_up)]))
        .service(one("/webhooks", "GET", [web::get().to(webhooks::overview)]))
        .service(one("/webhooks/deliveries", "GET", [web::get().to(webhooks::list)]))
        .service(one("/webhooks/deliveries/{delivery_id}", "GET", [web::get().to(webhooks::show)]))
        .service(one("/webhooks/replay", "POST", [web::post().to(webhooks::replay)]))
        .service(one("/register", "GET", [web::get().to(failed_requests::list)]))
        .service(one("/pipeline", "GET", [web::get().to(pipeline::pipeline)]))
        .service(one("/openapi.json", "GET", [web::get().to(openapi::json)]))
        .service(one("/whoami", "GET", [web::get().to(openapi::whoami)]));
}

fn one<const N: usize>(path: &str, allowed: &'static str, routes: [Route; N]) -> Resource {
    let resource = routes.into_iter().fold(web::resource(path), Resource::route);
    resource.default_service(web::to(move |request: HttpRequest| method_not_allowed(request, allowed)))
}

async fn method_not_allowed(request: HttpRequest, allowed: &'static str) -> HttpResponse {
    let call = format!("{} {}", request.method(), request.path());
    let (english, chinese) = (format!("{call}, expected {allowed}"), format!("{call}，应为 {allowed}"));
    let mut answer = Kind::MethodNotAllowed.because_both(english, chinese).respond(Language::of(request.headers()));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}
