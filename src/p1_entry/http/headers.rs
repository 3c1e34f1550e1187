//! The head of a request: the buyer, the purchase token, the ticket of a place. A header given twice is refused, because two
//! readers could take two different values.

use super::state::PublicApi;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::http::problem::{Kind, Problem};
use actix_web::HttpRequest;

/// The one value of a header.
fn single<'a>(request: &'a HttpRequest, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = request.headers().get_all(name);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Kind::BadRequest.because(format!("header {name} is given more than once, expected one")));
    }
    value
        .to_str()
        .map(|text| Some(text.trim()))
        .map_err(|_| Kind::BadRequest.because(format!("header {name} is not plain ASCII text")))
}

/// The buyer that the access token names.
pub(super) fn buyer(public: &PublicApi, request: &HttpRequest) -> Result<UserId, Problem> {
    let header = single(request, "authorization")?.ok_or_else(|| {
        Kind::Unauthorized.because("header Authorization is missing, expected: Bearer <access token>")
    })?;
    let token = match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        Some(_) | None => {
            return Err(
                Kind::Unauthorized.because("header Authorization is malformed, expected: Bearer <access token>")
            );
        }
    };
    public.auth.check(token).map_err(|denied| Kind::Unauthorized.because(denied.0))
}

/// The purchase token, if one is sent.
pub(super) fn purchase_token(request: &HttpRequest) -> Result<Option<&str>, Problem> {
    single(request, "idempotency-key")
}

/// The ticket of a place in a waiting room, if one is sent.
pub(super) fn place_ticket(request: &HttpRequest) -> Result<Option<&str>, Problem> {
    single(request, "seckill-place")
}

/// The sale in the path.
pub(super) fn sale(text: &str) -> Result<SaleId, Problem> {
    SaleId::parse(text).map_err(|error| Kind::BadRequest.because(error.to_string()))
}

/// The request id in the path.
pub(super) fn request_id(text: &str) -> Result<RequestId, Problem> {
    RequestId::parse(text).map_err(|error| Kind::BadRequest.because(error.to_string()))
}

/// Refuses bodies that are not declared as JSON.
pub(super) fn json_only(request: &HttpRequest) -> Result<(), Problem> {
    let given = single(request, "content-type")?.unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let given = if given.is_empty() { "missing".to_owned() } else { format!("{given:?}") };
    Err(Kind::WrongMediaType.because(format!("header Content-Type is {given}, expected application/json")))
}
