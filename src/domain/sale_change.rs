//! What may be changed of a sale that exists, and until when: its terms, its times, and whether buyers see it. Values only.
//!
//! Everything about a start is settled [`START_SETTLED_S`] before it. By then every cached copy of a sale has ended, and a
//! change whose process died between the database and Redis is mended. So buyers get at the start what they were shown.

use super::instant;
use super::new_sale::{BadSale, NewSale};
use super::order_life::PaymentTerms;
use super::sale::{Sale, SaleStatus};
use chrono::{DateTime, SecondsFormat, Utc};

/// Until when before its start the terms and the start of a sale may change, seconds. Longer than a cached sale lives in Redis
/// (ten times `p1_entry.cache_ttl_ms`) and then decides in a process (`p1_entry.cache_stale_max_ms`), and than the check of warmed
/// sales takes (10 s), and room for clocks that differ.
pub(crate) const START_SETTLED_S: u32 = 30;

/// Fields of an edit; what is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaleEdit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// In the currency's smallest unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_cents: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Most units a buyer may have; the inner none: no limit.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub limit: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_required: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_room: Option<bool>,
    /// Seconds that a buyer has to pay; the inner none: no payment step.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub pay_within_s: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pay_grace_s: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_returns: Option<bool>,
}

/// A field that is there, be it null.
fn given<'de, D: serde::Deserializer<'de>, T: serde::Deserialize<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    serde::Deserialize::deserialize(value).map(Some)
}

/// New times; what is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTimes {
    /// RFC 3339.
    #[serde(default, deserialize_with = "instant::read_optional")]
    pub starts_at: Option<DateTime<Utc>>,
    /// RFC 3339.
    #[serde(default, deserialize_with = "instant::read_optional")]
    pub ends_at: Option<DateTime<Utc>>,
}

/// A change of a sale that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SaleChange {
    /// Other terms, before the start.
    Edit(SaleEdit),
    /// Other times: the start before it, the end until it.
    Reschedule(NewTimes),
    /// Buyers do not see it; not while it sells.
    Hide,
    /// Buyers see it.
    Publish,
}

/// Why a change was not made. The text says what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// A value that no sale may have.
    #[error(transparent)]
    Value(#[from] BadSale),
    /// It is closed.
    #[error("the sale is closed; nothing of it changes any more, clone it")]
    Closed,
    /// Its start, Unix milliseconds, is too near or past.
    #[error(
        "the sale starts at {}; its terms and its start change until {START_SETTLED_S} s before that. Its end still changes, and it can be paused",
        shown(*.0)
    )]
    StartSettled(i64),
    /// It ended at this time, Unix milliseconds.
    #[error("the sale ended at {}; its times stay, clone it", shown(*.0))]
    Ended(i64),
    /// It sells, or starts in a moment, and should be hidden.
    #[error("the sale sells, or starts within {START_SETTLED_S} s; pause it first, then hide it")]
    OnSale,
    /// It has another version than the one that was seen.
    #[error("the sale was changed since it was read, it has version {0} now; read it again, then repeat the change")]
    Overtaken(u32),
}

fn shown(unix_ms: i64) -> String {
    DateTime::from_timestamp_millis(unix_ms).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl ChangeRefusal {
    /// The same in Chinese.
    pub(crate) fn chinese(&self) -> String {
        match self {
            Self::Value(bad) => bad.in_chinese(),
            Self::Closed => "活动已关闭，不能再修改；请复制为新活动".to_owned(),
            Self::StartSettled(at) => format!(
                "活动于 {} 开始；条款和开始时间在此前 {START_SETTLED_S} 秒起不能修改。结束时间仍可修改，也可暂停活动",
                shown(*at)
            ),
            Self::Ended(at) => format!("活动已于 {} 结束，时间不能再修改；请复制为新活动", shown(*at)),
            Self::OnSale => format!("活动正在售卖，或将在 {START_SETTLED_S} 秒内开始；请先暂停，再隐藏"),
            Self::Overtaken(version) => {
                format!("活动在读取之后已被修改，现为版本 {version}；请重新查看后再修改")
            }
        }
    }

    /// A stable code, for the record.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Value(_) => "VALUE",
            Self::Closed => "CLOSED",
            Self::StartSettled(_) => "START_SETTLED",
            Self::Ended(_) => "ENDED",
            Self::OnSale => "ON_SALE",
            Self::Overtaken(_) => "OVERTAKEN",
        }
    }
}

const SETTLED_MS: i64 = START_SETTLED_S as i64 * 1000;
const NOTHING: BadSale =
    BadSale { field: "body", expected: "at least one field to change", chinese: "至少一个要修改的字段" };
const START_PAST: BadSale =
    BadSale {
        field: "starts_at", expected: "a time at least 30 seconds from now", chinese: "至少 30 秒之后的时间"
    };
const END_PAST: BadSale =
    BadSale { field: "ends_at", expected: "a time from now on", chinese: "现在之后的时间" };

impl SaleChange {
    /// The sale as it is after the change, judged at `now_ms` (Unix milliseconds). The UPDATE that writes it has the same conditions,
    /// by the database's clock (`store::mysql::sale_changes`).
    ///
    /// # Errors
    /// [`ChangeRefusal`], with what would be accepted.
    pub(crate) fn applied(&self, sale: &Sale, now_ms: i64) -> Result<Sale, ChangeRefusal> {
        match self {
            Self::Edit(edit) => edit.applied(sale, now_ms),
            Self::Reschedule(times) => times.applied(sale, now_ms),
            Self::Hide => {
                let stopped = matches!(sale.status, SaleStatus::Paused | SaleStatus::Closed);
                let sells_soon = sale.starts_at_ms <= now_ms + SETTLED_MS && now_ms < sale.ends_at_ms;
                if sells_soon && !stopped && !sale.hidden {
                    return Err(ChangeRefusal::OnSale);
                }
                Ok(Sale { hidden: true, ..sale.clone() })
            }
            Self::Publish => Ok(Sale { hidden: false, ..sale.clone() }),
        }
    }
}

impl SaleEdit {
    fn applied(&self, sale: &Sale, now_ms: i64) -> Result<Sale, ChangeRefusal> {
        if *self == Self::default() {
            return Err(NOTHING.into());
        }
        if sale.status == SaleStatus::Closed {
            return Err(ChangeRefusal::Closed);
        }
        if sale.starts_at_ms <= now_ms + SETTLED_MS {
            return Err(ChangeRefusal::StartSettled(sale.starts_at_ms));
        }
        let edit = self.clone();
        let mut new = NewSale::of(sale);
        new.product = edit.product.unwrap_or(new.product);
        new.title = edit.title.unwrap_or(new.title);
        new.price_cents = edit.price_cents.unwrap_or(new.price_cents);
        new.currency = edit.currency.unwrap_or(new.currency);
        new.limit = edit.limit.unwrap_or(new.limit);
        new.token_required = edit.token_required.unwrap_or(new.token_required);
        new.waiting_room = edit.waiting_room.unwrap_or(new.waiting_room);
        new.pay_within_s = edit.pay_within_s.unwrap_or(new.pay_within_s);
        new.pay_grace_s = edit.pay_grace_s.unwrap_or(new.pay_grace_s);
        // A sale that loses its payment step loses this with it, unless both are asked for: that is a mistake.
        new.limit_returns = edit.limit_returns.unwrap_or(new.limit_returns && new.pay_within_s.is_some());
        let checked = new.draft()?;
        let unchanged = sale.clone();
        Ok(Sale {
            product_id: checked.product_id,
            title: checked.title,
            price_cents: checked.price_cents,
            currency: checked.currency,
            policy: checked.policy,
            token_required: checked.token_required,
            waiting_room: checked.waiting_room,
            payment: checked.payment,
            ..unchanged
        })
    }
}

impl NewTimes {
    fn applied(&self, sale: &Sale, now_ms: i64) -> Result<Sale, ChangeRefusal> {
        if *self == Self::default() {
            return Err(NOTHING.into());
        }
        let starts_at_ms = self.starts_at.map_or(sale.starts_at_ms, |at| at.timestamp_millis());
        let ends_at_ms = self.ends_at.map_or(sale.ends_at_ms, |at| at.timestamp_millis());
        let soonest = now_ms + SETTLED_MS;
        let moves_start = starts_at_ms != sale.starts_at_ms;
        if sale.status == SaleStatus::Closed {
            return Err(ChangeRefusal::Closed);
        }
        if sale.ends_at_ms <= now_ms {
            return Err(ChangeRefusal::Ended(sale.ends_at_ms));
        }
        if moves_start && sale.starts_at_ms <= soonest {
            return Err(ChangeRefusal::StartSettled(sale.starts_at_ms));
        }
        if moves_start && starts_at_ms <= soonest {
            return Err(START_PAST.into());
        }
        if ends_at_ms <= now_ms {
            return Err(END_PAST.into());
        }
        let times = |unix_ms| DateTime::from_timestamp_millis(unix_ms).unwrap_or_default();
        // Its price and its currency may be from before there was a rule for them; times can be moved all the same.
        let currency = "CNY".to_owned();
        let terms = NewSale { pay_within_s: None, limit_returns: false, currency, ..NewSale::of(sale) };
        let new = NewSale { starts_at: times(starts_at_ms), ends_at: times(ends_at_ms), ..terms };
        new.draft()?;
        Ok(Sale { starts_at_ms, ends_at_ms, ..sale.clone() })
    }
}

impl NewSale {
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
            pay_grace_s: terms.map_or(super::new_sale::PAY_GRACE_S, |terms| terms.pay_grace_s),
            limit_returns: terms.is_some_and(|terms| terms.limit_returns),
            hidden: sale.hidden,
        }
    }
}

#[cfg(test)]
mod tests;
