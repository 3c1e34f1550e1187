//! `GET …/draw` and `GET …/draw/entries`: what everybody may see of the draw of a line. Nothing about buyers is in it.

use super::state::PublicApi;
use crate::http::extract::SaleInPath;
use crate::http::openapi::problem_responses;
use crate::http::problem::Problem;
use crate::lines::document::DrawDocument;
use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::{self, Bytes};
use futures::stream;
use std::convert::Infallible;
use std::fmt::Write;

/// Ids of one chunk: about 80 kilobytes.
const CHUNK: usize = 4_096;
/// A line may be kept by caches for a second.
const DRAW_AGE: &str = "public, max-age=1";
/// A sealed list stays what it is.
const LIST_AGE: &str = "public, max-age=3600";

problem_responses! {
    DrawProblems: 400, 404, 503;
    ListProblems: 400, 404, 425, 500, 503;
}

/// Show the draw of a sale's line: the commitment from its creation on, count, digest and seed once the list is sealed.
#[utoipa::path(
    get, path = "/v1/sales/{sale_id}/draw", operation_id = "show_draw", tag = "lines",
    params(SaleInPath),
    responses((status = 200, description = "The draw, up to two seconds old", body = DrawDocument), DrawProblems)
)]
pub(super) async fn show(public: web::Data<PublicApi>, path: web::Path<SaleInPath>) -> Result<HttpResponse, Problem> {
    let draw = public.lines.draw(&path.sale_id).await?;
    Ok(HttpResponse::Ok().insert_header((CACHE_CONTROL, DRAW_AGE)).json(draw))
}

/// The ids of all entries of a sealed list, ascending, one in each line.
#[utoipa::path(
    get, path = "/v1/sales/{sale_id}/draw/entries", operation_id = "list_draw_entries", tag = "lines",
    params(SaleInPath),
    responses((status = 200, description = "The list", content_type = "text/plain", body = String), ListProblems)
)]
pub(super) async fn list(public: web::Data<PublicApi>, path: web::Path<SaleInPath>) -> Result<HttpResponse, Problem> {
    let ids = public.lines.list(&path.sale_id).await?;
    let chunks = stream::unfold((ids, 0), |(ids, from)| async move {
        let chunk = ids.as_ref().get(from..)?.iter().take(CHUNK);
        let mut text = String::with_capacity(CHUNK * 20);
        for id in chunk {
            // Into a string it cannot fail.
            let _written: std::fmt::Result = writeln!(text, "{id}");
        }
        (!text.is_empty()).then(|| (Ok::<_, Infallible>(Bytes::from(text)), (ids, from + CHUNK)))
    });
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, LIST_AGE))
        .insert_header((CONTENT_TYPE, "text/plain; charset=utf-8"))
        .streaming(chunks))
}
