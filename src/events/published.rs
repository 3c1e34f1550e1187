//! What is published of an order or of a request: one value, encoded in one place, whatever happened and wherever it goes.
//!
//! Input: an outcome (P4, P5's compensation, operators), a state that an order got, or money that has to go back (P6). Output: JSON with
//! a version of its own. The exchange and the webhooks get the same bytes. Nothing here waits or fails, so a crash leaves nothing.

use crate::domain::ids::RequestId;
use crate::domain::message::{OrderMessage, UnitPrice};
use crate::domain::order_life::{OrderState, REFUND_NEEDED_KEY};
use crate::domain::outcome::Outcome;
use serde::Serialize;
use std::borrow::Cow;

/// The version of events.
const VERSION: u8 = 1;

/// Events of one routing key as they are published: of a process, which publishes or writes them now, or of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingEvents {
    /// The first one's request.
    pub request_id: RequestId,
    /// Routing key at the broker.
    pub key: Cow<'static, str>,
    /// How many, 1 to 100.
    pub count: u16,
    /// JSON, one after the other with commas between them.
    pub bodies: Vec<u8>,
}

/// One event. Its fields are those of the JSON, in this order; receivers get no field that has no value, but for sale, buyer and units,
/// which are null where money came for a request without an order.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct PublishedEvent<'a> {
    /// Routing key at the broker; none where it was read from a row of several events, which has it.
    #[serde(skip)]
    pub(crate) key: &'static str,
    /// Of the form: fields are added, none changes its meaning.
    pub(crate) v: u8,
    #[serde(rename = "rid")]
    pub(crate) request_id: RequestId,
    pub(crate) sale: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    #[serde(rename = "qty")]
    pub(crate) quantity: Option<u32>,
    pub(crate) status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    /// Only of money that has to go back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payment_id: Option<&'a str>,
    /// In the currency's smallest unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) amount: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<&'a str>,
    /// Of the order after the change: a receiver drops older ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u32>,
    /// When it happened, Unix milliseconds; outcomes have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<i64>,
}

impl<'a> PublishedEvent<'a> {
    /// An event that says nothing yet but which request it is of.
    pub(crate) const fn new(request_id: RequestId, key: &'static str, status: &'a str) -> Self {
        Self {
            key,
            v: VERSION,
            request_id,
            sale: None,
            user: None,
            quantity: None,
            status,
            reason: None,
            payment_id: None,
            amount: None,
            currency: None,
            version: None,
            at: None,
        }
    }

    /// A request has its outcome; an order says what it costs, where that is known. It may come more than once: the request id shows it.
    pub(crate) fn of_outcome(accepted: &'a OrderMessage, outcome: Outcome, price: Option<&'a UnitPrice>) -> Self {
        let (status, reason) = match outcome {
            Outcome::Ordered => ("CONFIRMED", None),
            Outcome::Failed(reason) => ("FAILED", Some(reason.code())),
        };
        let purchase = &accepted.purchase;
        let quantity = purchase.quantity.get();
        let price = price.filter(|_| outcome == Outcome::Ordered);
        Self {
            sale: Some(purchase.sale_id.as_str()),
            user: Some(purchase.user_id.as_str()),
            quantity: Some(quantity),
            reason,
            amount: price.map(|price| price.cents.saturating_mul(i64::from(quantity))),
            currency: price.map(UnitPrice::currency),
            version: price.map(|_| 1),
            ..Self::new(purchase.request_id, outcome.event_key(), status)
        }
    }

    /// An order got this state; the rest is its row's.
    pub(crate) const fn of_state(request_id: RequestId, to: OrderState) -> Self {
        Self::new(request_id, to.event_key(), to.code())
    }

    /// Money came, or stayed, that has to go back. Of a request without an order there is nothing but the payment, and no version.
    pub(crate) const fn of_refund(request_id: RequestId) -> Self {
        Self::new(request_id, REFUND_NEEDED_KEY, "REFUND_NEEDED")
    }

    /// As it is published.
    pub(crate) fn encoded(&self) -> WaitingEvents {
        let mut bodies = Vec::with_capacity(256);
        self.append_to(&mut bodies);
        WaitingEvents { request_id: self.request_id, key: Cow::Borrowed(self.key), count: 1, bodies }
    }

    /// The one encoder.
    pub(crate) fn append_to(&self, bodies: &mut Vec<u8>) {
        // Texts and numbers only: they always are JSON. The fields of a refund are sorted, as receivers know them.
        let _always = match self.payment_id {
            None => serde_json::to_writer(bodies, self),
            Some(_) => serde_json::to_value(self).and_then(|sorted| serde_json::to_writer(bodies, &sorted)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::decode;
    use crate::domain::outcome::FailReason;

    fn text(event: &PublishedEvent<'_>) -> String {
        String::from_utf8(event.encoded().bodies).unwrap()
    }

    #[test]
    fn an_event_is_published_byte_by_byte_as_receivers_know_it() {
        let accepted = r#"{"v":1,"rid":"5","sale":"s","user":"a\"\\b","qty":2,"shard":0,"epoch":1,"no":1,"at":9}"#;
        let accepted = decode(accepted.as_bytes()).unwrap();
        let price = UnitPrice::new(150, "CNY");
        let head = r#"{"v":1,"rid":"5","sale":"s","user":"a\"\\b","qty":2,"status":"#;
        let confirmed = PublishedEvent::of_outcome(&accepted, Outcome::Ordered, Some(&price));
        assert_eq!(confirmed.key, "order.confirmed");
        assert_eq!(text(&confirmed), format!(r#"{head}"CONFIRMED","amount":300,"currency":"CNY","version":1}}"#));
        let unpriced = PublishedEvent::of_outcome(&accepted, Outcome::Ordered, None);
        assert_eq!(text(&unpriced), format!(r#"{head}"CONFIRMED"}}"#));
        let failed = PublishedEvent::of_outcome(&accepted, Outcome::Failed(FailReason::SoldOut), Some(&price));
        assert_eq!(failed.key, "order.failed");
        assert_eq!(text(&failed), format!(r#"{head}"FAILED","reason":"SOLD_OUT"}}"#));
        let paid = PublishedEvent {
            amount: Some(300),
            currency: Some("CNY"),
            version: Some(2),
            at: Some(7),
            ..PublishedEvent { key: "order.paid", status: "PAID", ..unpriced }
        };
        assert_eq!(text(&paid), format!(r#"{head}"PAID","amount":300,"currency":"CNY","version":2,"at":7}}"#));
        let refund =
            PublishedEvent { status: "REFUND_NEEDED", reason: Some("CANCELLED"), payment_id: Some("p\"1"), ..paid };
        assert_eq!(
            text(&refund),
            r#"{"amount":300,"at":7,"currency":"CNY","payment_id":"p\"1","qty":2,"reason":"CANCELLED","rid":"5","sale":"s","status":"REFUND_NEEDED","user":"a\"\\b","v":1,"version":2}"#
        );
        let orderless =
            PublishedEvent { payment_id: Some("p"), version: Some(0), ..PublishedEvent::of_refund(paid.request_id) };
        assert_eq!(
            text(&orderless),
            r#"{"payment_id":"p","qty":null,"rid":"5","sale":null,"status":"REFUND_NEEDED","user":null,"v":1,"version":0}"#
        );
    }
}
