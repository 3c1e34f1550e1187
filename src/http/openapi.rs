//! Parts of an OpenAPI document that both HTTP APIs have: the problem document, its responses and the bearer token.

use super::problem_kinds::Kind;
use crate::domain::needs::Needs;
use std::collections::BTreeSet;
use utoipa::Modify;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{RefOr, Schema};

/// A problem document (RFC 9457).
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "describes the document that `Problem::respond` writes")]
pub(crate) struct ProblemBody {
    r#type: String,
    /// The problem in the client's language (English or Chinese).
    title: String,
    status: u16,
    /// Stable code; a state code where a state is the reason.
    #[schema(example = "P2-R2")]
    code: String,
    /// This call: `urn:seckill:x-request-id:` and the answer's X-Request-Id.
    #[schema(example = "urn:seckill:x-request-id:5b1f6e0a9c2d4e37")]
    instance: Option<String>,
    /// What exactly, and what would be accepted.
    detail: Option<String>,
    /// The request it is about.
    request_id: Option<String>,
    /// Where to ask for its status.
    status_url: Option<String>,
    /// The entry of a line that it is about.
    entry_id: Option<String>,
    remaining: Option<u64>,
    /// What the sale needs of its buyers, of P1-Q1.
    needs: Option<Needs>,
    /// The field of the body that cannot be used.
    #[schema(example = "price_cents")]
    field: Option<String>,
    /// The sale of a drop that has this field.
    sale_id: Option<String>,
    /// The challenge to solve, of P1-Q4.
    challenge: Option<super::new_challenge::NewChallenge>,
}

/// A problem; `code` says which, `Retry-After` when to come back.
#[derive(utoipa::ToResponse)]
#[response(
    description = "A problem; `code` says which. `Retry-After`, where there is one, is spread over some seconds, so that a crowd that was refused at one moment does not come back at one moment",
    content_type = "application/problem+json"
)]
#[allow(dead_code, reason = "a name for the OpenAPI document")]
pub(crate) struct ProblemResponse(ProblemBody);

/// Defines a type for `responses(…)` of a handler: a problem document for each status of the list.
macro_rules! problem_responses {
    ($($(#[$doc:meta])* $name:ident: $($status:literal),+;)+) => { $(
        $(#[$doc])*
        pub(super) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<String, utoipa::openapi::RefOr<utoipa::openapi::Response>> {
                $crate::http::openapi::problems(&[$($status),+])
            }
        }
    )+ };
}
pub(crate) use problem_responses;

/// The problem document as the response of each status.
pub(crate) fn problems(statuses: &[u16]) -> std::collections::BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let problem = || RefOr::Ref(utoipa::openapi::Ref::from_response_name("ProblemResponse"));
    statuses.iter().map(|status| (status.to_string(), problem())).collect()
}

/// Adds the security scheme `bearer`, with the format of the tokens if they have one.
pub(crate) struct BearerScheme(Option<&'static str>);

/// Buyers' tokens.
pub(crate) const ACCESS_TOKENS: BearerScheme = BearerScheme(Some("JWT"));
/// The one token of `admin.token`.
pub(crate) const ADMIN_TOKEN: BearerScheme = BearerScheme(None);

impl Modify for BearerScheme {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let mut scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        scheme.bearer_format = self.0.map(str::to_owned);
        document.components.get_or_insert_default().add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// Names every problem code in the document, so that it cannot lag behind the code. A later version has more of them: beside the known
/// ones any text is a code, or a generated client could not read the problems of a newer server.
pub(crate) struct ProblemCodes;

impl Modify for ProblemCodes {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemas = document.components.as_mut().map(|components| &mut components.schemas);
        let problem = schemas.and_then(|schemas| schemas.get_mut("ProblemBody"));
        let Some(RefOr::T(Schema::Object(problem))) = problem else { return };
        let Some(RefOr::T(Schema::Object(code))) = problem.properties.get("code") else { return };
        let codes: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let any = AnyOfBuilder::new().item(text().enum_values(Some(codes))).item(text());
        let any = any.description(code.description.clone()).examples(code.example.clone()).build();
        problem.properties.insert("code".to_owned(), Schema::AnyOf(any).into());
    }
}
