//! What handlers of both servers have in common: the sale in their path, and `?` on a problem.
//!
//! Input: paths; errors of handlers and extractors. Output: values; problem documents. actix makes the answer to an error without
//! its request, so it cannot know the client's language there: a middleware, [`as_problem`], writes the document afterwards.

use super::language::Language;
use super::problem::{Kind, Problem};
use crate::domain::ids::{DropId, SaleId};
use actix_web::dev::ServiceResponse;
use actix_web::error::PathError;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::middleware::ErrorHandlerResponse;
use actix_web::{Error, HttpResponse, ResponseError, web};

/// The sale in a path.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SaleInPath {
    /// Id of the sale.
    #[param(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub(crate) sale_id: SaleId,
}

/// The drop in a path.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DropInPath {
    /// Id of the drop.
    #[param(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub(crate) drop_id: DropId,
}

/// How both servers read paths: an id that is none is a problem that says why.
pub(crate) fn path_config() -> web::PathConfig {
    web::PathConfig::default().error_handler(|error, _request| {
        let reason = if let PathError::Deserialize(reason) = &error { reason.to_string() } else { error.to_string() };
        let chinese = format!("路径不符合要求：{reason}");
        Kind::BadRequest.because_both(reason, chinese).into()
    })
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.kind().http_status()
    }

    /// Without the document, which [`as_problem`] adds.
    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status_code())
    }
}

/// Writes the document of a problem that a handler or an extractor returned. A client's error that actix found by itself (a header
/// it refuses) becomes a problem too.
pub(crate) fn as_problem<B>(answer: ServiceResponse<B>) -> actix_web::Result<ErrorHandlerResponse<B>> {
    let content_type = answer.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let problem = match answer.response().error().and_then(Error::as_error::<Problem>) {
        _ if content_type.is_some_and(|kind| kind.starts_with(Kind::MEDIA_TYPE.as_bytes())) => None,
        Some(problem) => Some(problem.clone()),
        None => kind_of(answer.status()).map(Problem::from),
    };
    Ok(ErrorHandlerResponse::Response(match problem {
        None => answer.map_into_left_body(),
        Some(problem) => {
            let document = problem.respond(Language::of(answer.request().headers()));
            answer.into_response(document).map_into_right_body()
        }
    }))
}

fn kind_of(status: StatusCode) -> Option<Kind> {
    Some(match status.as_u16() {
        404 => Kind::NoSuchRoute,
        405 => Kind::MethodNotAllowed,
        408 => Kind::RequestTimeout,
        413 => Kind::BodyTooLarge,
        415 => Kind::WrongMediaType,
        400..500 => Kind::BadRequest,
        _ => return None,
    })
}
