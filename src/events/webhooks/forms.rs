//! What callers say about deliveries of webhooks, and the rules for it. The command line and the API read the same ones.

use super::cursor::delivery_place;
use crate::domain::webhook::DeliveryState;
use crate::events::webhooks::rows::{DeliveriesFilter, PAGE_MAX};
use crate::http::bad_form::{BadForm, bad};
use serde::Deserialize;

/// The highest number of a delivery: what the APIs' documents call int64.
const DELIVERY_ID_MAX: u64 = i64::MAX.unsigned_abs();
/// Longest name of a webhook, characters.
const NAME_CHARS_MAX: usize = 48;

/// Deliveries of a page when nothing else is asked for.
const fn page() -> u16 {
    50
}

/// Which deliveries are listed.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveriesForm {
    /// WAITING, DELIVERED or DEAD; DEAD when left out.
    #[arg(long, help = "Deliveries in this state: WAITING, DELIVERED or DEAD")]
    pub(crate) state: Option<String>,
    /// Only of this webhook.
    #[arg(long, value_name = "NAME", help = "Only of this webhook; with --dead or --state")]
    pub(crate) webhook: Option<String>,
    /// `next` of the page before.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// How many; 50 when left out.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500)]
    #[serde(default = "page")]
    #[arg(long, help = "Most deliveries, 1 to 500", default_value_t = page())]
    pub(crate) limit: u16,
}

fn checked_name(name: Option<String>) -> Result<Option<String>, BadForm> {
    match name {
        Some(name) if !(1..=NAME_CHARS_MAX).contains(&name.len()) => {
            bad("webhook", "the name of a webhook, 1 to 48 characters", "webhook 名称，1 至 48 个字符")
        }
        name => Ok(name),
    }
}

impl DeliveriesForm {
    /// The question to the database.
    pub(crate) fn filter(self) -> Result<DeliveriesFilter, BadForm> {
        if !(1..=PAGE_MAX).contains(&self.limit) {
            return bad("limit", "1 to 500", "1 至 500");
        }
        let Some(state) = self.state.as_deref().map_or(Some(DeliveryState::Dead), DeliveryState::from_code) else {
            return bad("state", "WAITING, DELIVERED or DEAD", "WAITING、DELIVERED 或 DEAD");
        };
        let after = self.cursor.as_deref().map(delivery_place).transpose()?;
        Ok(DeliveriesFilter { state, webhook: checked_name(self.webhook)?, after, limit: self.limit })
    }
}

/// What is to be sent again.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = ReplayBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayForm {
    /// Deliveries by number, in whatever state; at most 500.
    #[serde(default)]
    #[arg(value_name = "IDS", required_unless_present = "dead", conflicts_with = "dead")]
    pub(crate) delivery_ids: Vec<u64>,
    /// Every dead delivery, instead of named ones.
    #[serde(default)]
    #[arg(long)]
    pub(crate) dead: bool,
    /// Of this webhook only; with `dead`.
    #[arg(long, value_name = "NAME", requires = "dead", help = "Only of this webhook")]
    pub(crate) webhook: Option<String>,
}

impl ReplayForm {
    /// The same, when it can be done.
    pub(crate) fn checked(self) -> Result<Self, BadForm> {
        if self.dead != self.delivery_ids.is_empty() {
            return bad("delivery_ids", "ids of deliveries, or dead: true instead", "投递编号，或改用 dead: true");
        }
        if self.delivery_ids.len() > usize::from(PAGE_MAX) {
            return bad("delivery_ids", "at most 500", "最多 500 个");
        }
        if self.delivery_ids.iter().any(|id| *id > DELIVERY_ID_MAX) {
            return bad("delivery_ids", "numbers up to 9223372036854775807", "不超过 9223372036854775807 的数");
        }
        if self.webhook.is_some() && !self.dead {
            return bad("webhook", "to come with dead: true", "与 dead: true 一起给出");
        }
        Ok(Self { webhook: checked_name(self.webhook)?, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_cannot_be_answered_names_its_field() {
        let field = |form: DeliveriesForm| form.filter().err().map(|bad| bad.field);
        assert_eq!(field(DeliveriesForm { limit: 1, ..DeliveriesForm::default() }), None);
        assert_eq!(field(DeliveriesForm::default()), Some("limit"));
        let one = || DeliveriesForm { limit: 1, ..DeliveriesForm::default() };
        assert_eq!(field(DeliveriesForm { state: Some("dead".into()), ..one() }), Some("state"));
        assert_eq!(field(DeliveriesForm { webhook: Some(String::new()), ..one() }), Some("webhook"));
        assert_eq!(field(DeliveriesForm { cursor: Some("7".into()), ..one() }), Some("cursor"));
        let field = |form: ReplayForm| form.checked().err().map(|bad| bad.field);
        assert_eq!(field(ReplayForm::default()), Some("delivery_ids"));
        assert_eq!(field(ReplayForm { delivery_ids: vec![1], dead: true, webhook: None }), Some("delivery_ids"));
        assert_eq!(field(ReplayForm { delivery_ids: vec![1; 501], ..ReplayForm::default() }), Some("delivery_ids"));
        let beyond = ReplayForm { delivery_ids: vec![1, DELIVERY_ID_MAX + 1], ..ReplayForm::default() };
        assert_eq!(field(beyond), Some("delivery_ids"));
        let named = ReplayForm { delivery_ids: vec![1], dead: false, webhook: Some("a".into()) };
        assert_eq!(field(named.clone()), Some("webhook"));
        assert_eq!(field(ReplayForm { webhook: None, ..named }), None);
        assert_eq!(field(ReplayForm { delivery_ids: vec![], dead: true, webhook: Some("a".into()) }), None);
    }
}
