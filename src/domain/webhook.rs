//! Webhooks as values: which events of orders and sales a receiver wants, the states of a delivery, how a message is named and signed
//! content is put together (Standard Webhooks 1.0.0).
//!
//! One receiver gets one delivery for each event that it wants. The order of deliveries is not promised: `version` of the event
//! shows a receiver which one is later.

use super::announcement::SaleEvent;
use super::ids::RequestId;
use super::line::LineEvent;
use std::sync::Arc;

/// Every event that a webhook can want, by its routing key: those of orders, those of sales, those of lines.
pub(crate) const WEBHOOK_EVENTS: [&str; 16] = [
    "order.confirmed",
    "order.failed",
    "order.paid",
    "order.expired",
    "order.cancelled",
    "order.refund_needed",
    SaleEvent::Opened.key(),
    SaleEvent::Paused.key(),
    SaleEvent::Resumed.key(),
    SaleEvent::SoldOut.key(),
    SaleEvent::Back.key(),
    SaleEvent::Ended.key(),
    SaleEvent::Closed.key(),
    LineEvent::Drawn.key(),
    LineEvent::Offered.key(),
    LineEvent::Lapsed.key(),
];

/// What stands for the request where an event is of a sale. No request has this id: the first of each node is far above. Processes of
/// the version before read such rows and pass them on.
pub(crate) const OF_A_SALE: RequestId = RequestId::LOWEST;

/// Where a delivery is, as stored in `webhook_deliveries.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeliveryState {
    /// It has to be sent, now or at a later try.
    Waiting,
    /// Its receiver answered 2xx.
    Delivered,
    /// Every try failed; a person replays it.
    Dead,
}

impl DeliveryState {
    /// Every state, in the order of a delivery's way.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Delivered, Self::Dead];

    /// The stored and shown code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Delivered => "DELIVERED",
            Self::Dead => "DEAD",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// A webhook's name and the events that it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSubscription {
    /// Its name in the configuration.
    pub name: String,
    /// Routing keys, each of [`WEBHOOK_EVENTS`].
    pub events: Vec<String>,
}

/// Who wants which events; cheap to clone. Empty where no webhook is configured.
#[derive(Debug, Clone, Default)]
pub struct WebhookSubscriptions(Arc<[WebhookSubscription]>);

impl WebhookSubscriptions {
    /// The subscriptions of all webhooks.
    #[must_use]
    pub fn new(all: Vec<WebhookSubscription>) -> Self {
        Self(all.into())
    }

    /// Each of them.
    pub(crate) fn all(&self) -> &[WebhookSubscription] {
        &self.0
    }

    /// These and `others`: a webhook of both wants the events of both.
    #[must_use]
    pub(crate) fn joined(&self, others: &Self) -> Self {
        if others.0.is_empty() || self.0 == others.0 {
            return self.clone();
        }
        let mut all = self.0.to_vec();
        for other in others.0.iter() {
            match all.iter_mut().find(|of| of.name == other.name) {
                Some(of) => {
                    let more = other.events.iter().filter(|event| !of.events.contains(event));
                    let more: Vec<String> = more.cloned().collect();
                    of.events.extend(more);
                }
                None => all.push(other.clone()),
            }
        }
        Self::new(all)
    }

    /// Names of the webhooks that want this event.
    pub(crate) fn wanting<'a>(&'a self, event_key: &'a str) -> impl Iterator<Item = &'a str> + Clone {
        let wants = move |of: &&WebhookSubscription| of.events.iter().any(|event| event == event_key);
        self.0.iter().filter(wants).map(|of| of.name.as_str())
    }
}

/// `webhook-id` of a delivery: the same for each try, and for the same event again after a restore of the database. Without a dot,
/// which separates the parts of what is signed. `event_hash`: the first bytes of a hash of the event's key and body.
#[must_use]
pub(crate) fn message_id(request_id: RequestId, event_hash: &[u8]) -> String {
    let digits: String = event_hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{request_id}_{digits}")
}

/// What is signed: `id.timestamp.body`. `timestamp_s`: Unix seconds of this try.
#[must_use]
pub(crate) fn signed_content(message_id: &str, timestamp_s: i64, body: &[u8]) -> Vec<u8> {
    [format!("{message_id}.{timestamp_s}.").as_bytes(), body].concat()
}

/// The body that is sent: `{"type":…,"timestamp":…,"data":…}`; `data` is the event as it is published to the exchange.
/// `happened_at`: RFC 3339.
#[must_use]
pub(crate) fn payload(event_key: &str, happened_at: &str, data: &[u8]) -> Vec<u8> {
    let head = format!(r#"{{"type":"{event_key}","timestamp":"{happened_at}","data":"#);
    [head.as_bytes(), data, b"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        assert!(DeliveryState::ALL.iter().all(|state| DeliveryState::from_code(state.code()) == Some(*state)));
    }

    #[test]
    fn only_the_webhooks_that_want_an_event_get_it() {
        let of = |name: &str, events: &[&str]| WebhookSubscription {
            name: name.to_owned(),
            events: events.iter().map(|event| (*event).to_owned()).collect(),
        };
        let all = WebhookSubscriptions::new(vec![of("a", &["order.paid", "order.failed"]), of("b", &["order.paid"])]);
        assert_eq!(all.wanting("order.paid").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(all.wanting("order.failed").collect::<Vec<_>>(), ["a"]);
        let older = WebhookSubscriptions::new(vec![of("b", &["order.failed"]), of("c", &["order.paid"])]);
        let joined = all.joined(&older);
        assert_eq!(joined.wanting("order.failed").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(joined.wanting("order.paid").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(
            all.wanting("order.expired").count() + WebhookSubscriptions::default().wanting("order.paid").count(),
            0
        );
    }

    #[test]
    fn a_message_has_an_id_without_a_dot_and_a_body_that_is_json() {
        let id = message_id(RequestId::new(7).unwrap(), &[0xab, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(id, "msg_7_ab01020304050607");
        assert_eq!(signed_content(&id, 5, b"{}"), b"msg_7_ab01020304050607.5.{}");
        let body = payload("order.paid", "2026-11-25T08:00:00.000Z", br#"{"rid":"7"}"#);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            body,
            serde_json::json!({ "type": "order.paid", "timestamp": "2026-11-25T08:00:00.000Z", "data": { "rid": "7" } })
        );
    }
}
