//! Messages that are sent back: to a retry queue with one more attempt counted, or to the MQ DLQ with the reason.
//!
//! Input: handled deliveries that are not finished. Output: confirmed copies, then acks of the originals. The broker's confirm
//! comes before the ack, so the message is never lost in between; a crash there leaves two copies, which the database tells
//! apart by the request id. Attempts are counted in a header of ours. The broker's own delivery limit is only a last safety
//! net: it drops a message that loops.

use super::Persist;
use super::handled::HandledDelivery;
use crate::domain::states::P4Persist;
use crate::faults::crash_point;
use crate::store::rabbit::{
    ATTEMPT_HEADER, Delivery, DeliveryId, HeaderValue, Outgoing, PublishRoute, RabbitError, Topology,
};
use std::time::{Duration, Instant};

/// Pause before the same messages are sent back again.
const NEXT_TRY_AFTER: Duration = Duration::from_secs(1);

/// A delivery whose copy the broker has not confirmed yet.
pub(super) struct UnsentCopy {
    pub(crate) handled: HandledDelivery,
    /// Only without the mechanism `AckAfterCommit`: the original is acknowledged already.
    pub(crate) acked_early: bool,
}

/// The copy that is sent back.
pub(super) fn copy(topology: &Topology, handled: &HandledDelivery) -> Outgoing {
    let Delivery { message_id, routing_key, body, attempts, headers, .. } = &handled.delivery;
    let exchange = match handled.state {
        P4Persist::SysErrorRetry => topology.retry_exchange(attempts + 1),
        P4Persist::MqDlq | P4Persist::DbOk | P4Persist::Idempotent | P4Persist::BizErrorAck => topology.dlq(),
    };
    let mut copy = Outgoing::new(
        PublishRoute { exchange: &exchange, key: routing_key },
        message_id.clone().unwrap_or_default(),
        body.clone(),
    )
    .headers(headers.clone())
    .header(ATTEMPT_HEADER, HeaderValue::Int(i64::from(*attempts) + 1));
    if let Some(reason) = &handled.reason {
        copy = copy
            .header("x-seckill-reason", HeaderValue::Text(reason.code.to_owned()))
            .header("x-seckill-detail", HeaderValue::Text(reason.detail.clone()));
    }
    copy
}

impl Persist {
    /// Sends copies of unfinished messages, and acknowledges the originals once the broker has confirmed the copies. A broker
    /// that takes no copies delays nothing else: the originals stay unacknowledged, within the prefetch, and are tried again.
    pub(super) async fn send_back(&mut self) -> Result<(), RabbitError> {
        self.forget_what_comes_again();
        if self.unsent_copies.is_empty() || Instant::now() < self.send_back_at {
            return Ok(());
        }
        let topology = Topology::new(&self.rabbit);
        let copies = self.unsent_copies.iter().map(|unsent| copy(&topology, &unsent.handled)).collect();
        if let Err(error) = self.sender.send(copies).await {
            let count = self.unsent_copies.len();
            tracing::warn!(phase = "p4_persist", %error, count, "messages not sent back, they stay unacknowledged and are tried again");
            self.send_back_at = Instant::now() + NEXT_TRY_AFTER;
            return Ok(());
        }
        crash_point!(AfterRetryPublished);
        let sent = std::mem::take(&mut self.unsent_copies);
        let ids: Vec<DeliveryId> =
            sent.iter().filter(|unsent| !unsent.acked_early).map(|unsent| unsent.handled.delivery.id).collect();
        self.ack(&ids).await
    }
}
