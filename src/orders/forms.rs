//! What callers say about orders, and the rules for it. The command line and both APIs read the same ones.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::instant;
use crate::domain::order_life::OrderState;
use crate::domain::payment::{AMOUNT_MAX, PAYMENT_ID_BYTES_MAX, Price};
use crate::domain::snowflake::first_id_at;
use crate::http::bad_form::{BadForm, bad};
use crate::http::cursors::{place_of, time};
use crate::orders::rows::{NewPayment, OrdersQuery, PAGE_MAX, REFUNDS_PAGE_MAX, RefundPlace, RefundsFilter};
use chrono::{DateTime, Utc};
use clap::builder::NonEmptyStringValueParser;
use serde::Deserialize;

/// Clocks of an api process and of Redis may differ by this much: more is found among the orders of the hour before or after.
const CLOCKS_DIFFER_MS: i64 = 60_000;

/// What the command line says of fields that it shows otherwise.
const STATE_HELP: &str = "Only in this state: UNPAID, PAID, EXPIRED or CANCELLED; needs --sale or --buyer";
const FROM_HELP: &str =
    "Only accepted at this time or later, RFC 3339: when the purchase was accepted, whenever its token was issued";
const PAYMENT_ID_HELP: &str =
    "The provider's id of the payment, 1 to 128 characters; with several providers, PROVIDER:ID";
const CURSOR_HELP: &str =
    "Only orders before this one: the last one of the page before, or of an export that was cut off";

/// Longest reason, characters.
const REASON_CHARS_MAX: usize = 500;

/// Orders of a page when nothing else is asked for.
const fn page() -> u16 {
    50
}

/// A payment as the shop's backend reports it.
#[derive(Debug, Clone, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = PaidBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaymentForm {
    /// The provider's id of the payment: a repeated call with the same id changes nothing. The same id with another order, amount or
    /// currency is other money, which has to go back. A shop with several providers puts the provider before it, `provider:id`.
    #[schema(min_length = 1, max_length = 128)]
    #[arg(long, value_name = "ID", help = PAYMENT_ID_HELP, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) payment_id: String,
    /// In the smallest unit of the currency; a payment of nothing is none.
    #[schema(minimum = 1)]
    #[arg(
        long,
        help = "Amount in the currency's smallest unit: 199900 for 1999.00 CNY",
        value_parser = smallest_units,
        allow_negative_numbers = true
    )]
    pub(crate) amount: i64,
    /// ISO 4217 code.
    #[schema(pattern = "^[A-Z]{3}$", example = "CNY")]
    #[arg(long)]
    pub(crate) currency: String,
}

/// A whole number of the smallest unit; people write amounts with a point.
fn smallest_units(text: &str) -> Result<i64, String> {
    let expected = "expected a whole number of the currency's smallest unit, e.g. 199900 for 1999.00 CNY";
    text.parse().map_err(|_| expected.to_owned())
}

/// An id of a provider: visible ASCII, so that logs, columns and pages show it as it is.
fn checked_payment_id(id: &str) -> Result<&str, BadForm> {
    if (1..=PAYMENT_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(id);
    }
    bad("payment_id", "1 to 128 visible ASCII characters", "1 至 128 个可见 ASCII 字符")
}

impl PaymentForm {
    /// The payment, for this order.
    pub(crate) fn of(self, request_id: RequestId) -> Result<NewPayment, BadForm> {
        checked_payment_id(&self.payment_id)?;
        if !(1..=AMOUNT_MAX).contains(&self.amount) {
            let expected =
                "a whole number of the currency's smallest unit, from 1 to 9007199254740991; nothing is no payment";
            return bad("amount", expected, "以币种最小单位计的整数，1 至 9007199254740991；金额为零不是付款");
        }
        let currency = self.currency.as_bytes();
        if currency.len() != 3 || !currency.iter().all(u8::is_ascii_uppercase) {
            return bad("currency", "three capital letters, e.g. CNY", "三个大写字母，例如 CNY");
        }
        let price = Price { amount_cents: self.amount, currency: self.currency };
        Ok(NewPayment { payment_id: self.payment_id, request_id, price })
    }
}

/// Why an order is cancelled.
#[derive(Debug, Clone, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = CancelBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelForm {
    /// Why, for the record.
    #[schema(min_length = 1, max_length = 500)]
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    reason: String,
}

impl CancelForm {
    /// The reason.
    pub(crate) fn checked(self) -> Result<String, BadForm> {
        let reason = self.reason.trim();
        if reason.is_empty() || reason.chars().count() > REASON_CHARS_MAX {
            return bad("reason", "1 to 500 characters", " 1 至 500 个字符");
        }
        Ok(reason.to_owned())
    }
}

/// Which payment's money went back.
#[derive(Debug, Clone, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = RefundedBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefundedForm {
    /// The payment's id, as it is on record.
    #[schema(min_length = 1, max_length = 128)]
    #[arg(long, value_name = "ID", help = "The provider's id of the payment", value_parser = NonEmptyStringValueParser::new())]
    payment_id: String,
}

impl RefundedForm {
    /// The payment's id.
    pub(crate) fn checked(self) -> Result<String, BadForm> {
        checked_payment_id(&self.payment_id)?;
        Ok(self.payment_id)
    }
}

/// Which orders are listed.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrdersForm {
    /// Only of this sale.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    #[arg(long)]
    pub(crate) sale: Option<SaleId>,
    /// Only of this buyer.
    #[param(value_type = Option<String>)]
    #[arg(long)]
    pub(crate) buyer: Option<UserId>,
    /// Only UNPAID, PAID, EXPIRED or CANCELLED; needs a sale or a buyer.
    #[arg(long, help = STATE_HELP)]
    pub(crate) state: Option<String>,
    /// Only accepted from then on, RFC 3339: when the purchase was accepted, whenever its token was issued or its order was written.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "instant::read_optional")]
    #[arg(long, value_name = "TIME", help = FROM_HELP, value_parser = instant::instant)]
    pub(crate) from: Option<DateTime<Utc>>,
    /// Only accepted before then, RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "instant::read_optional")]
    #[arg(long, value_name = "TIME", value_parser = instant::instant)]
    pub(crate) to: Option<DateTime<Utc>>,
    /// `next` of the page before.
    #[param(value_type = Option<String>, pattern = "^[1-9][0-9]{0,18}$")]
    #[arg(long, value_name = "RID", help = CURSOR_HELP)]
    pub(crate) cursor: Option<RequestId>,
    /// How many; 50 when left out.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500)]
    #[serde(default = "page")]
    #[arg(long, help = "Most orders, 1 to 500", default_value_t = page())]
    pub(crate) limit: u16,
}

/// Which orders are exported: all that are found, so there is no limit.
#[derive(Debug, Clone, Deserialize, clap::Args, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportForm {
    /// Only of this sale.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    #[arg(long)]
    sale: Option<SaleId>,
    /// Only of this buyer.
    #[param(value_type = Option<String>)]
    #[arg(long)]
    buyer: Option<UserId>,
    /// Only UNPAID, PAID, EXPIRED or CANCELLED; needs a sale or a buyer.
    #[arg(long, help = STATE_HELP)]
    state: Option<String>,
    /// Only accepted from then on, RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "instant::read_optional")]
    #[arg(long, value_name = "TIME", help = FROM_HELP, value_parser = instant::instant)]
    from: Option<DateTime<Utc>>,
    /// Only accepted before then, RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "instant::read_optional")]
    #[arg(long, value_name = "TIME", value_parser = instant::instant)]
    to: Option<DateTime<Utc>>,
    /// Only orders before this one: the last order of an export that was cut off.
    #[param(value_type = Option<String>, pattern = "^[1-9][0-9]{0,18}$")]
    #[arg(long, value_name = "RID", help = CURSOR_HELP)]
    cursor: Option<RequestId>,
}

impl ExportForm {
    /// The question for its first page.
    pub(crate) fn query(self, token_ttl_s: u64) -> Result<OrdersQuery, BadForm> {
        let Self { sale, buyer, state, from, to, cursor } = self;
        OrdersForm { sale, buyer, state, from, to, cursor, limit: PAGE_MAX }.query(token_ttl_s)
    }
}

impl OrdersForm {
    /// The question to the database. An id is as old as its purchase token, which may be used for `token_ttl_s`: an order that was
    /// accepted in a time has an id of that time, or of so much earlier.
    pub(crate) fn query(self, token_ttl_s: u64) -> Result<OrdersQuery, BadForm> {
        if !(1..=PAGE_MAX).contains(&self.limit) {
            return bad("limit", "1 to 500", "1 至 500");
        }
        let state = match self.state.as_deref().map(OrderState::from_code) {
            Some(None) => {
                return bad("state", "UNPAID, PAID, EXPIRED or CANCELLED", "UNPAID、PAID、EXPIRED 或 CANCELLED");
            }
            Some(Some(_)) if self.sale.is_none() && self.buyer.is_none() => {
                return bad("state", "to come with a sale or a buyer", "与活动或买家一起给出");
            }
            state => state.flatten(),
        };
        let ms = |time: DateTime<Utc>| time.timestamp_millis();
        let (accepted_from_ms, accepted_to_ms) = (self.from.map(ms), self.to.map(ms));
        let token_ttl_ms = i64::try_from(token_ttl_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let earliest = |from: i64| first_id_at(from.saturating_sub(token_ttl_ms).saturating_sub(CLOCKS_DIFFER_MS));
        let to = accepted_to_ms.map(|to| first_id_at(to.saturating_add(CLOCKS_DIFFER_MS)));
        let before = match (self.cursor, to) {
            (Some(cursor), Some(to)) => Some(cursor.min(to)),
            (cursor, to) => cursor.or(to),
        };
        let from = accepted_from_ms.map(earliest);
        let OrdersForm { sale, buyer, limit, .. } = self;
        Ok(OrdersQuery { sale, buyer, state, from, before, accepted_from_ms, accepted_to_ms, limit })
    }
}

/// Which payments are listed whose money has to go back.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefundsForm {
    /// Only of this sale.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    #[arg(long)]
    sale: Option<SaleId>,
    /// `next` of the page before.
    #[arg(long)]
    cursor: Option<String>,
    /// How many; 1,000 when left out. 0: only the count.
    #[param(value_type = Option<u16>, minimum = 0, maximum = 1000)]
    #[serde(default = "refunds_page")]
    #[arg(
        long,
        help = "Most payments, 1 to 1000",
        default_value_t = refunds_page(),
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    limit: u16,
}

const fn refunds_page() -> u16 {
    REFUNDS_PAGE_MAX
}

impl RefundsForm {
    /// The question to the database.
    pub(crate) fn filter(self) -> Result<RefundsFilter, BadForm> {
        if self.limit > REFUNDS_PAGE_MAX {
            return bad("limit", "0 to 1000", "0 至 1000");
        }
        let after = self.cursor.as_deref().map(refund_place).transpose()?;
        Ok(RefundsFilter { sale: self.sale, after, limit: self.limit })
    }
}

/// Where a page of refunds ended.
pub(super) fn refund_place(cursor: &str) -> Result<RefundPlace, BadForm> {
    place_of(cursor, |cursor| {
        let (state_at, id) = cursor.split_once('-')?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let id = id.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
        Some(RefundPlace { state_at_ms: time(state_at)?, payment_id: String::from_utf8(id).ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payment_that_cannot_be_one_names_its_field() {
        let form = |payment_id: &str, amount, currency: &str| {
            let (payment_id, currency) = (payment_id.to_owned(), currency.to_owned());
            PaymentForm { payment_id, amount, currency }.of(RequestId::new(7).unwrap())
        };
        assert!(form("pi_3", 1, "CNY").is_ok());
        let field = |form: Result<NewPayment, BadForm>| form.unwrap_err().field;
        assert_eq!(field(form("", 1, "CNY")), "payment_id");
        assert_eq!(field(form("a b", 1, "CNY")), "payment_id");
        assert_eq!(field(form(&"x".repeat(129), 1, "CNY")), "payment_id");
        assert_eq!(field(form("p", -1, "CNY")), "amount");
        assert_eq!(field(form("p", 0, "CNY")), "amount");
        assert_eq!(field(form("p", 1, "yuan")), "currency");
    }

    #[test]
    fn a_cancellation_says_why() {
        let reason = |text: &str| CancelForm { reason: text.to_owned() }.checked();
        assert_eq!(reason(" never paid "), Ok("never paid".to_owned()));
        for text in ["", "  ", &"\u{4e70}".repeat(501)] {
            assert_eq!(reason(text).unwrap_err().field, "reason", "{text}");
        }
        assert!(reason(&"\u{4e70}".repeat(500)).is_ok());
    }

    #[test]
    fn a_page_ends_at_the_cursor_or_at_the_time_whichever_is_first() {
        let id = |value| RequestId::new(value).unwrap();
        let at_ms = 1_763_720_000_000;
        let query = |cursor, to_ms: Option<i64>| {
            let to = to_ms.map(|ms| DateTime::from_timestamp_millis(ms).unwrap());
            OrdersForm { cursor, to, limit: 1, ..OrdersForm::default() }.query(900).unwrap().before
        };
        assert_eq!(query(None, None), None);
        assert_eq!(query(Some(id(7)), Some(at_ms)), Some(id(7)));
        assert_eq!(query(Some(id(u64::MAX >> 1)), Some(at_ms)), Some(first_id_at(at_ms + CLOCKS_DIFFER_MS)));
        let from = DateTime::from_timestamp_millis(at_ms);
        let query = OrdersForm { from, limit: 1, ..OrdersForm::default() }.query(900).unwrap();
        let (first, as_asked) = (query.from.unwrap(), query.accepted_from_ms);
        assert_eq!((first, as_asked), (first_id_at(at_ms - 960_000), Some(at_ms)), "tokens are used later");
        let refused = |form: OrdersForm| form.query(900).unwrap_err().field;
        assert_eq!(refused(OrdersForm { limit: 0, ..OrdersForm::default() }), "limit");
        assert_eq!(refused(OrdersForm { state: Some("PAID".into()), limit: 1, ..OrdersForm::default() }), "state");
        assert_eq!(refused(OrdersForm { state: Some("paid".into()), limit: 1, ..OrdersForm::default() }), "state");
    }

    #[test]
    fn a_list_of_refunds_that_cannot_be_answered_names_its_field() {
        let field = |form: RefundsForm| form.filter().err().map(|bad| bad.field);
        assert_eq!(field(RefundsForm::default()), None, "only the count");
        assert_eq!(field(RefundsForm { limit: 1001, ..RefundsForm::default() }), Some("limit"));
        assert_eq!(field(RefundsForm { cursor: Some("x".into()), ..RefundsForm::default() }), Some("cursor"));
    }
}
