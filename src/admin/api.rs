//! `/admin/v1`: who may ask, how bodies are read, and how errors are told. The routes are in the files beside it, one family
//! each; every one needs the bearer token, and every write a JSON object.

use super::{Admin, acts, audits, dlq, openapi, pipeline, register, sales};
use crate::http::problem::{Kind, Problem};
use crate::p5_reconcile::ReconcileError;
use crate::p5_reconcile::dlq::DlqError;
use crate::sales::SaleControlError;
use crate::store::mysql::DbError;
use crate::store::mysql::sales::SaleError;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::middleware::{Next, from_fn};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq;

/// Longest body, bytes: a thousand request ids fit.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// All of it, behind the token.
pub(super) fn scope() -> impl actix_web::dev::HttpServiceFactory {
    web::scope("/admin/v1")
        .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
        .wrap(from_fn(guard))
        .configure(sales::routes)
        .configure(acts::routes)
        .configure(audits::routes)
        .configure(dlq::routes)
        .configure(register::routes)
        .configure(pipeline::routes)
        .configure(openapi::routes)
        .default_service(web::to(no_such_route))
}

async fn no_such_route(request: HttpRequest) -> HttpResponse {
    let what = format!("{} {}; the routes are listed in /admin/v1/openapi.json", request.method(), request.path());
    Kind::NoSuchRoute.because(what).respond(&request)
}

async fn guard(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    match allowed(&request) {
        Ok(()) => next.call(request).await.map(ServiceResponse::map_into_left_body),
        Err(problem) => {
            let answer = problem.respond(request.request());
            Ok(request.into_response(answer).map_into_right_body())
        }
    }
}

fn allowed(request: &ServiceRequest) -> Result<(), Problem> {
    let admin = request.app_data::<web::Data<Admin>>().ok_or(Kind::Internal)?;
    let token = admin.token.expose();
    let given = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("");
    let given = given.strip_prefix("Bearer ").unwrap_or("");
    // In constant time: the answer must not tell how much of a guess was right.
    if !token.is_empty() && bool::from(given.as_bytes().ct_eq(token.as_bytes())) {
        return Ok(());
    }
    Err(Kind::Unauthorized.because("the admin API needs: Authorization: Bearer <admin.token>"))
}

/// A body as it arrives.
pub(super) type Body = Result<web::Bytes, actix_web::Error>;

/// Reads a JSON object strictly: a field nobody knows is a mistake to report.
pub(super) fn read<T: DeserializeOwned>(request: &HttpRequest, body: Body) -> Result<T, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if kind.split(';').next().unwrap_or("").trim() != "application/json" {
        return Err(Kind::WrongMediaType.because("send Content-Type: application/json"));
    }
    let body =
        body.map_err(|_| Kind::BodyTooLarge.because(format!("the body has more than {BODY_BYTES_MAX} bytes")))?;
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Kind::BadRequest.because("the body is not a JSON object, expected at least {}"));
    }
    serde_json::from_slice(&body)
        .map_err(|error| Kind::BadRequest.because(format!("the body is not as expected: {error}")))
}

/// The query of an address, strictly.
pub(super) fn query<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Problem> {
    web::Query::from_query(request.query_string())
        .map(web::Query::into_inner)
        .map_err(|error| Kind::BadRequest.because(format!("the query is not as expected: {error}")))
}

/// 200 with the document, or the problem. Nothing of it may be kept by a browser.
pub(super) fn answer<T: Serialize>(request: &HttpRequest, outcome: Result<T, Problem>) -> HttpResponse {
    match outcome {
        Ok(document) => HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(document),
        Err(problem) => problem.respond(request),
    }
}

impl From<DbError> for Problem {
    fn from(error: DbError) -> Self {
        Kind::Unavailable.because(error.to_string())
    }
}

impl From<SaleError> for Problem {
    fn from(error: SaleError) -> Self {
        let kind = match &error {
            SaleError::Exists(_)
            | SaleError::Archived(_)
            | SaleError::GrantConflict(_)
            | SaleError::BooksDisagree(_)
            | SaleError::Status(..) => Kind::Conflict,
            SaleError::Unknown(_) => Kind::SaleNotFound,
            SaleError::TooMuch(_) | SaleError::GrantReserved(_) => Kind::Unprocessable,
            SaleError::Db(_) => Kind::Unavailable,
        };
        kind.because(error.to_string())
    }
}

impl From<SaleControlError> for Problem {
    fn from(error: SaleControlError) -> Self {
        let kind = match error {
            SaleControlError::Sale(error) => return error.into(),
            SaleControlError::NoSuchSale(_) => Kind::SaleNotFound,
            SaleControlError::Closed(_)
            | SaleControlError::NotWarmed(_)
            | SaleControlError::KeysLost(_)
            | SaleControlError::OtherShards(..)
            | SaleControlError::Frozen(_) => Kind::Conflict,
            SaleControlError::Redis(_) | SaleControlError::Database(_) | SaleControlError::NotRecorded(_) => {
                Kind::Unavailable
            }
        };
        kind.because(error.to_string())
    }
}

impl From<ReconcileError> for Problem {
    fn from(error: ReconcileError) -> Self {
        let kind = match &error {
            ReconcileError::OtherShards(..) => Kind::Conflict,
            ReconcileError::Redis(_) | ReconcileError::Database(_) | ReconcileError::Moved => Kind::Unavailable,
        };
        kind.because(error.to_string())
    }
}

impl From<DlqError> for Problem {
    fn from(error: DlqError) -> Self {
        let kind = match &error {
            DlqError::Busy(_) => Kind::Conflict,
            DlqError::Redis(_) | DlqError::Database(_) | DlqError::Rabbit(_) => Kind::Unavailable,
        };
        kind.because(error.to_string())
    }
}
