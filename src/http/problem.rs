//! Answers that are not a success: RFC 9457 problem documents with a stable code and a message in English or Chinese.
//!
//! Input: the kind of a problem ([`problem_kinds`](super::problem_kinds)), and its detail. Output: the answer in the client's language. By hand: crates
//! know neither two languages nor stable codes.

use super::answers;
use super::language::{Detail, Language};
use super::new_challenge::NewChallenge;
pub use super::problem_kinds::Kind;
use crate::domain::ids::{EntryId, RequestId, SaleId};
use crate::domain::needs::Needs;
use crate::telemetry::http_request_id::{self, HttpRequestId};
use actix_web::HttpResponse;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use rand::Rng;
use serde::Serialize;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// When a client comes back after a problem that passes by itself, seconds: any of these, so that a crowd that was refused at
/// one moment does not come back at one moment.
pub(crate) const RETRY_SOON_S: RangeInclusive<u64> = 1..=3;
/// The same for what takes longer to pass.
pub(crate) const RETRY_LATER_S: RangeInclusive<u64> = 5..=10;

/// One of these numbers of seconds.
pub(crate) fn spread_s(seconds: RangeInclusive<u64>) -> u64 {
    rand::rng().random_range(seconds)
}

/// One problem answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .kind.code())]
pub(crate) struct Problem {
    kind: Kind,
    detail: Option<Detail>,
    /// What it is about. Boxed, because a problem has to stay small.
    about: Option<Box<About>>,
    remaining: Option<u64>,
    /// Each answer has one of these, the first to the last. Small, because the future of each request holds problems.
    retry_after_s: Option<(NonZeroU32, u32)>,
}

/// What a problem is about: one of these at most.
#[derive(Debug, Clone)]
enum About {
    /// A request, and where its status can be asked.
    Request(RequestId, String),
    /// An entry of a line.
    Entry(EntryId),
    /// What the sale needs of its buyers.
    Needs(Arc<Needs>),
    /// The field that cannot be used, and the sale of a drop that has it.
    Field(String, Option<SaleId>),
    /// The challenge to solve.
    Challenge(NewChallenge),
}

#[derive(Default, Serialize)]
struct ProblemDocument<'a> {
    r#type: &'a str,
    title: &'a str,
    status: u16,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<CallUrn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_id: Option<EntryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'a Needs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sale_id: Option<&'a SaleId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge: Option<&'a NewChallenge>,
}

/// The call that was answered, as a URI: what a person quotes to find its log lines.
struct CallUrn(HttpRequestId);

impl Serialize for CallUrn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("urn:seckill:x-request-id:{}", self.0))
    }
}

impl From<Kind> for Problem {
    fn from(kind: Kind) -> Self {
        let problem = Self { kind, detail: None, about: None, remaining: None, retry_after_s: None };
        match kind.status() {
            423 | 425 | 429 | 503 | 504 => problem.retry_within_s(RETRY_SOON_S),
            _ => problem,
        }
    }
}

impl Kind {
    /// This problem, with what exactly is wrong and what would be accepted.
    #[must_use]
    pub(crate) fn because(self, detail: impl Into<String>) -> Problem {
        Problem { detail: Some(Detail::English(detail.into().into_boxed_str())), ..self.into() }
    }

    /// The same in both languages, for what people read on a page.
    #[must_use]
    pub(crate) fn because_both(self, english: impl Into<String>, chinese: impl Into<String>) -> Problem {
        let texts = [english.into(), chinese.into()];
        Problem { detail: Some(Detail::Both(Box::new(texts))), ..self.into() }
    }
}

impl Problem {
    /// Which problem it is.
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its title and what exactly is wrong, as a sentence.
    pub(crate) fn words(&self, language: Language) -> String {
        let chinese = language == Language::Chinese;
        let (title, colon) = if chinese { (self.kind.chinese(), "：") } else { (self.kind.english(), ": ") };
        match &self.detail {
            Some(detail) => format!("{title}{colon}{}", detail.text(chinese)),
            None => title.to_owned(),
        }
    }

    /// Adds the request it is about and where its status can be asked.
    #[must_use]
    pub(crate) fn about(mut self, request_id: RequestId, location: String) -> Self {
        self.about = Some(Box::new(About::Request(request_id, location)));
        self
    }

    /// Adds the entry of a line that it is about.
    #[must_use]
    pub(crate) fn about_entry(mut self, entry: EntryId) -> Self {
        self.about = Some(Box::new(About::Entry(entry)));
        self
    }

    /// Adds how many units are left.
    #[must_use]
    pub(crate) const fn remaining(mut self, units: u64) -> Self {
        self.remaining = Some(units);
        self
    }

    /// Adds what the sale needs of its buyers.
    #[must_use]
    pub(crate) fn needs(mut self, needs: Arc<Needs>) -> Self {
        self.about = Some(Box::new(About::Needs(needs)));
        self
    }

    /// Adds the field of the body that cannot be used, and the sale of a drop that has it.
    #[must_use]
    pub(crate) fn of_field(mut self, field: impl Into<String>, sale: Option<SaleId>) -> Self {
        self.about = Some(Box::new(About::Field(field.into(), sale)));
        self
    }

    /// Adds the challenge to solve.
    #[must_use]
    pub(crate) fn challenge(mut self, challenge: NewChallenge) -> Self {
        self.about = Some(Box::new(About::Challenge(challenge)));
        self
    }

    /// Says when to come back, seconds.
    #[must_use]
    pub(crate) fn retry_after_s(self, seconds: u64) -> Self {
        self.retry_within_s(seconds..=seconds)
    }

    /// Says when to come back: each answer has one of these numbers of seconds.
    #[must_use]
    pub(crate) fn retry_within_s(mut self, seconds: RangeInclusive<u64>) -> Self {
        let short = |seconds: &u64| u32::try_from(*seconds).unwrap_or(u32::MAX);
        self.retry_after_s = NonZeroU32::new(short(seconds.start())).map(|first| (first, short(seconds.end())));
        self
    }

    /// The HTTP answer.
    #[must_use]
    pub(crate) fn respond(&self, language: Language) -> HttpResponse {
        let chinese = language == Language::Chinese;
        let kind = self.kind;
        let mut body = ProblemDocument {
            r#type: kind.urn(),
            title: if chinese { kind.chinese() } else { kind.english() },
            status: kind.status(),
            code: kind.code(),
            instance: http_request_id::current().map(CallUrn),
            detail: self.detail.as_ref().map(|detail| detail.text(chinese)),
            remaining: self.remaining,
            ..ProblemDocument::default()
        };
        match self.about.as_deref() {
            Some(About::Request(request_id, location)) => {
                (body.request_id, body.status_url) = (Some(*request_id), Some(location.as_str()));
            }
            Some(About::Entry(entry)) => body.entry_id = Some(*entry),
            Some(About::Needs(needs)) => body.needs = Some(needs),
            Some(About::Field(field, sale)) => (body.field, body.sale_id) = (Some(field.as_str()), sale.as_ref()),
            Some(About::Challenge(challenge)) => body.challenge = Some(challenge),
            None => {}
        }
        let mut answer = HttpResponse::build(kind.http_status());
        answers::count_problem(kind);
        answer.insert_header((CONTENT_TYPE, HeaderValue::from_static(Kind::MEDIA_TYPE)));
        // A cache may keep a 404 or a 410 of which nothing is said, for the next reader in the language of the first.
        answer.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
        answer.insert_header((VARY, HeaderValue::from_static("Accept-Language")));
        answer.insert_header(("Content-Language", if chinese { "zh" } else { "en" }));
        if let Some((first, last)) = self.retry_after_s {
            answer.insert_header((RETRY_AFTER, spread_s(first.get().into()..=last.into())));
        }
        if let Some(location) = body.status_url {
            answer.insert_header((LOCATION, location));
        }
        if kind == Kind::Unauthorized {
            answer.insert_header((WWW_AUTHENTICATE, "Bearer"));
        }
        answer.body(serde_json::to_string(&body).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
