//! Messages that are sent back: to a retry queue with one more attempt counted, or to the MQ DLQ with the reason.
//!
//! The broker's confirm comes before the ack of the original, so the message is never in neither place. Attempts are ours,
//! in a header; the broker's own delivery limit is only the last net, because a loop through it is cut by dropping.

use super::{HandledDelivery, parked};
use crate::domain::fault::Disposition;
use crate::domain::message::MessageError;
use crate::domain::states::P4Persist;
use crate::store::rabbit::{ATTEMPT_HEADER, Delivery, HeaderValue, Outgoing, Topology};

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

/// What happens to a message that this build cannot read. While two versions run side by side, one of a later version waits in
/// the retry queues for a consumer that can (window 24); after its attempts P5 has its request, from the ledger.
pub(super) fn unread(delivery: Delivery, error: &MessageError, attempts_max: u32) -> HandledDelivery {
    match error {
        MessageError::UnknownVersion(_) => {
            let why = Why::new("UNKNOWN_VERSION", error);
            if delivery.attempts + 1 >= attempts_max {
                return parked(delivery, why);
            }
            let (id, attempts) = (delivery.message_id.as_deref().unwrap_or_default(), delivery.attempts + 1);
            tracing::warn!(phase = "p4_persist", request_id = id, %error, attempts, "left to a consumer that can read it");
            HandledDelivery {
                delivery,
                disposition: Disposition::Retry,
                state: P4Persist::SysErrorRetry,
                why: Some(why),
            }
        }
        MessageError::TooLong(_) | MessageError::Malformed(_) => parked(delivery, Why::new("UNDECODABLE", error)),
    }
}

/// The copy that is sent back.
pub(super) fn copy(topology: &Topology, outcome: &HandledDelivery) -> Outgoing {
    let Delivery { message_id, routing_key, body, attempts, headers, .. } = &outcome.delivery;
    let exchange = match outcome.disposition {
        Disposition::Retry => topology.retry_exchange(attempts + 1),
        Disposition::Park | Disposition::Done => topology.dlq(),
    };
    let mut copy = Outgoing::new((&exchange, routing_key), message_id.clone().unwrap_or_default(), body.clone())
        .headers(headers.clone())
        .header(ATTEMPT_HEADER, HeaderValue::Int(i64::from(*attempts) + 1));
    if let Some(why) = &outcome.why {
        copy = copy
            .header("x-seckill-reason", HeaderValue::Text(why.code.to_owned()))
            .header("x-seckill-detail", HeaderValue::Text(why.detail.clone()));
    }
    copy
}
