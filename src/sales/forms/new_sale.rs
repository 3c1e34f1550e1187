//! A new sale, and the rules for it.

use super::challenge;
use super::needs::{self, GivenNeeds};
use super::timetable::{ReleaseForm, planned_releases};
use crate::domain::currency::is_in_use;
use crate::domain::ids::SaleId;
use crate::domain::instant;
use crate::domain::line::LineKind;
use crate::domain::order_life::PaymentTerms;
use crate::domain::policy::{LimitBy, PurchasePolicy};
use crate::domain::sale::{STOCK_MAX, Sale, SaleStatus};
use crate::domain::timetable::Timetable;
use crate::http::bad_form::{BadForm, bad};
use chrono::{DateTime, Utc};
use std::sync::Arc;

/// Highest price of one unit, in the currency's smallest unit.
const PRICE_CENTS_MAX: i64 = 1_000_000_000_000;
/// Longest product id, characters.
const PRODUCT_CHARS_MAX: usize = 64;
/// Longest title, characters.
pub(super) const TITLE_CHARS_MAX: usize = 200;
/// The grace of a sale that does not say, seconds.
pub(crate) const PAY_GRACE_S: u32 = 30;

/// A new sale.
#[derive(Debug, Clone, serde::Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = NewSaleBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSaleForm {
    #[serde(alias = "sale_id")]
    #[schema(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    #[arg(long, help = "1 to 64 characters of A-Z a-z 0-9 _ -")]
    pub(crate) id: SaleId,
    /// What is sold.
    #[serde(alias = "product_id")]
    #[schema(min_length = 1, max_length = 64)]
    #[arg(long)]
    pub(crate) product: String,
    #[schema(min_length = 1, max_length = 200)]
    #[arg(long, help = "What a buyer reads")]
    pub(crate) title: String,
    /// Units.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) stock: i64,
    /// Most units a buyer may have; no limit when left out.
    #[schema(minimum = 1)]
    #[arg(long, help = "Most units a buyer may have; 1: one per user; left out: no limit")]
    pub(crate) limit: Option<u32>,
    /// In the currency's smallest unit; from 1 with `pay_within_s`.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    #[arg(
        long,
        help = "Price of one unit in the currency's smallest unit; from 1 with --pay-within-s",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub(crate) price_cents: i64,
    #[serde(default = "yuan")]
    #[schema(default = "CNY", pattern = "^[A-Z]{3}$")]
    #[arg(long, help = "ISO 4217 code", default_value = "CNY")]
    pub(crate) currency: String,
    /// RFC 3339.
    #[serde(deserialize_with = "instant::read")]
    #[schema(value_type = String, format = DateTime)]
    #[arg(
        long,
        help = "Start, RFC 3339, e.g. 2026-01-01T10:00:00Z or …+08:00",
        value_parser = instant::instant
    )]
    pub(crate) starts_at: DateTime<Utc>,
    /// RFC 3339.
    #[serde(deserialize_with = "instant::read")]
    #[schema(value_type = String, format = DateTime)]
    #[arg(long, help = "End, RFC 3339, after the start", value_parser = instant::instant)]
    pub(crate) ends_at: DateTime<Utc>,
    #[serde(default)]
    #[arg(long, help = "Buyers need a purchase token")]
    pub(crate) token_required: bool,
    #[serde(default)]
    #[arg(long, help = ROOM_HELP)]
    pub(crate) waiting_room: bool,
    /// Seconds that a buyer has to pay; no payment step when left out.
    #[schema(minimum = 1, maximum = 2_592_000)]
    #[arg(long, value_name = "SECONDS", help = PAY_WITHIN_HELP)]
    pub(crate) pay_within_s: Option<u32>,
    /// Seconds between the deadline that buyers see and the one that is enforced; 30 when left out.
    #[serde(default = "grace_s")]
    #[schema(value_type = Option<u32>, maximum = 86_400, default = 30)]
    #[arg(
        long,
        value_name = "SECONDS",
        help = "Seconds between the deadline that buyers see and the one that is enforced",
        default_value_t = PAY_GRACE_S
    )]
    pub(crate) pay_grace_s: u32,
    /// Whether an order that ends unpaid no longer counts against its buyer's limit.
    #[serde(default)]
    #[arg(
        long,
        requires = "pay_within_s",
        help = "An order that ends unpaid no longer counts against its buyer's limit"
    )]
    pub(crate) limit_returns: bool,
    /// Whether buyers do not see it until it is published.
    #[serde(default)]
    #[arg(long, help = "Buyers do not see it until it is published")]
    pub(crate) hidden: bool,
    /// Warm it up at once.
    #[serde(default)]
    #[arg(long)]
    pub(crate) warm: bool,
    /// What a buyer needs: names of facts with their values, any one of each, and `pass`; nothing when left out. It never changes.
    #[serde(default)]
    #[schema(value_type = Option<crate::domain::needs::Needs>, example = json!({ "tier": ["gold", "platinum"], "pass": true }))]
    #[arg(long, value_name = "JSON", value_parser = needs::given, help = needs::HELP)]
    pub(crate) needs: Option<GivenNeeds>,
    /// Who counts as one buyer: `account`, the token's `sub`, or `person`, the fact `person`; for good. In a drop: that of the drop.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "person")]
    #[arg(long, value_name = "WHO", help = LIMIT_BY_HELP)]
    pub(crate) limit_by: Option<LimitBy>,
    /// What a buyer passes before a purchase token, which is needed then: `pow:N` (proof of work) or `hook` (the shop's risk service).
    #[serde(default)]
    #[schema(pattern = "^(pow:([1-9]|1[0-9]|2[0-4])|hook)$", example = "pow:18")]
    #[arg(long, value_name = "CHALLENGE", help = challenge::HELP)]
    pub(crate) challenge: Option<String>,
    /// Units that come while it sells, in the order of their times.
    #[serde(default)]
    #[schema(max_items = 32)]
    #[arg(skip)]
    pub(crate) releases: Vec<ReleaseForm>,
    /// Only of a sale in a drop: another sale of the drop, which ends later and gets what is unsold at the end.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    #[arg(skip)]
    pub(crate) rollover_to: Option<SaleId>,
    /// A line, for good: its entries get the units, of a `raffle` as drawn, of a `waitlist` by arrival from the sell-out on.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "raffle")]
    #[arg(long, value_name = "KIND", help = LINE_HELP)]
    pub(crate) line: Option<LineKind>,
    /// Until when a raffle takes entries, RFC 3339, not after the end; the start when left out.
    #[serde(default, deserialize_with = "instant::read_optional")]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[arg(long, value_name = "TIME", requires = "line", value_parser = instant::instant, help = LINE_CLOSES_HELP)]
    pub(crate) line_closes_at: Option<DateTime<Utc>>,
    /// Whether a raffle is drawn only with a text from outside, which an operator gives after the close.
    #[serde(default)]
    #[arg(long, requires = "line", help = "The draw waits for a text from outside: seckill line draw")]
    pub(crate) line_beacon: bool,
}

const ROOM_HELP: &str = "A waiting room: drawn places before the start, released at p1_entry.room_release_per_s";
const LINE_HELP: &str = "A line, for good: raffle (drawn after its close) or waitlist (by arrival, once sold out)";
const LINE_CLOSES_HELP: &str = "Until when entries are taken, RFC 3339, not after the end; left out: the start";
const LIMIT_BY_HELP: &str =
    "Who counts as one buyer, for good: account (the default), or person, the fact person of token or pass";
const PAY_WITHIN_HELP: &str = "Seconds to pay after the order is written; left out: there is no payment step";

const fn grace_s() -> u32 {
    PAY_GRACE_S
}

fn yuan() -> String {
    "CNY".to_owned()
}

/// Whether it holds, of which field, and what would be accepted, in both languages.
pub(super) type Rule = (bool, &'static str, &'static str, &'static str);

impl NewSaleForm {
    /// The rules of everything else but the timetable.
    fn rules(&self) -> [Rule; 7] {
        let text = |text: &str, max: usize| !text.trim().is_empty() && text.chars().count() <= max;
        [
            (text(&self.product, PRODUCT_CHARS_MAX), "product", "1 to 64 characters", "1 至 64 个字符"),
            (text(&self.title, TITLE_CHARS_MAX), "title", "1 to 200 characters", "1 至 200 个字符"),
            ((0..=STOCK_MAX).contains(&self.stock), "stock", "0 to 1,000,000,000 units", "0 至 1,000,000,000 件"),
            (
                self.limit != Some(0),
                "limit",
                "a whole number from 1, or none for no limit",
                "从 1 起的整数，或留空不限",
            ),
            (
                (0..=PRICE_CENTS_MAX).contains(&self.price_cents),
                "price_cents",
                "0 to 1,000,000,000,000",
                "0 至 1,000,000,000,000",
            ),
            (
                is_in_use(&self.currency),
                "currency",
                "the code of a currency that is in use, ISO 4217, three capital letters, e.g. CNY for renminbi (not RMB)",
                "ISO 4217 现行币种代码，三个大写字母，例如人民币为 CNY（而非 RMB）",
            ),
            (self.ends_at > self.starts_at, "ends_at", "a time after starts_at", "晚于 starts_at 的时间"),
        ]
    }

    /// Every rule that does not hold of a sale by itself, those of its needs, its challenge and its timetable among them.
    pub(super) fn complaints(&self) -> Vec<BadForm> {
        let rules = self.rules().into_iter().chain(self.payment_rules());
        let broken = rules.filter(|(holds, ..)| !holds);
        let broken = broken.map(|(_, field, expected, chinese)| BadForm { field, expected, chinese });
        let needs = needs::checked(self.needs.clone()).err();
        let challenge = challenge::checked(self.challenge.as_deref()).err();
        broken.chain(needs).chain(challenge).chain(self.timetable().err()).collect()
    }

    /// What an operator would say to create this sale again.
    pub(crate) fn of(sale: &Sale) -> Self {
        let times = |unix_ms| DateTime::from_timestamp_millis(unix_ms).unwrap_or_default();
        let terms = sale.payment;
        Self {
            id: sale.sale_id.clone(),
            product: sale.product_id.clone(),
            title: sale.title.clone(),
            stock: sale.granted,
            limit: sale.policy.limit(),
            price_cents: sale.price_cents,
            currency: sale.currency.clone(),
            starts_at: times(sale.starts_at_ms),
            ends_at: times(sale.ends_at_ms),
            token_required: sale.token_required,
            waiting_room: sale.waiting_room,
            pay_within_s: terms.map(|PaymentTerms { pay_within_s, .. }| pay_within_s),
            pay_grace_s: terms.map_or(PAY_GRACE_S, |terms| terms.pay_grace_s),
            limit_returns: terms.is_some_and(|terms| terms.limit_returns),
            hidden: sale.hidden,
            warm: false,
            needs: sale.needs.as_deref().map(needs::of),
            limit_by: Some(sale.limit_by),
            challenge: sale.challenge.as_ref().map(ToString::to_string),
            releases: Vec::new(),
            rollover_to: None,
            line: None,
            line_closes_at: None,
            line_beacon: false,
        }
    }

    /// What happens to its stock by itself. Whether its drop has the sale that gets the rest, the drop knows.
    pub(super) fn timetable(&self) -> Result<Timetable, BadForm> {
        let releases = planned_releases(&self.releases, self.stock, self.starts_at, self.ends_at)?;
        Ok(Timetable { releases, rollover_to: self.rollover_to.clone(), line: self.planned_line()? })
    }

    /// A sale that belongs to no drop, as a draft with its timetable.
    pub(crate) fn plain(self) -> Result<(Sale, Timetable), BadForm> {
        if self.rollover_to.is_some() {
            return bad("rollover_to", "none: only a sale in a drop has it", "空：只有组合活动中的活动才有");
        }
        let plan = self.timetable();
        Ok((self.draft()?, plan?))
    }

    /// The sale as a draft.
    pub(crate) fn draft(self) -> Result<Sale, BadForm> {
        let mut rules = self.rules().into_iter().chain(self.payment_rules());
        if let Some((_, field, expected, chinese)) = rules.find(|(holds, ..)| !holds) {
            return Err(BadForm { field, expected, chinese });
        }
        let needs = needs::checked(self.needs)?;
        let challenge = challenge::checked(self.challenge.as_deref())?;
        Ok(Sale {
            sale_id: self.id,
            product_id: self.product,
            title: self.title,
            price_cents: self.price_cents,
            currency: self.currency,
            granted: self.stock,
            stock: self.stock,
            policy: PurchasePolicy::from_limit(self.limit),
            token_required: self.token_required,
            waiting_room: self.waiting_room,
            payment: self.pay_within_s.map(|pay_within_s| PaymentTerms {
                pay_within_s,
                pay_grace_s: self.pay_grace_s,
                limit_returns: self.limit_returns,
            }),
            starts_at_ms: self.starts_at.timestamp_millis(),
            ends_at_ms: self.ends_at.timestamp_millis(),
            status: SaleStatus::Draft,
            epoch: 1,
            hidden: self.hidden,
            version: 1,
            needs: needs.map(Arc::new),
            limit_by: self.limit_by.unwrap_or_default(),
            challenge,
            line: None,
            by_line: false,
            in_drop: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::payment_rules::{PAY_GRACE_S_MAX, PAY_WITHIN_S_MAX};
    use super::*;

    fn new(change: impl FnOnce(&mut NewSaleForm)) -> Result<Sale, BadForm> {
        let text = r#"{"id":"s","product":"p","title":"t","stock":5,
            "starts_at":"2026-01-01T10:00:00+08:00","ends_at":"2026-01-01T12:00:00+08:00"}"#;
        let mut new: NewSaleForm = serde_json::from_str(text).unwrap();
        change(&mut new);
        new.draft()
    }

    #[test]
    fn what_is_left_out_has_a_meaning() {
        let sale = new(|_| {}).unwrap();
        assert_eq!((sale.currency.as_str(), sale.price_cents, sale.policy), ("CNY", 0, PurchasePolicy::Unlimited));
        assert_eq!((sale.status, sale.granted, sale.stock), (SaleStatus::Draft, 5, 5));
        assert_eq!(sale.ends_at_ms - sale.starts_at_ms, 7_200_000);
    }

    #[test]
    fn every_rule_names_its_field() {
        type Change = fn(&mut NewSaleForm);
        let broken: [(&str, Change); 17] = [
            ("product", |new| new.product = " ".to_owned()),
            ("title", |new| new.title = "题".repeat(201)),
            ("stock", |new| new.stock = -1),
            ("stock", |new| new.stock = STOCK_MAX + 1),
            ("limit", |new| new.limit = Some(0)),
            ("price_cents", |new| new.price_cents = -1),
            ("price_cents", |new| new.pay_within_s = Some(60)),
            ("currency", |new| new.currency = "yuan".to_owned()),
            ("currency", |new| new.currency = "RMB".to_owned()),
            ("price_cents", |new| (new.price_cents, new.pay_within_s) = (9_007_199_255, Some(60))),
            ("price_cents", |new| {
                (new.price_cents, new.pay_within_s, new.limit) = (PRICE_CENTS_MAX, Some(60), Some(9_008));
            }),
            ("ends_at", |new| new.ends_at = new.starts_at),
            ("pay_within_s", |new| (new.price_cents, new.pay_within_s) = (1, Some(0))),
            ("pay_within_s", |new| (new.price_cents, new.pay_within_s) = (1, Some(PAY_WITHIN_S_MAX + 1))),
            ("pay_grace_s", |new| new.pay_grace_s = PAY_GRACE_S_MAX + 1),
            ("limit_returns", |new| new.limit_returns = true),
            ("ends_at", |new| std::mem::swap(&mut new.starts_at, &mut new.ends_at)),
        ];
        for (field, change) in broken {
            assert_eq!(new(change).unwrap_err().field, field);
        }
        assert!(new(|new| new.title = "题".repeat(200)).is_ok());
        assert!(new(|new| (new.price_cents, new.pay_within_s) = (1, Some(60))).is_ok());
        assert!(new(|new| (new.price_cents, new.pay_within_s) = (9_007_199_254, Some(60))).is_ok());
        assert!(
            new(|new| (new.price_cents, new.limit) = (PRICE_CENTS_MAX, None)).is_ok(),
            "nothing is reported as paid"
        );
        let dear = |new: &mut NewSaleForm| {
            (new.price_cents, new.pay_within_s, new.limit) = (PRICE_CENTS_MAX, Some(60), Some(9_007));
        };
        assert!(new(dear).is_ok());
    }
}
