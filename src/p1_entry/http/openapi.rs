//! The contract as a document: `/openapi.json`. The page that shows it (`/docs/`) is `console`'s.

use super::{draws, drops, entries, events, my_orders, orders, places, sales, tokens};
use crate::http::openapi::{ACCESS_TOKENS, ProblemBody, ProblemCodes, ProblemResponse};
use crate::http::problem::{Kind, Problem};
use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use actix_web::web::Bytes;
use std::sync::LazyLock;
use utoipa::openapi::RefOr;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::{Modify, OpenApi};

/// `X-Request-Id` of every call and every answer.
struct RequestIdHeaders;

const REQUEST_ID: &str = "X-Request-Id";

impl Modify for RequestIdHeaders {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        // Any text, without a pattern: what cannot be used is replaced, not refused.
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let sent = ParameterBuilder::new()
            .name(REQUEST_ID)
            .parameter_in(ParameterIn::Header)
            .description(Some("The caller's id of this call, 1 to 64 of A-Z a-z 0-9 . _ -; another one is replaced"))
            .schema(Some(text()))
            .build();
        let request_id = || {
            HeaderBuilder::new()
                .schema(Some(text()))
                .description(Some("The call's id: the caller's, or a new one"))
                .build()
        };
        for path in document.paths.paths.values_mut() {
            for call in [&mut path.get, &mut path.post, &mut path.delete].into_iter().flatten() {
                call.parameters.get_or_insert_default().push(RefOr::T(sent.clone()));
                let answers = call.responses.responses.values_mut();
                for answer in
                    answers.filter_map(|answer| if let RefOr::T(answer) = answer { Some(answer) } else { None })
                {
                    answer.headers.insert(REQUEST_ID.to_owned(), RefOr::T(request_id()));
                }
            }
        }
        let problem =
            document.components.as_mut().and_then(|components| components.responses.get_mut("ProblemResponse"));
        if let Some(RefOr::T(problem)) = problem {
            problem.headers.insert(REQUEST_ID.to_owned(), RefOr::T(request_id()));
        }
    }
}

#[derive(OpenApi)]
#[openapi(
    info(title = "seckill", description = "A flash-sale order system: 202 means admitted, the status shows the outcome."),
    paths(sales::list, sales::show, drops::show, places::enter, places::show, tokens::issue, entries::enter, entries::mine, entries::leave, draws::show, draws::list, orders::buy, orders::show, events::follow,
        my_orders::list, my_orders::show, my_orders::cancel),
    components(schemas(ProblemBody), responses(ProblemResponse)),
    modifiers(&ACCESS_TOKENS, &ProblemCodes, &RequestIdHeaders),
    tags((name = "sales"), (name = "waiting room"), (name = "lines"), (name = "orders"), (name = "my orders"))
)]
struct Document;

/// The OpenAPI document.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

pub(super) async fn json() -> Result<HttpResponse, Problem> {
    // Made once: a client that asks again and again costs no more than the bytes.
    static JSON: LazyLock<Option<Bytes>> = LazyLock::new(|| serde_json::to_vec(&document()).ok().map(Bytes::from));
    let json = JSON.clone().ok_or(Problem::from(Kind::Internal))?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(json))
}
