//! What may be changed of a sale that exists, and until when: its terms, its times, and whether buyers see it. Values only.
//!
//! Everything about a start is settled [`START_SETTLED_S`] before it. By then every cached copy of a sale has ended, and a
//! change whose process died between the database and Redis is mended. So buyers get at the start what they were shown.

use super::forms::{ChallengeOrNone, NewSaleForm, OrNone, RescheduleForm, SaleEditForm};
use crate::domain::sale::{Sale, SaleStatus};
use crate::http::bad_form::BadForm;
use chrono::{DateTime, SecondsFormat};

/// Until when before its start the terms and the start of a sale may change, seconds. Longer than a cached sale lives in Redis
/// (ten times `p1_entry.cache_ttl_ms`) and then decides in a process (`p1_entry.cache_stale_max_ms`), and than the check of warmed
/// sales takes (10 s), and room for clocks that differ.
pub(crate) const START_SETTLED_S: u32 = 30;

/// A change of a sale that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SaleChange {
    /// Other terms, before the start.
    Edit(SaleEditForm),
    /// Other times: the start before it, the end until it.
    Reschedule(RescheduleForm),
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
    Value(#[from] BadForm),
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
const NO_UNITS: BadForm = BadForm {
    field: "stock",
    expected: "none in an edit; add units with top-up",
    chinese: "空：不能在此修改，请用 top-up 增加库存",
};
const NOTHING: BadForm =
    BadForm { field: "body", expected: "at least one field to change", chinese: "至少一个要修改的字段" };
const START_PAST: BadForm =
    BadForm {
        field: "starts_at", expected: "a time at least 30 seconds from now", chinese: "至少 30 秒之后的时间"
    };
const END_PAST: BadForm =
    BadForm { field: "ends_at", expected: "a time from now on", chinese: "现在之后的时间" };

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

impl SaleEditForm {
    fn applied(&self, sale: &Sale, now_ms: i64) -> Result<Sale, ChangeRefusal> {
        if self.stock {
            return Err(NO_UNITS.into());
        }
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
        let mut new = NewSaleForm::of(sale);
        new.product = edit.product.unwrap_or(new.product);
        new.title = edit.title.unwrap_or(new.title);
        new.price_cents = edit.price_cents.unwrap_or(new.price_cents);
        new.currency = edit.currency.unwrap_or(new.currency);
        new.limit = edit.limit.map_or(new.limit, |OrNone(limit)| limit);
        new.token_required = edit.token_required.unwrap_or(new.token_required);
        new.waiting_room = edit.waiting_room.unwrap_or(new.waiting_room);
        new.pay_within_s = edit.pay_within_s.map_or(new.pay_within_s, |OrNone(seconds)| seconds);
        new.pay_grace_s = edit.pay_grace_s.unwrap_or(new.pay_grace_s);
        // A sale that loses its payment step loses this with it, unless both are asked for: that is a mistake.
        new.limit_returns = edit.limit_returns.unwrap_or(new.limit_returns && new.pay_within_s.is_some());
        new.challenge = edit.challenge.map_or(new.challenge, |ChallengeOrNone(challenge)| challenge);
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
            challenge: checked.challenge,
            ..unchanged
        })
    }
}

impl RescheduleForm {
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
        // Its price and its currency may be from before there was a rule for them, its challenge a later version's; times can be moved all the same.
        let (currency, challenge) = ("CNY".to_owned(), None);
        let terms =
            NewSaleForm { pay_within_s: None, limit_returns: false, currency, challenge, ..NewSaleForm::of(sale) };
        let new = NewSaleForm { starts_at: times(starts_at_ms), ends_at: times(ends_at_ms), ..terms };
        new.draft()?;
        Ok(Sale { starts_at_ms, ends_at_ms, ..sale.clone() })
    }
}

#[cfg(test)]
mod tests;
