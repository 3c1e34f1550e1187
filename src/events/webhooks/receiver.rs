//! One try to deliver an event to one receiver, by Standard Webhooks 1.0.0.
//!
//! Input: a row of `webhook_deliveries`. Output: what the receiver answered, or what went wrong. One deadline for all of it, redirects
//! are not followed, and the body of an answer is not read. A crash in between leaves the row due.
//! Connections are kept for the next tries. A try whose connection ends before the answer is sent once more at once, under the same id.

use crate::config::{Webhook, WebhookDelivery};
use crate::domain::webhook::{message_id, payload};
use crate::events::webhooks::rows::DueDelivery;
use crate::events::webhooks::signer::MessageSigner;
use crate::http::client::{HeaderMap, OutgoingCall, OutgoingClient, RETRY_AFTER, StatusCode, advised};
use crate::http::times::shown_time;
use crate::runtime::now_ms;
use crate::store::tls::Trust;
use chrono::DateTime;
use sha2::{Digest, Sha256};
use std::time::Duration;
use url::Url;

/// What a try came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TryOutcome {
    /// The receiver answered 2xx.
    Delivered,
    /// It answered 410: it wants nothing any more.
    Gone,
    /// Anything else.
    Failed(FailedTry),
}

impl TryOutcome {
    /// A fault of this program cut it off.
    pub(crate) fn died() -> Self {
        Self::Failed(FailedTry::of("the try died of a fault of the sender; see its log".to_owned()))
    }
}

/// Why a try failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedTry {
    /// In words, for operators.
    pub(crate) problem: String,
    /// How long the receiver asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// Whether it is only too busy (429, 502, 503, 504).
    pub(crate) is_busy: bool,
}

impl FailedTry {
    fn of(problem: String) -> Self {
        Self { problem, retry_after: None, is_busy: false }
    }
}

/// Where the events of a webhook go.
pub(crate) struct Receiver {
    client: OutgoingClient,
    signer: MessageSigner,
    deadline: Duration,
}

impl Receiver {
    /// For a webhook of the settings, which were checked; `trust` is used where its address encrypts.
    pub(crate) fn new(webhook: &Webhook, trust: Option<&Trust>, of: &WebhookDelivery) -> Result<Self, String> {
        let url = Url::parse(webhook.url.expose()).map_err(|error| error.to_string())?;
        let client = OutgoingClient::new(url, trust, of.in_flight_each_max.into());
        let deadline = Duration::from_millis(of.deadline_ms);
        Ok(Self { client, signer: MessageSigner::new(webhook.secrets.all()), deadline })
    }

    /// Sends a delivery once.
    pub(crate) async fn try_once(&self, delivery: &DueDelivery) -> TryOutcome {
        let answered = tokio::time::timeout(self.deadline, self.client.call(self.call(delivery))).await;
        match answered {
            // Whether the receiver has it is unknown: it gets it again, under the same id.
            Err(_elapsed) => TryOutcome::Failed(FailedTry::of(format!("no answer within {:?}", self.deadline))),
            Ok(Err(words)) => {
                let advised = advised(&words, "webhook_delivery.tls_ca_file", "the url of this webhook");
                TryOutcome::Failed(FailedTry::of(advised))
            }
            Ok(Ok(answer)) => outcome(answer.status(), answer.headers()),
        }
    }

    fn call(&self, delivery: &DueDelivery) -> OutgoingCall {
        let body = payload(&delivery.event_key, &shown_time(delivery.created_at_ms), &delivery.body);
        let event_hash = Sha256::new().chain_update(&delivery.event_key).chain_update(&delivery.body).finalize();
        let id = message_id(delivery.request_id, &event_hash);
        self.signer.call(id, now_ms() / 1000, body)
    }
}

fn outcome(status: StatusCode, headers: &HeaderMap) -> TryOutcome {
    if status.is_success() {
        return TryOutcome::Delivered;
    }
    if status == StatusCode::GONE {
        return TryOutcome::Gone;
    }
    let is_busy = matches!(status.as_u16(), 429 | 502 | 503 | 504);
    let remark = if status.is_redirection() { "; redirects are not followed" } else { "" };
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|value| pause_of(value, now_ms()));
    TryOutcome::Failed(FailedTry { problem: format!("answers {status}{remark}"), retry_after, is_busy })
}

/// The pause that `Retry-After` names: seconds, or a date.
fn pause_of(value: &str, now_ms: i64) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let at = DateTime::parse_from_rfc2822(value.trim()).ok()?;
    u64::try_from(at.timestamp_millis() - now_ms).ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::client::HeaderValue;

    #[test]
    fn each_answer_has_its_meaning() {
        let headers = |retry_after: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
            headers
        };
        let of = |status: u16, headers: &HeaderMap| outcome(StatusCode::from_u16(status).unwrap(), headers);
        for status in [200, 204, 299] {
            assert_eq!(of(status, &HeaderMap::new()), TryOutcome::Delivered);
        }
        assert_eq!(of(410, &HeaderMap::new()), TryOutcome::Gone);
        for (status, is_busy) in [(302, false), (400, false), (429, true), (500, false), (503, true)] {
            let TryOutcome::Failed(failed) = of(status, &headers("7")) else { panic!("{status}") };
            assert_eq!((failed.is_busy, failed.retry_after), (is_busy, Some(Duration::from_secs(7))), "{status}");
            assert!(failed.problem.contains(&status.to_string()));
        }
    }

    #[test]
    fn a_pause_is_seconds_or_a_date_and_nothing_else() {
        let now_ms = 1_763_720_000_000;
        assert_eq!(pause_of("120", now_ms), Some(Duration::from_secs(120)));
        assert_eq!(pause_of("Fri, 21 Nov 2025 10:14:20 GMT", now_ms), Some(Duration::from_secs(60)));
        assert_eq!(pause_of("Fri, 21 Nov 2025 10:13:19 GMT", now_ms), None, "it is over");
        assert_eq!(pause_of("soon", now_ms), None);
        assert_eq!(pause_of("-1", now_ms), None);
    }
}
