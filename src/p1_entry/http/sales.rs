//! `GET /v1/sales` and `GET /v1/sales/{sale_id}`.

use super::state::PublicApi;
use crate::domain::challenge::Challenge;
use crate::domain::line::LineKind;
use crate::domain::needs::Needs;
use crate::domain::policy::LimitBy;
use crate::domain::sale::Sale;
use crate::domain::states::P1Entry;
use crate::http::extract::SaleInPath;
use crate::http::openapi::problem_responses;
use crate::http::problem::{Kind, Problem};
use crate::http::times::shown_time;
use crate::p1_entry::catalog::SaleView;
use crate::p1_entry::sale_list::{ListedSale, ListedSales};
use crate::runtime::now_ms;
use actix_web::HttpResponse;
use actix_web::http::header::{AGE, CACHE_CONTROL, ContentType};
use actix_web::web::{self, Bytes};
use serde::Serialize;
use std::sync::Arc;

/// A sale as a buyer sees it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(super) struct SaleInfo {
    #[schema(value_type = String, example = "demo")]
    sale_id: String,
    product_id: String,
    /// The drop that it belongs to: `GET /v1/drops/{drop_id}`; null: none.
    drop_id: Option<String>,
    title: String,
    price_cents: i64,
    #[schema(example = "CNY")]
    currency: String,
    /// Start of the sale, RFC 3339.
    starts_at: String,
    /// End of the sale, RFC 3339.
    ends_at: String,
    /// Most units a buyer may have; null: no limit.
    per_user_limit: Option<u32>,
    /// Who counts as one buyer for the limit: `account`, or `person`, the fact `person` of the access token or of a pass.
    #[schema(value_type = String, example = "account")]
    limit_by: LimitBy,
    /// Whether a purchase needs a purchase token: `POST …/tokens`. A sale with a waiting room needs one, too.
    token_required: bool,
    /// Whether a purchase token needs a place in the waiting room that was released: `POST …/places`.
    waiting_room: bool,
    /// Seconds that a buyer has to pay after the order is written; null: there is no payment step.
    pay_within_s: Option<u32>,
    /// What a buyer needs: of each fact one of its values, and with `pass` a pass, sent as `Seckill-Pass`; null: nothing.
    #[schema(value_type = Option<Needs>, example = json!({ "tier": ["gold", "platinum"], "pass": true }))]
    needs: Option<Arc<Needs>>,
    /// What a buyer passes at `POST …/tokens`: `pow:N`, a proof of work of N zero bits; `hook`, a check by the shop; null: nothing.
    #[schema(value_type = Option<String>, example = "pow:18")]
    challenge: Option<Challenge>,
    /// The kind of its line: `raffle`, drawn, or `waitlist`, by arrival: `POST …/entries`; null: it has none.
    #[schema(value_type = Option<String>, example = "raffle")]
    line: Option<LineKind>,
    /// Whether its units go to its line, and to no click.
    by_line: bool,
    /// READY, SOLD_OUT, NOT_STARTED, ENDED, PAUSED or LOADING.
    #[schema(example = "READY")]
    state: &'static str,
    /// The state's code.
    #[schema(example = "P1-S1")]
    code: &'static str,
    /// Units left, approximate; null when it is not known.
    remaining: Option<i64>,
    /// When it gets its next units, RFC 3339; only in lists and drops, and only where it waits for some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    next_release_at: Option<String>,
    /// The server's clock when it answered, Unix milliseconds, for countdowns; only of one sale, because a list may be older.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_time_ms: Option<i64>,
}

impl SaleInfo {
    fn new(sale: &Sale, state: P1Entry, remaining: Option<i64>) -> Self {
        Self {
            sale_id: sale.sale_id.to_string(),
            product_id: sale.product_id.clone(),
            drop_id: sale.in_drop.as_ref().map(|drop| drop.drop_id.to_string()),
            title: sale.title.clone(),
            price_cents: sale.price_cents,
            currency: sale.currency.clone(),
            starts_at: shown_time(sale.starts_at_ms),
            ends_at: shown_time(sale.ends_at_ms),
            per_user_limit: sale.policy.limit(),
            limit_by: sale.limit_by,
            token_required: sale.token_required || sale.challenge.is_some(),
            waiting_room: sale.waiting_room,
            pay_within_s: sale.payment.map(|terms| terms.pay_within_s),
            needs: sale.needs.clone(),
            challenge: sale.challenge,
            line: sale.line,
            by_line: sale.by_line,
            state: state.label(),
            code: state.code(),
            remaining,
            next_release_at: None,
            server_time_ms: None,
        }
    }

    /// What the entry knows is fresher; a sale it does not know is listed as the database has it.
    pub(super) fn of_listed(listed: &ListedSale, now_ms: i64) -> Self {
        let info = match &listed.view {
            Some(view) => Self::of_view(view, now_ms),
            None => Self::new(&listed.sale, listed.sale.entry(now_ms), None),
        };
        Self { next_release_at: listed.next_release_ms.map(shown_time), ..info }
    }

    fn of_view(view: &SaleView, now_ms: i64) -> Self {
        let mut state = view.sale.entry(now_ms);
        if state == P1Entry::Ready && view.sold_out.is_some() {
            state = P1Entry::SoldOut;
        }
        Self::new(&view.sale, state, view.remaining)
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct SaleListAnswer {
    sales: Vec<SaleInfo>,
}

/// How long a list of sales may be kept by caches: a second.
const LIST_AGE: &str = "public, max-age=1";

problem_responses! {
    SaleListProblems: 503;
    SaleProblems: 400, 404, 503;
}

/// List the sales that are not closed and ended less than a day ago, newest first, a thousand at most.
#[utoipa::path(
    get, path = "/v1/sales", operation_id = "list_sales", tag = "sales",
    responses(
        (status = 200, description = "Sales. Up to a second old, and the units left of one of many sales up to some seconds. \
            While the database does not answer the last list, however old",
         body = SaleListAnswer,
         headers(("Age" = u64, description = "How old the list is, seconds"))),
        SaleListProblems,
    )
)]
pub(super) async fn list(public: web::Data<PublicApi>) -> Result<HttpResponse, Problem> {
    let list = public.sales.get().await?;
    let body = match list.body.get() {
        Some(body) => body.clone(),
        None => {
            let made = body_of(&list.sales)?;
            list.body.get_or_init(|| made).clone()
        }
    };
    Ok(of_list(&list, body))
}

/// An answer made of the list. A cache in front takes the crowd that reloads.
pub(super) fn of_list(list: &ListedSales, body: Arc<str>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, LIST_AGE))
        .insert_header((AGE, list.made_at.elapsed().as_secs()))
        .content_type(ContentType::json())
        .body(Bytes::from_owner(SharedList(body)))
}

/// The text of a list, for as many answers as there are.
struct SharedList(Arc<str>);

impl AsRef<[u8]> for SharedList {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn body_of(listed: &[ListedSale]) -> Result<Arc<str>, Problem> {
    let now = now_ms();
    let answer = SaleListAnswer { sales: listed.iter().map(|listed| SaleInfo::of_listed(listed, now)).collect() };
    json_text(&answer)
}

/// The text of an answer that is made once for many.
pub(super) fn json_text(answer: &impl Serialize) -> Result<Arc<str>, Problem> {
    serde_json::to_string(answer).map(Arc::from).map_err(|error| {
        tracing::error!(phase = "p1_entry", %error, "the list of sales cannot be written");
        Kind::Internal.into()
    })
}

/// Show one sale.
#[utoipa::path(
    get, path = "/v1/sales/{sale_id}", operation_id = "show_sale", tag = "sales",
    params(SaleInPath),
    responses(
        (status = 200, description = "The sale", body = SaleInfo,
         headers(("Age" = u64, description = "Only while the servers cannot be asked: how old what is shown is, seconds; ten \
            minutes at most, then 503. A purchase is never decided by it"))),
        SaleProblems,
    )
)]
pub(super) async fn show(public: web::Data<PublicApi>, sale: web::Path<SaleInPath>) -> Result<HttpResponse, Problem> {
    let (view, age) = public.catalog.shown(&sale.sale_id).await?;
    let now = now_ms();
    let answer = SaleInfo { server_time_ms: Some(now), ..SaleInfo::of_view(&view, now) };
    let mut http = HttpResponse::Ok();
    if !age.is_zero() {
        http.insert_header((AGE, age.as_secs()));
    }
    // A clock that a cache has kept is wrong.
    Ok(http.insert_header((CACHE_CONTROL, "no-store")).json(answer))
}
