//! Answers that are not a success: RFC 9457 problem documents with a stable code and a message in English or Chinese.
//!
//! One row a problem: code, status, title in both languages. The code is a state code where a state is the reason. Input: the kind of a
//! problem, and its detail. Output: the answer in the client's language. By hand: crates know neither two languages nor stable codes.

use super::answers;
use super::language::{Detail, Language};
use crate::domain::ids::RequestId;
use crate::domain::states::{P1Entry, P2Reserve};
use crate::telemetry::http_request_id::{self, HttpRequestId};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use rand::Rng;
use serde::Serialize;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

macro_rules! problems {
    ($($kind:ident = $code:expr, $status:literal, $en:literal, $zh:literal;)*) => {
        /// What is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each row of the table below says what it is")]
        pub enum Kind { $($kind,)* }

        impl Kind {
            /// Every problem of the API.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];
            /// The stable code.
            #[must_use]
            pub const fn code(self) -> &'static str { match self { $(Self::$kind => $code,)* } }
            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 { match self { $(Self::$kind => $status,)* } }
            /// The title in English.
            #[must_use]
            pub const fn english(self) -> &'static str { match self { $(Self::$kind => $en,)* } }
            /// The title in Chinese.
            #[must_use]
            pub const fn chinese(self) -> &'static str { match self { $(Self::$kind => $zh,)* } }
        }
    };
}

problems! {
    BadRequest = "BAD_REQUEST", 400, "The request is malformed", "请求格式错误";
    Unauthorized = "UNAUTHORIZED", 401, "A valid access token is needed", "需要有效的访问令牌";
    Forbidden = "FORBIDDEN", 403, "Your token may not do this", "该令牌没有此权限";
    TokenInvalid = "TOKEN_INVALID", 403, "The purchase token is not valid for this purchase", "购买令牌无效";
    TokenExpired = "TOKEN_EXPIRED", 403, "The purchase token has expired", "购买令牌已过期";
    PlaceInvalid = "PLACE_INVALID", 403, "This place in the waiting room is not yours", "排队凭证无效";
    NoSuchRoute = "NO_SUCH_ROUTE", 404, "There is nothing at this address", "该地址不存在";
    SaleNotFound = P1Entry::NotFound.code(), 404, "There is no such sale", "活动不存在";
    NoWaitingRoom = "NO_WAITING_ROOM", 404, "This sale has no waiting room; buy at once", "该活动无需排队，可直接购买";
    OrderNotFound = "ORDER_NOT_FOUND", 404, "There is no such order", "没有该订单";
    DeliveryNotFound = "DELIVERY_NOT_FOUND", 404, "There is no such delivery", "没有该投递";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "This method is not offered here", "不支持该请求方法";
    RequestTimeout = "REQUEST_TIMEOUT", 408, "The request took too long to arrive", "请求接收超时";
    Duplicate = P2Reserve::Duplicate.code(), 409, "You already bought in this sale", "您已购买过该商品";
    LimitExceeded = P2Reserve::LimitExceeded.code(), 409, "This would exceed the purchase limit", "超出限购数量";
    OrderQueued = "ORDER_QUEUED", 409, "The order is not written yet; ask the status of the request", "订单尚未写入，请查询该请求的状态";
    Conflict = "CONFLICT", 409, "This is not possible as things stand", "当前状态下无法执行该操作";
    NotEnough = P2Reserve::NotEnough.code(), 409, "Fewer units are left than you want", "库存不足所需数量";
    EntrySoldOut = P1Entry::SoldOut.code(), 410, "Sold out", "已售罄";
    SoldOut = P2Reserve::SoldOut.code(), 410, "Sold out", "已售罄";
    AllEmpty = P2Reserve::BucketAllEmpty.code(), 410, "Sold out", "已售罄";
    Ended = P1Entry::Ended.code(), 410, "The sale is over", "活动已结束";
    BodyTooLarge = "BODY_TOO_LARGE", 413, "The body is too large", "请求体过大";
    WrongMediaType = "WRONG_MEDIA_TYPE", 415, "The body must be application/json", "请求体必须为 application/json";
    Unprocessable = "UNPROCESSABLE", 422, "A value is out of range", "参数取值无效";
    TokenReused = "TOKEN_REUSED", 422, "This purchase token was used for another quantity", "购买令牌已用于其他数量";
    Paused = P1Entry::Paused.code(), 423, "The sale is paused", "活动已暂停";
    NotStarted = P1Entry::NotStarted.code(), 425, "The sale has not started", "活动尚未开始";
    PlaceWaiting = "PLACE_WAITING", 425, "It is not your turn yet", "尚未轮到您，请继续排队";
    PlaceRequired = "PLACE_REQUIRED", 428, "This sale has a waiting room; take a place first", "该活动需要先排队";
    TokenRequired = "TOKEN_REQUIRED", 428, "This sale needs a purchase token", "该活动需要购买令牌";
    RateLimited = "RATE_LIMITED", 429, "Too many requests, slow down", "请求过于频繁，请稍后再试";
    Internal = "INTERNAL", 500, "Something went wrong on our side", "服务内部错误";
    Loading = P1Entry::Loading.code(), 503, "Busy, try again", "系统繁忙，请重试";
    BucketEmpty = P2Reserve::BucketEmpty.code(), 503, "Stock is on its way; nothing was bought, try again", "库存调拨中，未产生购买，请重试";
    Overloaded = P1Entry::Overloaded.code(), 503, "Too busy, try again shortly", "系统繁忙，请稍后再试";
    RoomFull = "ROOM_FULL", 503, "The waiting room is full", "排队人数已满，请稍后再试";
    OrderNotWritten = "ORDER_NOT_WRITTEN", 503, "The order is not written yet; nothing was recorded, repeat it", "订单尚未写入，未做任何记录，请重试";
    Unavailable = "UNAVAILABLE", 503, "Temporarily unavailable; nothing was bought", "暂时不可用，未产生购买";
    Unknown = "OUTCOME_UNKNOWN", 504, "No answer in time; ask by request id, or repeat with the same token", "结果未知，请用请求号查询，或用同一令牌重试";
}

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
    request_id: Option<RequestId>,
    location: Option<String>,
    remaining: Option<u64>,
    /// Each answer has one of these, the first to the last. Small, because the future of each request holds problems.
    retry_after_s: Option<(NonZeroU32, u32)>,
}

#[derive(Serialize)]
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
    remaining: Option<u64>,
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
        let problem =
            Self { kind, detail: None, request_id: None, location: None, remaining: None, retry_after_s: None };
        match kind.status() {
            423 | 425 | 429 | 503 | 504 => problem.retry_within_s(RETRY_SOON_S),
            _ => problem,
        }
    }
}

/// The `type` of each kind.
static URNS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let urn = |kind: &Kind| format!("urn:seckill:problem:{}", kind.code().to_ascii_lowercase().replace('_', "-"));
    Kind::ALL.iter().map(urn).collect()
});

impl Kind {
    /// The media type of every problem document.
    pub(super) const MEDIA_TYPE: &'static str = "application/problem+json";

    fn urn(self) -> &'static str {
        // `ALL` is in the order of declaration.
        URNS.get(self as usize).map_or("about:blank", String::as_str)
    }

    pub(super) fn http_status(self) -> StatusCode {
        StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// This problem, with what exactly is wrong and what would be accepted.
    #[must_use]
    pub(crate) fn because(self, detail: impl Into<String>) -> Problem {
        Problem { detail: Some(Detail::English(detail.into())), ..self.into() }
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

    /// Adds the request it is about and where its status can be asked.
    #[must_use]
    pub(crate) fn about(mut self, request_id: RequestId, location: String) -> Self {
        self.request_id = Some(request_id);
        self.location = Some(location);
        self
    }

    /// Adds how many units are left.
    #[must_use]
    pub(crate) const fn remaining(mut self, units: u64) -> Self {
        self.remaining = Some(units);
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
        let body = ProblemDocument {
            r#type: kind.urn(),
            title: if chinese { kind.chinese() } else { kind.english() },
            status: kind.status(),
            code: kind.code(),
            instance: http_request_id::current().map(CallUrn),
            detail: self.detail.as_ref().map(|detail| detail.text(chinese)),
            request_id: self.request_id,
            status_url: self.location.as_deref(),
            remaining: self.remaining,
        };
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
        if let Some(location) = &self.location {
            answer.insert_header((LOCATION, location.as_str()));
        }
        if kind == Kind::Unauthorized {
            answer.insert_header((WWW_AUTHENTICATE, "Bearer"));
        }
        answer.body(serde_json::to_string(&body).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
