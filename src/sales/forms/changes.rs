//! Changes of a sale that exists, and a new one with its terms. What may be changed when: `sale_change`.

use super::challenge::{self, ChallengeOrNone};
use super::new_sale::NewSaleForm;
use crate::domain::ids::SaleId;
use crate::domain::instant;
use crate::domain::sale::Sale;
use crate::http::bad_form::BadForm;
use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

/// A number; without one: none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OrNone(pub(crate) Option<u32>);

/// A change of a sale's terms. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = EditBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaleEditForm {
    /// What is sold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64)]
    #[arg(long)]
    pub(crate) product: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    #[arg(long, help = "What a buyer reads")]
    pub(crate) title: Option<String>,
    /// In the currency's smallest unit; from 1 where there is a payment step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    #[arg(long, help = PRICE_HELP, allow_negative_numbers = true)]
    pub(crate) price_cents: Option<i64>,
    /// Three capital letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Z]{3}$")]
    #[arg(long, help = "ISO 4217 code")]
    pub(crate) currency: Option<String>,
    /// Most units a buyer may have; null: no limit.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    #[arg(long, value_name = "UNITS|none", help = "Most units a buyer may have, or none", value_parser = or_none)]
    pub(crate) limit: Option<OrNone>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "true|false", help = "Whether buyers need a purchase token")]
    pub(crate) token_required: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "true|false", help = "Whether buyers pass a waiting room")]
    pub(crate) waiting_room: Option<bool>,
    /// Seconds that a buyer has to pay; null: no payment step.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 2_592_000)]
    #[arg(long, value_name = "SECONDS|none", help = PAY_WITHIN_HELP, value_parser = or_none)]
    pub(crate) pay_within_s: Option<OrNone>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86_400)]
    #[arg(long, value_name = "SECONDS", help = PAY_GRACE_HELP)]
    pub(crate) pay_grace_s: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "true|false", help = LIMIT_RETURNS_HELP)]
    pub(crate) limit_returns: Option<bool>,
    /// What a buyer passes before a purchase token is issued: `pow:N` or `hook`; null: nothing.
    #[serde(default, deserialize_with = "challenge::given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "pow:18")]
    #[arg(long, value_name = "CHALLENGE|none", help = challenge::EDIT_HELP, value_parser = challenge::or_none)]
    pub(crate) challenge: Option<ChallengeOrNone>,
    /// Whether units are asked for, which an edit does not change: the refusal says what does.
    #[serde(default, deserialize_with = "came", skip_serializing)]
    #[schema(ignore)]
    #[arg(skip)]
    pub(crate) stock: bool,
}

const PRICE_HELP: &str = "Price of one unit in the currency's smallest unit; from 1 where there is a payment step";
const PAY_WITHIN_HELP: &str = "Seconds that a buyer has to pay, or none for no payment step";
const PAY_GRACE_HELP: &str = "Seconds between the deadline that buyers see and the one that is enforced";
const LIMIT_RETURNS_HELP: &str = "Whether an order that ends unpaid no longer counts against its buyer's limit";

/// A field that is there, be it null.
pub(super) fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<OrNone>, D::Error> {
    OrNone::deserialize(value).map(Some)
}

/// Whether a field is there, whatever it is.
fn came<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}

/// The same on the command line: a number, or the word none.
pub(super) fn or_none(text: &str) -> Result<OrNone, String> {
    if text == "none" {
        return Ok(OrNone(None));
    }
    text.parse().map(|number| OrNone(Some(number))).map_err(|_| "expected a whole number or none".to_owned())
}

/// New times of a sale. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = RescheduleBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct RescheduleForm {
    /// RFC 3339.
    #[serde(default, deserialize_with = "instant::read_optional", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[arg(
        long,
        help = "New start, RFC 3339: until 30 seconds before the old one, and at least 30 seconds from now",
        value_parser = instant::instant,
        required_unless_present = "ends_at"
    )]
    pub(crate) starts_at: Option<DateTime<Utc>>,
    /// RFC 3339.
    #[serde(default, deserialize_with = "instant::read_optional", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[arg(
        long,
        help = "New end, RFC 3339: until the old one has passed, and in the future",
        value_parser = instant::instant
    )]
    pub(crate) ends_at: Option<DateTime<Utc>>,
}

/// A new sale with the terms of another one.
#[derive(Debug, Clone, Serialize, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = CloneBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloneForm {
    /// The new sale's.
    #[schema(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    #[arg(long, help = "Id of the new sale")]
    pub(crate) id: SaleId,
    /// RFC 3339.
    #[serde(deserialize_with = "instant::read")]
    #[schema(value_type = String, format = DateTime)]
    #[arg(long, help = "Start, RFC 3339", value_parser = instant::instant)]
    pub(crate) starts_at: DateTime<Utc>,
    /// RFC 3339.
    #[serde(deserialize_with = "instant::read")]
    #[schema(value_type = String, format = DateTime)]
    #[arg(long, help = "End, RFC 3339, after the start", value_parser = instant::instant)]
    pub(crate) ends_at: DateTime<Utc>,
    /// Units; left out: as many as the other sale was ever granted.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) stock: Option<i64>,
    /// Whether buyers do not see it until it is published.
    #[serde(default)]
    #[arg(long, help = "Buyers do not see it until it is published")]
    pub(crate) hidden: bool,
}

impl CloneForm {
    /// The new sale as a draft.
    pub(crate) fn draft(&self, of: &Sale) -> Result<Sale, BadForm> {
        let new = NewSaleForm {
            id: self.id.clone(),
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            stock: self.stock.unwrap_or(of.granted),
            hidden: self.hidden,
            ..NewSaleForm::of(of)
        };
        new.draft()
    }
}
