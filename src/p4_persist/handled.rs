//! One delivery and the state that it reached: the database's verdict goes through the transition table of the domain.
//!
//! Input: a delivery with a verdict, a database error or an unreadable body. Output: its P4 state, which says whether it is
//! acknowledged, retried or parked, and why. Pure but for log lines.

use crate::domain::message::{MessageError, OrderMessage};
use crate::domain::outcome::Verdict;
use crate::domain::states::{P3Relay, P4Persist, RequestEvent, State};
use crate::store::mysql::DbError;
use crate::store::rabbit::Delivery;

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
                tracing::warn!(phase = "p4_persist", request_id, %error, attempts, "left to a consumer that can read it");
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
                tracing::warn!(phase = "p4_persist", %request_id, %error, attempts, "will be redelivered");
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
