//! The three calls a buyer makes, each counted, and what their answers mean.

use super::answer::text_field;
use super::http::{HttpError, ServerResponse};
use super::virtual_user::VirtualUser;
use seckill::domain::ids::RequestId;
use std::sync::atomic::Ordering::Relaxed;
use tokio::time::Instant;

/// What one answer means to the buyer.
pub(super) enum CallResult {
    /// Yes: a purchase that was accepted, or a token that was issued.
    Accepted(RequestId),
    /// No, with this status.
    Refused(u16),
    /// Not now; try again after `seconds`.
    Later {
        /// 429 or 503.
        status: u16,
        seconds: u64,
    },
    /// It may have happened or not.
    Unknown {
        /// The request, if the answer names it.
        id: Option<RequestId>,
        /// Where to ask, if the answer says so.
        path: Option<String>,
    },
    /// It cannot have happened: there was no connection.
    NotSent,
}

impl VirtualUser {
    /// One purchase request, with the token in `self.key` if `with_key`. Its latency counts from `due`, or from now.
    pub(super) async fn call_order(&mut self, buyer: u64, with_key: bool, due: Option<Instant>) -> CallResult {
        let key = with_key.then_some(self.key.as_str());
        self.shared.forms.order(&mut self.outbox, self.shared.access(buyer), key);
        let since = due.unwrap_or_else(Instant::now);
        let result = self.connection.call(self.outbox.as_bytes()).await;
        if !was_sent(&result) {
            self.seen.not_connected += 1;
            return CallResult::NotSent;
        }
        self.seen.requests += 1;
        self.shared.requests.fetch_add(1, Relaxed);
        if self.measured {
            self.latencies.took(since.elapsed(), &self.shared.latencies);
        }
        let Ok(answer) = result else { return CallResult::Unknown { id: None, path: None } };
        self.seen.by_status.add(answer.status(), code(&answer));
        match (answer.status(), answer.retry_after_s()) {
            (202, _) => request_id(&answer).map_or(CallResult::Unknown { id: None, path: None }, CallResult::Accepted),
            // An entry: its id is one of the same kind.
            (201, _) => entry_id(&answer).map_or(CallResult::Unknown { id: None, path: None }, CallResult::Accepted),
            (status @ (429 | 503), Some(seconds)) => CallResult::Later { status, seconds },
            (503, None) => CallResult::Refused(503),
            // The contract leaves only 504 open; what a proxy or a fault answers in its place is no more certain.
            (500.., _) => CallResult::Unknown { id: request_id(&answer), path: answer.location().map(str::to_owned) },
            (status, _) => CallResult::Refused(status),
        }
    }

    /// One question for a purchase token; it is put into `self.key`.
    pub(super) async fn call_token(&mut self, buyer: u64) -> CallResult {
        self.shared.forms.token(&mut self.outbox, self.shared.access(buyer), &self.place);
        let result = self.connection.call(self.outbox.as_bytes()).await;
        if !was_sent(&result) {
            self.seen.not_connected += 1;
            return CallResult::NotSent;
        }
        let Ok(answer) = result else { return CallResult::Unknown { id: None, path: None } };
        self.seen.tokens_by_status.add(answer.status(), code(&answer));
        match (answer.status(), answer.retry_after_s()) {
            (201, _) => match (request_id(&answer), text_field(answer.body(), "token")) {
                (Some(id), Some(key)) => {
                    self.key.clear();
                    self.key.push_str(key);
                    CallResult::Accepted(id)
                }
                (Some(_), None) | (None, _) => CallResult::Unknown { id: None, path: None },
            },
            // Released a moment ago, and this process does not know it yet.
            (status @ 425, Some(seconds)) if self.shared.plan.room => CallResult::Later { status, seconds },
            (status @ (429 | 503), Some(seconds)) => CallResult::Later { status, seconds },
            (504, _) => CallResult::Unknown { id: None, path: None },
            (status, _) => CallResult::Refused(status),
        }
    }

    /// One question for a status; the HTTP status of the answer, if there is one.
    pub(super) async fn call_status(&mut self, buyer: u64, path: &str) -> Option<u16> {
        self.shared.forms.status(&mut self.outbox, self.shared.access(buyer), path);
        let result = self.connection.call(self.outbox.as_bytes()).await;
        if !was_sent(&result) {
            self.seen.not_connected += 1;
        }
        let answer = result.ok()?;
        self.seen.polls_by_status.add(answer.status(), code(&answer));
        Some(answer.status())
    }
}

pub(super) fn was_sent(result: &Result<ServerResponse<'_>, HttpError>) -> bool {
    result.as_ref().err().is_none_or(HttpError::may_have_arrived)
}

/// The body's `code`; empty when it has none.
pub(super) fn code<'a>(answer: &'a ServerResponse<'_>) -> &'a str {
    text_field(answer.body(), "code").unwrap_or_default()
}

fn entry_id(answer: &ServerResponse<'_>) -> Option<RequestId> {
    text_field(answer.body(), "entry_id").and_then(|text| RequestId::parse(text).ok())
}

fn request_id(answer: &ServerResponse<'_>) -> Option<RequestId> {
    text_field(answer.body(), "request_id").and_then(|text| RequestId::parse(text).ok())
}
