//! One delivery and the state that it reached: the database's verdict goes through the transition table of the domain.
//!
//! Input: a delivery with a verdict, a database error or an unreadable body. Output: its P4 state, which says whether it is
//! acknowledged, retried or parked, and why. Pure but for log lines.

use crate::domain::message::{MessageError, OrderMessage};
use crate::domain::outcome::Verdict;
use crate::domain::states::{P3Relay, P4Persist, RequestEvent, State};
use crate::store::mysql::DbError;
use crate::store::rabbit::Delivery;
use crate::trace_points::trace_point;

/// Why a message is sent back: a stable code and words for a person.
#[derive(Debug, Clone)]
pub(super) struct SendBackReason {
    pub code: &'static str,
    pub detail: String,
}

impl SendBackReason {
    fn new(code: &'static str, detail: &impl std::fmt::Display) -> Self {
        Self { code, detail: detail.to_string().chars().take(500).collect() }
    }
}

/// Different reasons of one group that are logged.
const REASONS_LOGGED_MAX: usize = 3;

/// Orders of one group that are sent back for the same reason, and count an attempt each.
#[derive(Debug, PartialEq, Eq)]
struct RetriedOrders<'a> {
    detail: &'a str,
    /// The first of them.
    request_id: &'a str,
    attempts: u32,
    orders: usize,
}

fn retried(group: &[HandledDelivery]) -> Vec<RetriedOrders<'_>> {
    let mut found: Vec<RetriedOrders> = Vec::new();
    for handled in group.iter().filter(|handled| !handled.has_waited) {
        let (P4Persist::SysErrorRetry, Some(reason)) = (handled.state, &handled.reason) else { continue };
        if let Some(known) = found.iter_mut().find(|known| known.detail == reason.detail) {
            known.orders += 1;
        } else if found.len() < REASONS_LOGGED_MAX {
            let request_id = handled.delivery.message_id.as_deref().unwrap_or_default();
            let attempts = handled.delivery.attempts + 1;
            found.push(RetriedOrders { detail: &reason.detail, request_id, attempts, orders: 1 });
        }
    }
    found
}

/// Logs what of a group will be redelivered. A line for each order and attempt would be gigabytes when nothing can be written.
pub(super) fn log_retried(group: &[HandledDelivery]) {
    for RetriedOrders { detail, request_id, attempts, orders } in retried(group) {
        tracing::warn!(phase = "p4_persist", request_id, error = detail, attempts, orders, "will be redelivered");
    }
}

/// Lines for the trace of a test build: these were delivered.
pub(super) fn trace_deliveries(deliveries: &[Delivery], orders: &[OrderMessage]) {
    for (delivery, order) in deliveries.iter().zip(orders) {
        let (tag, attempts) = (delivery.id.traced(), delivery.attempts);
        trace_point!(Delivered, order, { tag: tag, attempts: attempts, again: delivery.redelivered });
    }
}

/// A delivery with its new state.
pub(super) struct HandledDelivery {
    pub delivery: Delivery,
    pub state: P4Persist,
    /// Set when the message is sent back.
    pub reason: Option<SendBackReason>,
    /// It is sent back for no fault of its own: its attempts stay as they are.
    pub has_waited: bool,
}

impl HandledDelivery {
    /// Moves a delivery by the transition table. What the table forbids is logged and parked for a person.
    fn after(delivery: Delivery, event: RequestEvent, reason: Option<SendBackReason>) -> Self {
        let before = match delivery.attempts {
            0 => State::P3(P3Relay::SentOk),
            _ => State::P4(P4Persist::SysErrorRetry),
        };
        let message_id = delivery.message_id.as_deref().unwrap_or_default();
        match before.after(event) {
            Ok(State::P4(state)) => Self { delivery, state, reason, has_waited: false },
            Ok(other @ (State::P1(_) | State::P2(_) | State::P3(_) | State::P5(_) | State::P6(_))) => {
                tracing::error!(
                    phase = "p4_persist",
                    message_id,
                    state = other.code(),
                    ?event,
                    "contract violation: not a state of P4, parked"
                );
                Self { delivery, state: P4Persist::MqDlq, reason, has_waited: false }
            }
            Err(violation) => {
                tracing::error!(phase = "p4_persist", message_id, %violation, "parked");
                Self { delivery, state: P4Persist::MqDlq, reason, has_waited: false }
            }
        }
    }

    /// A line for the trace of a test build: what it came to.
    pub(super) fn trace(&self, order: &OrderMessage) {
        let attempts = self.delivery.attempts + u32::from(!self.has_waited);
        trace_point!(Handled, order, { tag: self.delivery.id.traced(), state: self.state.code(), attempts: attempts });
    }

    /// The same of one that cannot be read.
    pub(super) fn trace_unreadable(&self) {
        trace_point!(Handled { tag: self.delivery.id.traced(), state: self.state.code() });
    }

    /// What is sent back needs its order again.
    fn put_back(mut self, accepted: &OrderMessage) -> Self {
        if !self.is_done() {
            self.delivery.put_back(accepted);
        }
        self
    }

    /// Whether the message is finished, so that it is acknowledged and not sent back.
    pub(super) const fn is_done(&self) -> bool {
        match self.state {
            P4Persist::DbOk | P4Persist::Idempotent | P4Persist::BizErrorAck => true,
            P4Persist::SysErrorRetry | P4Persist::MqDlq => false,
        }
    }

    /// A message that this build cannot read. While two versions run side by side, a message of a later version waits in the
    /// retry queues for a consumer that reads it (window 24). After its last attempt, P5 finds its request in the ledger.
    pub(super) fn unreadable(delivery: Delivery, error: &MessageError, attempts_max: u32) -> Self {
        match error {
            MessageError::UnknownVersion(_) => {
                let reason = Some(SendBackReason::new("UNKNOWN_VERSION", error));
                let attempts = delivery.attempts + 1;
                if attempts >= attempts_max {
                    return Self::after(delivery, RequestEvent::PersistSpent, reason);
                }
                let request_id = delivery.message_id.as_deref().unwrap_or_default();
                tracing::debug!(phase = "p4_persist", request_id, %error, attempts, "left to a consumer that can read it");
                Self::after(delivery, RequestEvent::PersistFailed, reason)
            }
            MessageError::TooLong(_) | MessageError::Malformed(_) => {
                Self::after(delivery, RequestEvent::PersistSpent, Some(SendBackReason::new("UNDECODABLE", error)))
            }
        }
    }

    /// A message of which the database gave a verdict or an error.
    pub(super) fn decided(
        delivery: Delivery,
        accepted: &OrderMessage,
        verdict: Result<Verdict, DbError>,
        attempts_max: u32,
    ) -> Self {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return Self::failed(delivery, accepted, &error, attempts_max),
        };
        let request_id = accepted.purchase.request_id;
        let mut reason = None;
        match verdict {
            Verdict::Ordered => {
                tracing::debug!(phase = "p4_persist", %request_id, number = accepted.number, "ordered");
            }
            Verdict::Already(outcome) => {
                tracing::debug!(phase = "p4_persist", %request_id, ?outcome, "the outcome exists already");
            }
            Verdict::Refused(refusal) => {
                tracing::warn!(phase = "p4_persist", %request_id, reason = refusal.code(), "refused and recorded");
            }
            Verdict::Conflict => {
                tracing::error!(phase = "p4_persist", %request_id, "the request id has another outcome, parked");
                let detail = "the request id or its acceptance number has another outcome";
                reason = Some(SendBackReason::new("CONFLICT", &detail));
            }
        }
        Self::after(delivery, verdict.event(), reason).put_back(accepted)
    }

    fn failed(delivery: Delivery, accepted: &OrderMessage, error: &DbError, attempts_max: u32) -> Self {
        let (request_id, attempts) = (accepted.purchase.request_id, delivery.attempts + 1);
        if error.is_no_attempt() {
            tracing::debug!(phase = "p4_persist", %request_id, %error, "will be redelivered");
            let reason = Some(SendBackReason::new("SYSTEM_ERROR", error));
            let waiting = Self::after(delivery, RequestEvent::PersistFailed, reason).put_back(accepted);
            return Self { has_waited: true, ..waiting };
        }
        let (event, code) = match (attempts >= attempts_max, error) {
            (false, _) => {
                tracing::debug!(phase = "p4_persist", %request_id, %error, attempts, "will be redelivered");
                (RequestEvent::PersistFailed, "SYSTEM_ERROR")
            }
            (true, DbError::UnknownSale(_)) => {
                tracing::error!(phase = "p4_persist", %request_id, %error, "accepted, and its sale is unknown: parked");
                (RequestEvent::PersistSpent, "UNKNOWN_SALE")
            }
            (true, _) => {
                tracing::error!(phase = "p4_persist", %request_id, %error, attempts, "attempts spent, parked");
                (RequestEvent::PersistSpent, "ATTEMPTS_SPENT")
            }
        };
        Self::after(delivery, event, Some(SendBackReason::new(code, error))).put_back(accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message;
    use crate::store::rabbit::{DeliveryId, Headers};

    const ATTEMPTS_MAX: u32 = 3;

    fn handled(request: usize, attempts: u32, error: &DbError) -> HandledDelivery {
        let body =
            format!(r#"{{"v":1,"rid":"{request}","sale":"s","user":"u","qty":1,"shard":0,"epoch":1,"no":1,"at":9}}"#);
        let order = message::decode(body.as_bytes()).unwrap();
        let delivery = Delivery {
            id: DeliveryId::default(),
            redelivered: false,
            routing_key: "0".into(),
            message_id: Some(request.to_string()),
            body: body.into_bytes(),
            order: None,
            attempts,
            headers: Headers::default(),
        };
        HandledDelivery::decided(delivery, &order, Err(error.clone()), ATTEMPTS_MAX)
    }

    #[test]
    fn a_group_that_will_be_redelivered_has_one_line_for_each_reason() {
        let nothing_works = DbError::Other("impossible to write to binary log".to_owned());
        let group: Vec<_> = (1..=200).map(|request| handled(request, 0, &nothing_works)).collect();
        let text = nothing_works.to_string();
        let all = RetriedOrders { detail: &text, request_id: "1", attempts: 1, orders: 200 };
        assert_eq!(retried(&group), [all]);

        let mixed: Vec<_> = (1..=100).map(|n| handled(n, 0, &DbError::Other(format!("error {}", n % 50)))).collect();
        assert_eq!(retried(&mixed).len(), REASONS_LOGGED_MAX, "the rest is at level debug");
    }

    #[test]
    fn what_is_parked_or_only_waits_is_not_among_them() {
        let group = [handled(1, ATTEMPTS_MAX, &DbError::Deadlock), handled(2, 0, &DbError::LeftUntried)];
        assert_eq!(retried(&group), []);
    }
}
