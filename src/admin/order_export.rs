//! Orders over HTTP as one long answer (L4): a line of JSON each, newest first, all that a filter finds.
//!
//! Input: a filter. Output: lines, page by page: a task reads one page ahead of the client, and holds no more than that. A client
//! that goes ends the task at its next page; one that does not read is cut off, and so is an export that takes too long, so that a
//! few exports are all that a process does at once. What is cut off ends without the last chunk of HTTP, which clients report; the
//! last line that came is the `cursor` of the rest. A crash leaves nothing.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems};
use super::state::{Admin, EXPORTS_MAX};
use crate::http::bad_form::BadForm;
use crate::http::problem::{Kind, Problem, RETRY_LATER_S};
use crate::orders::document::OrderDocument;
use crate::orders::forms::ExportForm;
use crate::orders::rows::{FoundOrders, ListedOrder, OrderRows, OrdersQuery};
use crate::store::mysql::DbError;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use futures::stream::{self, Stream};
use std::io;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

/// A client takes a page within this time. A page is a few hundred kilobytes.
const PAGE_TAKEN: Duration = Duration::from_secs(60);
/// An export takes at most this long: enough for some millions of orders.
const EXPORT_TAKES: Duration = Duration::from_secs(3600);

/// Export all orders that a filter finds, newest first, a line of JSON each.
///
/// Orders that are written meanwhile are newer than the first line and not in it. Two exports at once; more get 429.
#[utoipa::path(
    get, path = "/admin/v1/orders/export", operation_id = "export_orders", tag = "orders",
    params(ExportForm),
    responses(
        (status = 200, description = "One order a line, as in `orders` of find_orders. An answer that is cut off was not all: go \
            on with `cursor`", body = String, content_type = "application/x-ndjson"),
        ReadProblems,
    )
)]
pub(super) async fn export(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<ExportForm>) -> AdminAnswer {
    let query = query.into_inner().query(admin.token_ttl_s)?;
    let Ok(place) = admin.exporting.clone().try_acquire_owned() else { return Err(too_many()) };
    // A database that is away is a problem, not an export without lines.
    let first = admin.servers.rows.orders.find(&query).await??;
    let (parts, received) = mpsc::channel(1);
    let export = OrderExport { orders: admin.servers.rows.orders.clone(), query, parts, _place: place };
    tokio::spawn(async move {
        match timeout(EXPORT_TAKES, export.run(first)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(phase = "admin", %error, "an export of orders was cut off"),
            Err(_elapsed) => tracing::warn!(phase = "admin", "an export of orders took too long and was cut off"),
        }
    });
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((CONTENT_TYPE, "application/x-ndjson"))
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"orders.ndjson\""))
        .streaming(body(received)))
}

pub(super) fn too_many() -> Problem {
    let english = format!("{EXPORTS_MAX} exports are under way in this process; wait for one of them");
    let problem = Kind::RateLimited.because_both(english, format!("本进程已有 {EXPORTS_MAX} 个导出在进行，请稍候"));
    problem.retry_within_s(RETRY_LATER_S)
}

/// A part of the answer.
enum ExportPart {
    Lines(Bytes),
    /// There are no more; without it the answer is cut off.
    End,
}

/// The reading half of an export.
struct OrderExport {
    orders: OrderRows,
    query: OrdersQuery,
    parts: mpsc::Sender<ExportPart>,
    _place: OwnedSemaphorePermit,
}

/// Why an export was cut off.
#[derive(Debug, thiserror::Error)]
enum CutOff {
    #[error(transparent)]
    Database(#[from] DbError),
    /// The sale was archived meanwhile.
    #[error(transparent)]
    Gone(#[from] BadForm),
    #[error("the client has not taken a page for {} s", PAGE_TAKEN.as_secs())]
    NotTaken,
}

impl OrderExport {
    /// Pages until the last one, or the client has gone.
    async fn run(mut self, first: FoundOrders) -> Result<(), CutOff> {
        let mut page = first;
        loop {
            let FoundOrders { orders, next } = page;
            if !orders.is_empty() && !self.gives(ExportPart::Lines(lines(orders))).await? {
                return Ok(());
            }
            if next.is_none() {
                self.gives(ExportPart::End).await?;
                return Ok(());
            }
            self.query.before = next;
            page = self.orders.find(&self.query).await??;
        }
    }

    /// Whether the client is still there.
    async fn gives(&self, part: ExportPart) -> Result<bool, CutOff> {
        match timeout(PAGE_TAKEN, self.parts.send(part)).await {
            Ok(sent) => Ok(sent.is_ok()),
            Err(_elapsed) => Err(CutOff::NotTaken),
        }
    }
}

fn lines(page: Vec<ListedOrder>) -> Bytes {
    let mut text = Vec::new();
    for order in page {
        // Texts and numbers only: they always are JSON.
        if serde_json::to_writer(&mut text, &OrderDocument::with_buyer(order)).is_ok() {
            text.push(b'\n');
        }
    }
    text.into()
}

fn body(received: mpsc::Receiver<ExportPart>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold(Some(received), async |received| {
        let mut received = received?;
        match received.recv().await {
            Some(ExportPart::Lines(lines)) => Some((Ok(lines), Some(received))),
            Some(ExportPart::End) => None,
            None => Some((Err(io::Error::other("the export was cut off")), None)),
        }
    })
}
