//! Answers of the two HTTP servers, counted by status and code: 503 `UNAVAILABLE` and 504 `OUTCOME_UNKNOWN` show here.
//!
//! Input: each answer. Output: the counters of `seckill_http_answers_total`, made when the metrics are read; an answer costs one
//! addition. A crash loses them.

use super::problem_kinds::Kind;
use crate::telemetry;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The first status, and how many there are.
const STATUS_FIRST: u16 = 100;
const STATUSES: usize = 500;
/// The code of an answer that is no problem document.
const NO_CODE: &str = "none";

/// A server of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpPort {
    /// Buyers'.
    Public,
    /// Operators' and probes'.
    Admin,
}

impl HttpPort {
    /// The value of the label `server`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Admin => "admin",
        }
    }

    const fn answers(self) -> &'static PortAnswers {
        match self {
            Self::Public => &PUBLIC,
            Self::Admin => &ADMIN,
        }
    }
}

/// What one server has answered.
struct PortAnswers {
    is_served: AtomicBool,
    by_status: [AtomicU64; STATUSES],
    /// In the order of [`Kind::ALL`].
    by_problem: [AtomicU64; Kind::ALL.len()],
}

impl PortAnswers {
    const fn new() -> Self {
        Self {
            is_served: AtomicBool::new(false),
            by_status: [const { AtomicU64::new(0) }; STATUSES],
            by_problem: [const { AtomicU64::new(0) }; Kind::ALL.len()],
        }
    }
}

static PUBLIC: PortAnswers = PortAnswers::new();
static ADMIN: PortAnswers = PortAnswers::new();

thread_local! {
    /// The server whose worker this thread is.
    static PORT: Cell<Option<HttpPort>> = const { Cell::new(None) };
}

/// Counts the answers that this thread gives as answers of `port`.
pub(super) fn count_on_this_thread(port: HttpPort) {
    static EXPORTED: Once = Once::new();
    PORT.set(Some(port));
    port.answers().is_served.store(true, Ordering::Relaxed);
    EXPORTED.call_once(|| telemetry::export_with(export));
}

/// Counts a problem document.
pub(super) fn count_problem(kind: Kind) {
    let counter = PORT.get().and_then(|port| port.answers().by_problem.get(kind as usize));
    if let Some(counter) = counter {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts an answer, unless it is a problem document: that was counted when it was made.
pub(super) fn count(status: StatusCode, headers: &HeaderMap) {
    let is_problem = || headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == Kind::MEDIA_TYPE.as_bytes());
    if status.as_u16() >= 400 && is_problem() {
        return;
    }
    let place = usize::from(status.as_u16().saturating_sub(STATUS_FIRST));
    if let Some(counter) = PORT.get().and_then(|port| port.answers().by_status.get(place)) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Brings the exported counters up to date. Trouble of the server is exported from the start, so that its first time counts.
fn export() {
    for port in [HttpPort::Public, HttpPort::Admin] {
        let answers = port.answers();
        if !answers.is_served.load(Ordering::Relaxed) {
            continue;
        }
        let set = |status: u16, code: &'static str, count: u64| {
            let (server, status) = (port.name(), status.to_string());
            metrics::counter!("seckill_http_answers_total", "server" => server, "status" => status, "code" => code)
                .absolute(count);
        };
        for (status, counter) in (STATUS_FIRST..).zip(&answers.by_status) {
            let count = counter.load(Ordering::Relaxed);
            if count > 0 {
                set(status, NO_CODE, count);
            }
        }
        for (kind, counter) in Kind::ALL.iter().zip(&answers.by_problem) {
            let count = counter.load(Ordering::Relaxed);
            if count > 0 || kind.status() >= 500 {
                set(kind.status(), kind.code(), count);
            }
        }
    }
}
