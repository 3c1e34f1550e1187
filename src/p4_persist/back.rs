//! Sending messages back: to a retry queue with one more attempt counted, or to the MQ DLQ with the reason.
//!
//! The broker's confirm comes before the ack of the original, so the message is never in neither place. Attempts are ours,
//! in a header; the broker's own delivery limit is only the last net, because a loop through it is cut by dropping.

use super::Outcome;
use crate::domain::fault::Disposition;
use crate::store::rabbit::{
    ATTEMPT_HEADER, Confirms, Delivery, DeliveryId, HeaderValue, Outgoing, Publisher, RabbitConfig, RabbitError,
    Topology, Verdict,
};
use std::time::{Duration, Instant};

/// Why a message is sent back: a stable code and words for a person.
#[derive(Debug, Clone)]
pub(super) struct Why {
    code: &'static str,
    detail: String,
}

impl Why {
    pub(super) fn new(code: &'static str, detail: &impl std::fmt::Display) -> Self {
        Self { code, detail: detail.to_string().chars().take(500).collect() }
    }
}

/// A way to send messages back.
pub(super) struct SendBack<'a> {
    pub rabbit: &'a RabbitConfig,
    pub publisher: &'a mut Option<Publisher>,
}

impl SendBack<'_> {
    /// Sends all, and returns the deliveries whose copies are confirmed and may be acknowledged.
    ///
    /// # Errors
    /// When any copy is not confirmed: nothing more is acknowledged then, and all of them come again.
    pub(super) async fn all(&mut self, outcomes: Vec<Outcome>) -> Result<Vec<DeliveryId>, RabbitError> {
        let sent = self.publish(outcomes).await;
        if sent.is_err() {
            *self.publisher = None;
        }
        sent
    }

    async fn publish(&mut self, outcomes: Vec<Outcome>) -> Result<Vec<DeliveryId>, RabbitError> {
        if !self.publisher.as_ref().is_some_and(Publisher::is_open) {
            *self.publisher = Some(Publisher::connect(self.rabbit).await?);
        }
        let closed = || RabbitError::Closed("no connection to send messages back on".to_owned());
        let publisher = self.publisher.as_mut().ok_or_else(closed)?;
        let topology = Topology::new(self.rabbit);
        let (count, mut confirms, mut confirmed) = (outcomes.len(), Confirms::new(), Vec::new());
        for outcome in outcomes {
            let id = outcome.delivery.id;
            let tag = publisher.publish(copy(&topology, outcome)).await?;
            confirms.sent(tag, id, Instant::now());
        }
        let deadline = Instant::now() + Duration::from_millis(self.rabbit.connect_timeout_ms);
        while confirmed.len() < count {
            let late = || RabbitError::Timeout { what: "send messages back", limit_ms: self.rabbit.connect_timeout_ms };
            let event = publisher.next_event(deadline).await.ok_or_else(late)?;
            if let crate::store::rabbit::Event::Closed(reason) = event {
                return Err(RabbitError::Closed(reason));
            }
            for (id, verdict) in confirms.apply(event) {
                match verdict {
                    Verdict::Confirmed => confirmed.push(id),
                    Verdict::Refused => return Err(RabbitError::Closed("the broker refused a copy".to_owned())),
                    Verdict::Unroutable(words) => return Err(RabbitError::Closed(words)),
                }
            }
        }
        Ok(confirmed)
    }
}

fn copy(topology: &Topology, outcome: Outcome) -> Outgoing {
    let Delivery { message_id, routing_key, body, attempts, headers, .. } = outcome.delivery;
    let exchange = match outcome.disposition {
        Disposition::Retry => topology.retry_exchange(attempts + 1),
        Disposition::Park | Disposition::Done => topology.dlq(),
    };
    let mut copy = Outgoing::new((&exchange, &routing_key), message_id.unwrap_or_default(), body)
        .headers(headers)
        .header(ATTEMPT_HEADER, HeaderValue::Int(i64::from(attempts) + 1));
    if let Some(why) = outcome.why {
        copy = copy
            .header("x-seckill-reason", HeaderValue::Text(why.code.to_owned()))
            .header("x-seckill-detail", HeaderValue::Text(why.detail));
    }
    copy
}
