//! Lines over HTTP: the line of a sale, its entries page by page, its sealed list, and the draw with a text from outside.
//!
//! Input: a sale. Output: rows as they are, counts a few seconds old at most. Drawing is one transaction, on record, and repeating it is
//! safe. A crash leaves nothing.

use super::act_body::ActBody;
use super::calls::{OperateCall, ViewCall};
use super::json_api::{AdminAnswer, JsonBody, SaleReadProblems, WriteProblems, answer};
use super::order_export::too_many;
use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::http::extract::SaleInPath;
use crate::http::openapi::problem_responses;
use crate::http::problem::{Kind, Problem};
use crate::lines::forms::{DrawForm, EntriesForm};
use crate::lines::listing::{EntriesPage, LineDocument};
use crate::lines::rows::{BeaconGiven, Line, LineRows};
use crate::store::mysql::DbError;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use futures::stream;
use std::fmt::Write;
use tokio::sync::OwnedSemaphorePermit;

type DrawBody = ActBody<DrawForm>;

problem_responses! {
    /// Of calls that read a page of entries.
    EntriesProblems: 400, 401, 404, 422, 429, 500, 503;
}

/// The line of a sale.
async fn line_of(admin: &Admin, sale: &SaleId) -> Result<Line, Problem> {
    let rows = &admin.servers.rows;
    if let Some(line) = rows.lines.line(sale).await? {
        return Ok(line);
    }
    Err(match rows.sales.get(sale).await? {
        Some(_) => Kind::NoLine.into(),
        None => Kind::SaleNotFound.into(),
    })
}

async fn document(admin: &Admin, sale: &SaleId) -> Result<LineDocument, Problem> {
    let line = line_of(admin, sale).await?;
    let tally = admin.tallies.of(&admin.servers.rows.lines, sale).await?;
    Ok(LineDocument::of(&line, &tally))
}

/// Show the line of a sale: its state, how many entries are in each state, and what is public of its draw.
#[utoipa::path(
    get, path = "/admin/v1/sales/{sale_id}/line", operation_id = "show_line", tag = "lines",
    params(SaleInPath),
    responses((status = 200, description = "The line", body = LineDocument), SaleReadProblems)
)]
pub(super) async fn show(_call: ViewCall, admin: web::Data<Admin>, path: web::Path<SaleInPath>) -> AdminAnswer {
    answer(document(&admin, &path.sale_id).await?)
}

/// List the entries of a sale's line, in the order of their ids.
#[utoipa::path(
    get, path = "/admin/v1/sales/{sale_id}/line/entries", operation_id = "list_line_entries", tag = "lines",
    params(SaleInPath, EntriesForm),
    responses((status = 200, description = "Entries, and `next` when there are more", body = EntriesPage), EntriesProblems)
)]
pub(super) async fn entries(
    _call: ViewCall,
    admin: web::Data<Admin>,
    path: web::Path<SaleInPath>,
    query: web::Query<EntriesForm>,
) -> AdminAnswer {
    let query = query.query()?;
    line_of(&admin, &path.sale_id).await?;
    let found = admin.servers.rows.lines.entries(&path.sale_id, query).await?;
    answer(EntriesPage::of(found, query.limit))
}

/// The ids of the sealed list, ascending, one in each line: what `GET /v1/sales/{sale_id}/draw/entries` shows everybody.
#[utoipa::path(
    get, path = "/admin/v1/sales/{sale_id}/line/list", operation_id = "save_line_list", tag = "lines",
    params(SaleInPath),
    responses(
        (status = 200, description = "The list. An answer that is cut off was not all", body = String, content_type = "text/plain"),
        SaleReadProblems,
    )
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>, path: web::Path<SaleInPath>) -> AdminAnswer {
    let line = line_of(&admin, &path.sale_id).await?;
    if line.sealed.is_none() {
        let (english, chinese) =
            (format!("the line is {}", line.state.code()), format!("状态为 {}", line.state.code()));
        return Err(Kind::Conflict
            .because_both(english + "; its list is sealed after the close", chinese + "；名单在截止后封存"));
    }
    let Ok(place) = admin.exporting.clone().try_acquire_owned() else { return Err(too_many()) };
    let reading = ListReading { rows: admin.servers.rows.lines.clone(), sale: line.sale_id, after: 0, _place: place };
    let pages = stream::try_unfold(reading, ListReading::next);
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((CONTENT_TYPE, "text/plain; charset=utf-8"))
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"entries.txt\""))
        .streaming(pages))
}

/// A list that is being read for a client, a megabyte at a time.
struct ListReading {
    rows: LineRows,
    sale: SaleId,
    after: u64,
    _place: OwnedSemaphorePermit,
}

impl ListReading {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, DbError> {
        let ids = self.rows.listed_ids(&self.sale, self.after).await?;
        let Some(last) = ids.last().copied() else { return Ok(None) };
        let mut text = String::with_capacity(ids.len() * 20);
        for id in ids {
            // Into a string it cannot fail.
            let _written: std::fmt::Result = writeln!(text, "{id}");
        }
        self.after = last;
        Ok(Some((text.into(), self)))
    }
}

/// Draw a line that waits for a text from outside, once its list is sealed. Repeating it with the same text changes nothing.
#[utoipa::path(
    post, path = "/admin/v1/sales/{sale_id}/line/draw", operation_id = "draw_line", tag = "lines",
    params(SaleInPath), request_body = DrawBody,
    responses((status = 200, description = "The line, which is drawn", body = LineDocument), WriteProblems)
)]
pub(super) async fn draw(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<DrawBody>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    let (ActBody { form, by, .. }, id) = (body, &path.sale_id);
    let beacon = form.checked()?;
    line_of(&admin, id).await?;
    let given = admin.servers.rows.lines.draw_with(&call.actor(by.as_deref())?, id, &beacon).await?;
    not_drawn(given)?;
    admin.changed(id, "line drawn").await;
    answer(document(&admin, id).await?)
}

/// Why it was not drawn with this text.
fn not_drawn(given: BeaconGiven) -> Result<(), Problem> {
    let conflict = |english: String, chinese: String| Err(Kind::Conflict.because_both(english, chinese));
    match given {
        BeaconGiven::Drawn | BeaconGiven::Before => Ok(()),
        BeaconGiven::OtherBeacon(Some(text)) => {
            conflict(format!("it was drawn before, with another text: {text}"), format!("此前已用另一文本抽签：{text}"))
        }
        BeaconGiven::OtherBeacon(None) | BeaconGiven::NotAwaited => conflict(
            "it needs no text from outside and is drawn by itself".to_owned(),
            "无需外来文本，自动抽签".to_owned(),
        ),
        BeaconGiven::NotSealed(state) => conflict(
            format!("it is {}; it is drawn once its list is SEALED", state.code()),
            format!("状态为 {}；名单封存（SEALED）后方可抽签", state.code()),
        ),
        BeaconGiven::NoLine => Err(Kind::NoLine.into()),
    }
}
