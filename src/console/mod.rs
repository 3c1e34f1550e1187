//! The pages: the operators' console, the contract and the demo shop. Plain HTML, CSS and ES modules, inside the binary, as they are.
//!
//! The files hold no data and may be read by anyone who reaches the port; everything they show comes from the APIs, with a
//! token. The policy sent with them lets a page run and load nothing but these files: what a buyer named or a message
//! contained can at worst be displayed.

mod assets;
mod crowd;
mod files;
mod payments;
mod shop;
mod shop_calls;

pub use shop::Shop;

use actix_web::{HttpRequest, HttpResponse, web};
use files::serve;

/// `/console/`, on the admin port.
pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::redirect("/console", "/console/"))
        .route("/console/{file:.*}", web::get().to(console_file))
        .route("/console/{file:.*}", web::head().to(console_file));
}

/// `/docs/`, on the public port: `/openapi.json` for people.
pub(crate) fn docs(config: &mut web::ServiceConfig) {
    config.service(web::redirect("/docs", "/docs/")).route("/docs/{file:.*}", web::get().to(docs_file));
}

async fn docs_file(request: HttpRequest, file: web::Path<String>) -> HttpResponse {
    serve(&request, assets::DOCS, &file)
}

async fn console_file(request: HttpRequest, file: web::Path<String>) -> HttpResponse {
    serve(&request, assets::CONSOLE, &file)
}
