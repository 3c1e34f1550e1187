//! The head of a request: the buyer, the purchase token, the ticket of a place, a solution, where it comes from, the order in the path. A header given twice is
//! refused, because two readers could take two different values.

use super::state::PublicApi;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::challenge::risk::SeenCaller;
use crate::p1_entry::entitlement::ShownFacts;
use actix_web::dev::Payload;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use actix_web::{FromRequest, HttpRequest, web};
use std::future::{Ready, ready};

/// The buyer that the access token names.
pub(crate) struct Caller(pub(crate) UserId);

impl FromRequest for Caller {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let public = request.app_data::<web::Data<PublicApi>>().ok_or_else(|| Kind::Internal.into());
        ready(public.and_then(|public| buyer(public, request.headers())).map(Self))
    }
}

/// The buyer that the access token names, with what the call shows of the buyer's facts.
pub(super) struct CallerWithFacts {
    pub(super) user: UserId,
    pub(super) shown: Option<Box<ShownFacts>>,
}

impl FromRequest for CallerWithFacts {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let public = request.app_data::<web::Data<PublicApi>>().ok_or_else(|| Kind::Internal.into());
        ready(public.and_then(|public| {
            let user = buyer(public, request.headers())?;
            Ok(Self { user, shown: shown(public, request.headers()) })
        }))
    }
}

/// The ticket of a place in a waiting room, if one is sent.
pub(super) struct PlaceTicket(pub(super) Option<String>);

impl FromRequest for PlaceTicket {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(single(request.headers(), "seckill-place").map(|ticket| Self(ticket.map(str::to_owned))))
    }
}

/// Longest text of a header that is handed on, characters.
const SEEN_CHARS_MAX: usize = 512;

/// What a call for a purchase token may send beside the buyer.
pub(super) struct TokenHeaders {
    pub(super) ticket: Option<String>,
    /// The solution of a proof of work.
    pub(super) solution: Option<String>,
    /// Only where there is a risk service, which wants to know.
    pub(super) seen: Option<Box<SeenCaller>>,
}

impl FromRequest for TokenHeaders {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let header = |name| single(request.headers(), name).map(|text| text.map(str::to_owned));
        let public = request.app_data::<web::Data<PublicApi>>();
        let wanted = public.is_some_and(|public| public.token_issuer.asks_about_callers());
        ready(header("seckill-place").and_then(|ticket| {
            let solution = header("seckill-solution")?;
            Ok(Self { ticket, solution, seen: wanted.then(|| Box::new(seen(request))) })
        }))
    }
}

/// Where a request comes from. Texts are cut, and left out where they are none: they are hints.
fn seen(request: &HttpRequest) -> SeenCaller {
    let cut = |value: &HeaderValue| {
        let text = std::str::from_utf8(value.as_bytes()).ok()?;
        Some(text.chars().take(SEEN_CHARS_MAX).collect::<String>())
    };
    let last = |name: HeaderName| request.headers().get_all(name).last().and_then(cut);
    SeenCaller {
        address: request.peer_addr().map(|peer| peer.ip()),
        forwarded_for: last(HeaderName::from_static("x-forwarded-for")),
        user_agent: last(USER_AGENT),
    }
}

/// The order in a path.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OrderInPath {
    /// Id of the sale.
    #[param(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub(super) sale_id: SaleId,
    /// Id of the request.
    #[param(value_type = String, pattern = "^[1-9][0-9]{0,18}$")]
    pub(super) request_id: RequestId,
}

/// The one value of a header.
fn single<'a>(request: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = request.get_all(name);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Kind::BadRequest.because(format!("header {name} is given more than once, expected one")));
    }
    // Control characters never come this far. `to_str` would check each byte of a long token for itself.
    let text = std::str::from_utf8(value.as_bytes()).ok().filter(|text| text.is_ascii());
    let text = text.ok_or_else(|| Kind::BadRequest.because(format!("header {name} is not plain ASCII text")))?;
    Ok(Some(text.trim()))
}

/// The buyer that the access token names.
pub(super) fn buyer(public: &PublicApi, request: &HeaderMap) -> Result<UserId, Problem> {
    public.auth.check(access_token(request)?).map_err(|denied| {
        let kind = if denied.is_busy() { Kind::Unavailable } else { Kind::Unauthorized };
        kind.because(denied.to_string())
    })
}

/// What the call shows of its buyer's facts, for sales that need some: texts that are not read. The access token was checked before.
pub(super) fn shown(public: &PublicApi, request: &HeaderMap) -> Option<Box<ShownFacts>> {
    let entitlements = &public.entitlements;
    let access_token = if entitlements.reads_access_tokens() { access_token(request).ok() } else { None };
    let pass = if entitlements.reads_passes() { single(request, "seckill-pass") } else { Ok(None) };
    ShownFacts::of(access_token, pass)
}

/// The access token.
fn access_token(request: &HeaderMap) -> Result<&str, Problem> {
    let header = single(request, "authorization")?.ok_or_else(|| {
        Kind::Unauthorized.because("header Authorization is missing, expected: Bearer <access token>")
    })?;
    match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        Some(_) | None => {
            Err(Kind::Unauthorized.because("header Authorization is malformed, expected: Bearer <access token>"))
        }
    }
}

/// The purchase token, if one is sent.
pub(super) fn purchase_token(request: &HeaderMap) -> Result<Option<&str>, Problem> {
    single(request, "idempotency-key")
}

/// The sale in the path of a purchase.
pub(super) fn sale(text: &str) -> Result<SaleId, Problem> {
    SaleId::parse(text).map_err(|error| Kind::BadRequest.because(error.to_string()))
}

/// Refuses bodies that are not declared as JSON.
pub(super) fn json_only(request: &HeaderMap) -> Result<(), Problem> {
    let given = single(request, "content-type")?.unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let given = if given.is_empty() { "missing".to_owned() } else { format!("{given:?}") };
    Err(Kind::WrongMediaType.because(format!("header Content-Type is {given}, expected application/json")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    #[test]
    fn a_header_has_one_value_of_plain_text() {
        let read = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HeaderName::from_static("seckill-place"), HeaderValue::from_bytes(value).unwrap());
            }
            single(&headers, "seckill-place")
                .map(|text| text.map(str::to_owned))
                .map_err(|problem| format!("{problem:?}"))
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[b" a\tb "]), Ok(Some("a\tb".to_owned())));
        let refused = |values: &[&[u8]], why: &str| assert!(read(values).unwrap_err().contains(why), "{values:?}");
        refused(&[b"a", b"a"], "seckill-place is given more than once, expected one");
        refused(&["\u{5356}".as_bytes()], "seckill-place is not plain ASCII text");
        refused(&[b"\xff"], "seckill-place is not plain ASCII text");
    }
}
