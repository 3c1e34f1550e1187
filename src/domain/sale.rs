//! A sale: what is sold, when, to whom; and whether a request may try right now.

use super::challenge::Challenge;
use super::drops::SalesDrop;
use super::ids::SaleId;
use super::line::LineKind;
use super::needs::Needs;
use super::order_life::PaymentTerms;
use super::policy::{LimitBy, PurchasePolicy};
use super::states::P1Entry;
use std::sync::Arc;

/// Most units a sale may ever grant. Lua counts in doubles, which are exact far beyond this.
pub(crate) const STOCK_MAX: i64 = 1_000_000_000;

/// Where a sale is in its life, as stored in `sales.status`. Explicit codes, shared with SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SaleStatus {
    /// Created; Redis has never opened it.
    Draft,
    /// Its stock is in Redis. From here on, keys missing in Redis mean that Redis lost data (A6).
    Warmed,
    /// Stopped by an operator; can be resumed.
    Paused,
    /// Ended for good.
    Closed,
}

impl SaleStatus {
    /// Every status, in the order of a sale's life.
    pub const ALL: [Self; 4] = [Self::Draft, Self::Warmed, Self::Paused, Self::Closed];

    /// The stored code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Warmed => "warmed",
            Self::Paused => "paused",
            Self::Closed => "closed",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }
}

/// The state field of a sale's `meta` hash in Redis, which the reserve script obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetaState {
    /// Keys are there, the database does not say so yet; nothing is sold.
    Loaded,
    /// Purchases are accepted within the window.
    Open,
    /// Stopped by an operator.
    Paused,
    /// Ended for good.
    Closed,
    /// Redis was found rewound or damaged; closed until P5 has rebuilt it.
    Frozen,
}

impl MetaState {
    /// Every state, in the order of a sale's life.
    pub const ALL: [Self; 5] = [Self::Loaded, Self::Open, Self::Paused, Self::Closed, Self::Frozen];

    /// The stored code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Closed => "closed",
            Self::Frozen => "frozen",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// A sale as the database knows it. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Sale {
    /// The id, unique for ever.
    #[schema(value_type = String)]
    pub sale_id: SaleId,
    /// What is sold.
    pub product_id: String,
    /// What a buyer reads.
    pub title: String,
    /// Price of one unit in the currency's smallest unit.
    pub price_cents: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// Units ever released for sale.
    pub granted: i64,
    /// Unsold units by the database's count.
    pub stock: i64,
    /// How much one buyer may have.
    #[schema(value_type = Option<u32>)]
    pub policy: PurchasePolicy,
    /// Who counts as one buyer, from its creation on. Not left out of a cached copy: a build that knew no persons left it out, and such a
    /// copy must not be read.
    #[schema(value_type = String, example = "account")]
    pub limit_by: LimitBy,
    /// Whether a purchase needs a purchase token (hidden entry, A3).
    pub token_required: bool,
    /// Whether buyers pass a waiting room before they get a purchase token. Cached by builds that had none: false.
    #[serde(default)]
    pub waiting_room: bool,
    /// How long buyers have to pay; none: there is no payment step. Cached by builds that had none: none.
    #[serde(default)]
    pub payment: Option<PaymentTerms>,
    /// First millisecond in which it sells.
    pub starts_at_ms: i64,
    /// First millisecond in which it does not sell any more.
    pub ends_at_ms: i64,
    /// Where it is in its life.
    #[schema(value_type = String, example = "warmed")]
    pub status: SaleStatus,
    /// Incremented by each rebuild of Redis.
    pub epoch: u32,
    /// Whether buyers do not see it: to them there is no such sale. Cached by builds that had none: false.
    #[serde(default)]
    pub hidden: bool,
    /// Incremented by each edit, reschedule, hide and publish. Cached by builds that had none: 0.
    #[serde(default)]
    pub version: u32,
    /// What it needs of its buyers, from its creation on; none: nothing. Not left out of a cached copy: a build that knew no needs left
    /// it out, and such a copy must not be read.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(value_type = Option<Needs>)]
    pub needs: Option<Arc<Needs>>,
    /// What a buyer passes before a purchase token is issued; none: nothing. Not left out of a cached copy, as with `needs`.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(value_type = Option<String>, example = "pow:18")]
    pub challenge: Option<Challenge>,
    /// The kind of its line, from its creation on; none: it has no line. Not left out of a cached copy, as with `needs`.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(value_type = Option<String>, example = "raffle")]
    pub line: Option<LineKind>,
    /// Whether its units go to its line and to no click: its line has entries that wait, or takes some. Not left out of a cached copy, as
    /// with `needs`.
    pub by_line: bool,
    /// The drop that it belongs to, from its creation on; none: it is a plain sale. Cached by builds that had none: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SalesDrop>)]
    pub in_drop: Option<Arc<SalesDrop>>,
}

impl Sale {
    /// Whether units are counted by buyer (`purchases`).
    #[must_use]
    pub(crate) const fn counts_units(&self) -> bool {
        self.policy.is_counted(self.limit_by)
    }

    /// The drop whose limit an audit of this sale judges: one of a drop's sales does it for all.
    #[must_use]
    pub(crate) fn judged_drop(&self) -> Option<&SalesDrop> {
        self.in_drop.as_deref().filter(|drop| drop.limit.is_some() && drop.is_acted_for_by(&self.sale_id))
    }

    /// A draft on the plainest terms: one unit a buyer, no token, no waiting room, no payment step; product and title are named as the
    /// sale is. `units` are granted, the window is from `starts_at_ms` to `ends_at_ms`.
    #[must_use]
    pub fn draft(sale_id: SaleId, units: i64, starts_at_ms: i64, ends_at_ms: i64) -> Self {
        Self {
            product_id: sale_id.to_string(),
            title: sale_id.to_string(),
            price_cents: 100,
            currency: "CNY".to_owned(),
            granted: units,
            stock: units,
            policy: PurchasePolicy::OnePerUser,
            limit_by: LimitBy::Account,
            token_required: false,
            waiting_room: false,
            payment: None,
            starts_at_ms,
            ends_at_ms,
            status: SaleStatus::Draft,
            epoch: 1,
            hidden: false,
            version: 1,
            needs: None,
            challenge: None,
            line: None,
            by_line: false,
            in_drop: None,
            sale_id,
        }
    }

    /// What the reserve script obeys of its drop: the field `drop` of its `meta`. Empty: nothing.
    #[must_use]
    pub(crate) fn drop_in_meta(&self) -> String {
        self.in_drop.as_ref().and_then(|drop| drop.in_meta(&self.sale_id)).unwrap_or_default()
    }

    /// Whether a new request may try, by status, window and clock; stock is for the script to decide.
    #[must_use]
    pub(crate) fn entry(&self, now_ms: i64) -> P1Entry {
        match self.status {
            SaleStatus::Closed => P1Entry::Ended,
            SaleStatus::Draft | SaleStatus::Warmed | SaleStatus::Paused if now_ms >= self.ends_at_ms => P1Entry::Ended,
            SaleStatus::Paused => P1Entry::Paused,
            SaleStatus::Draft | SaleStatus::Warmed if now_ms < self.starts_at_ms => P1Entry::NotStarted,
            // Started on the clock but never warmed: closed, not opened by guessing (A6).
            SaleStatus::Draft => P1Entry::Loading,
            SaleStatus::Warmed => P1Entry::Ready,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sale(status: SaleStatus) -> Sale {
        Sale { status, ..Sale::draft(SaleId::parse("s").unwrap(), 1, 100, 200) }
    }

    #[test]
    fn the_window_is_half_open_and_only_a_warmed_sale_sells() {
        let warmed = sale(SaleStatus::Warmed);
        assert_eq!(warmed.entry(99), P1Entry::NotStarted);
        assert_eq!(warmed.entry(100), P1Entry::Ready);
        assert_eq!(warmed.entry(199), P1Entry::Ready);
        assert_eq!(warmed.entry(200), P1Entry::Ended);
        assert_eq!(sale(SaleStatus::Draft).entry(150), P1Entry::Loading);
        assert_eq!(sale(SaleStatus::Paused).entry(50), P1Entry::Paused);
        assert_eq!(sale(SaleStatus::Paused).entry(250), P1Entry::Ended);
        assert_eq!(sale(SaleStatus::Closed).entry(50), P1Entry::Ended);
    }

    #[test]
    fn stored_codes_round_trip() {
        assert!(SaleStatus::ALL.iter().all(|s| SaleStatus::from_code(s.code()) == Some(*s)));
        assert!(MetaState::ALL.iter().all(|s| MetaState::from_code(s.code()) == Some(*s)));
    }
}
