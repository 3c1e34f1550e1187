//! Messages that are sent back: to a retry queue with one more attempt counted, or to the MQ DLQ with the reason.
//!
//! Input: handled deliveries that are not finished. Output: confirmed copies, then acks of the originals. The broker's confirm
//! comes before the ack, so the message is never lost in between; a crash there leaves two copies, which the database
//! distinguishes by the request id. Attempts are counted in a header of ours, and beside it, how often in a row a message was sent back
//! for no fault of its own: both make the pause longer, only attempts are spent. The broker's own delivery limit is only a last safety
//! net: it drops a message that loops.

use super::Persist;
use super::handled::HandledDelivery;
use crate::domain::states::P4Persist;
use crate::faults::crash_point;
use crate::store::rabbit::{
    ATTEMPT_HEADER, Delivery, DeliveryId, HeaderValue, Outgoing, PublishRoute, RabbitError, Topology, WAIT_HEADER,
    waits,
};
use crate::trace_points::trace_point;
use std::time::{Duration, Instant};

/// Pause before the same messages are sent back again.
const NEXT_TRY_AFTER: Duration = Duration::from_secs(1);

/// A delivery whose copy the broker has not confirmed yet.
pub(super) struct UnsentCopy {
    pub(crate) handled: HandledDelivery,
    /// Only without the mechanism `AckAfterCommit`: the original is acknowledged already.
    pub(crate) acked_early: bool,
}

/// The attempts of the copy, and how often in a row it has waited.
fn next_counts(HandledDelivery { delivery, has_waited, .. }: &HandledDelivery) -> (u32, u32) {
    if *has_waited { (delivery.attempts, waits(&delivery.headers) + 1) } else { (delivery.attempts + 1, 0) }
}

/// The copy that is sent back.
pub(super) fn copy(topology: &Topology, handled: &HandledDelivery) -> Outgoing {
    let Delivery { message_id, routing_key, body, headers, .. } = &handled.delivery;
    let (attempts, waits) = next_counts(handled);
    let exchange = match handled.state {
        P4Persist::SysErrorRetry => topology.retry_exchange(attempts + waits),
        P4Persist::MqDlq | P4Persist::DbOk | P4Persist::Idempotent | P4Persist::BizErrorAck => topology.dlq(),
    };
    let mut copy = Outgoing::new(
        PublishRoute { exchange: &exchange, key: routing_key },
        message_id.clone().unwrap_or_default(),
        body.clone(),
    )
    .headers(headers.clone())
    .header(ATTEMPT_HEADER, HeaderValue::Int(attempts.into()))
    .header(WAIT_HEADER, HeaderValue::Int(waits.into()));
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
        for UnsentCopy { handled, .. } in &sent {
            trace_point!(Copied { tag: handled.delivery.id.traced() });
        }
        let ids: Vec<DeliveryId> =
            sent.iter().filter(|unsent| !unsent.acked_early).map(|unsent| unsent.handled.delivery.id).collect();
        self.ack(&ids).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message;
    use crate::store::mysql::DbError;
    use crate::store::rabbit::Headers;

    const ATTEMPTS_MAX: u32 = 3;

    /// A message that was tried and has waited this often meets an error: its counts then, and its state.
    fn sent_back((attempts, waits): (u32, u32), error: DbError) -> ((u32, u32), P4Persist) {
        let body = br#"{"v":1,"rid":"5","sale":"s","user":"u","qty":1,"shard":0,"epoch":1,"no":1,"at":9}"#;
        let order = message::decode(body).unwrap();
        let delivery = Delivery {
            id: DeliveryId::default(),
            redelivered: false,
            routing_key: "0".into(),
            message_id: None,
            body: body.to_vec(),
            order: None,
            attempts,
            headers: Headers::from([(WAIT_HEADER.to_owned(), HeaderValue::Int(waits.into()))]),
        };
        let handled = HandledDelivery::decided(delivery, &order, Err(error), ATTEMPTS_MAX);
        (next_counts(&handled), handled.state)
    }

    #[test]
    fn a_lock_of_others_spends_no_attempts_and_makes_the_pauses_longer() {
        let locked = || DbError::SaleLocked(crate::domain::ids::SaleId::parse("s").unwrap());
        let mut counts = (0, 0);
        for (round, error) in (1..).zip([locked(), DbError::LeftUntried, locked(), locked()]) {
            let (next, state) = sent_back(counts, error);
            assert_eq!((next, state), ((0, round), P4Persist::SysErrorRetry));
            counts = next;
        }
        for spent in 1..ATTEMPTS_MAX {
            let (next, state) = sent_back(counts, DbError::Deadlock);
            assert_eq!((next, state), ((spent, 0), P4Persist::SysErrorRetry));
            counts = next;
        }
        assert_eq!(sent_back((counts.0, 9), locked()).1, P4Persist::SysErrorRetry);
        assert_eq!(sent_back(counts, DbError::Deadlock).1, P4Persist::MqDlq);
    }
}
