//! What follows a landed group: its events, its acks and copies, its marks in the ledger.
//!
//! Input: a group whose outcomes are committed. Output: events at the broker, messages acknowledged or sent back, ledger records
//! marked; in this order, while the next group is landed. A crash before the ack leaves a redelivery that finds its outcome and
//! is told again; one after it leaves records that P5 marks.

use super::{HandledDelivery, Persist, back, events};
use crate::domain::fault::Disposition;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::outcome::{Outcome, Verdict};
use crate::domain::request::Accepted;
use crate::domain::states::{P4Persist, Phase, State};
use crate::faults::{crash_point, left_out};
use crate::store::mysql::DbError;
use crate::store::rabbit::{DeliveryId, RabbitError, Topology};
use crate::telemetry::count;
use crate::telemetry::traces::{self, Done, further};
use futures::future::join_all;
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

/// Between two tries to send the same messages back.
const BACK_AGAIN: Duration = Duration::from_secs(1);

/// Outcomes by ledger.
type Settled = HashMap<(SaleId, u16), Vec<(RequestId, Outcome)>>;

/// A group that is decided and committed.
pub(super) struct Landed {
    pub told: Vec<events::Event>,
    pub outcomes: Vec<HandledDelivery>,
    pub settled: Settled,
    pub acked_early: bool,
}

impl HandledDelivery {
    /// Tells the landing as a span, if the order is traced.
    pub(super) fn trace(&self, request_id: RequestId, begun: SystemTime) {
        let Some(told) = traces::of(request_id) else { return };
        let failed = !matches!(self.state, P4Persist::DbOk | P4Persist::Idempotent);
        let done = Done { begun, state: Some(State::P4(self.state)), attempt: self.delivery.attempts + 1, failed };
        told.tell(further(Phase::P4Persist, begun), done);
    }
}

impl Persist {
    /// Tells, acknowledges and marks a landed group.
    pub(super) async fn conclude(&mut self, landed: Landed) -> Result<(), RabbitError> {
        let Landed { told, outcomes, settled, acked_early } = landed;
        if let Err(error) = self.tell(told).await {
            // Untold and unwritten: all of it comes again, finds its outcome, and is told then.
            return Err(RabbitError::Closed(format!("given up, because events could not be written: {error}")));
        }
        self.finish(outcomes, acked_early).await?;
        self.mark(settled).await;
        Ok(())
    }

    /// Acknowledges what is done, sends back what is not and acknowledges it once the broker has the copy.
    async fn finish(&mut self, outcomes: Vec<HandledDelivery>, acked_early: bool) -> Result<(), RabbitError> {
        let (done, back): (Vec<HandledDelivery>, Vec<HandledDelivery>) =
            outcomes.into_iter().partition(|outcome| outcome.disposition == Disposition::Done);
        for outcome in done.iter().chain(&back) {
            count(State::P4(outcome.state), 1);
        }
        let ids = |outcomes: &[HandledDelivery]| -> Vec<DeliveryId> {
            outcomes.iter().filter(|_| !acked_early).map(|outcome| outcome.delivery.id).collect()
        };
        self.ack(&ids(&done)).await?;
        if left_out!(ConfirmedRetry) && !back.is_empty() {
            self.ack_early(&ids(&back)).await?;
            crash_point!(AfterRetryPublished);
            let topology = Topology::new(&self.rabbit);
            let copies = back.iter().map(|outcome| back::copy(&topology, outcome)).collect();
            return self.sender.send(copies).await;
        }
        self.back.extend(back.into_iter().map(|outcome| (outcome, acked_early)));
        self.send_back().await
    }

    /// Sends back what is to be sent back, and acknowledges it once the broker has the copies. A broker that takes no copies
    /// holds up nothing else: the originals stay in hand, within the prefetch, and are tried again.
    pub(super) async fn send_back(&mut self) -> Result<(), RabbitError> {
        if self.back.is_empty() || Instant::now() < self.back_at {
            return Ok(());
        }
        let topology = Topology::new(&self.rabbit);
        let copies = self.back.iter().map(|(outcome, _)| back::copy(&topology, outcome)).collect();
        if let Err(error) = self.sender.send(copies).await {
            let count = self.back.len();
            tracing::warn!(phase = "p4_persist", %error, count, "not sent back, stays in hand and is tried again");
            self.back_at = Instant::now() + BACK_AGAIN;
            return Ok(());
        }
        crash_point!(AfterRetryPublished);
        let sent = std::mem::take(&mut self.back);
        let ids: Vec<DeliveryId> =
            sent.iter().filter(|(_, acked_early)| !acked_early).map(|(outcome, _)| outcome.delivery.id).collect();
        self.ack(&ids).await
    }

    async fn ack(&mut self, ids: &[DeliveryId]) -> Result<(), RabbitError> {
        match &mut self.consumer {
            Some(consumer) if !ids.is_empty() => consumer.ack(ids).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Only where a mechanism is left out: the library sends from a task of its own, and the ack is to be out before the
    /// process may die.
    pub(super) async fn ack_early(&mut self, ids: &[DeliveryId]) -> Result<(), RabbitError> {
        self.ack(ids).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(())
    }

    /// Tells the ledger what was decided, so that buyers who ask do not reach the database. Best effort: P5 marks the rest.
    async fn mark(&self, settled: Settled) {
        let marks = settled.into_iter().map(|((sale, shard), outcomes)| async move {
            if let Err(error) = self.redis.ledger.mark_outcomes(&sale, shard, &outcomes).await {
                tracing::debug!(phase = "p4_persist", %sale, shard, %error, count = outcomes.len(), "ledger not marked");
            }
        });
        join_all(marks).await;
    }
}

/// The outcomes that are known now, by ledger.
pub(super) fn settled(items: &[Accepted], verdicts: &[Result<Verdict, DbError>]) -> Settled {
    let mut settled = Settled::new();
    for (accepted, verdict) in items.iter().zip(verdicts) {
        if let Ok(Some(outcome)) = verdict.as_ref().map(|verdict| verdict.outcome()) {
            let ledger = (accepted.purchase.sale_id.clone(), accepted.shard);
            settled.entry(ledger).or_default().push((accepted.purchase.request_id, outcome));
        }
    }
    settled
}

/// Records how long ago what landed just now was accepted. Redis' clock and this machine's may differ; what seems to lie
/// in the future took no time. Repeats are not timed: their landing was.
pub(super) fn time_landing(items: &[Accepted], verdicts: &[Result<Verdict, DbError>], now_ms: i64) {
    let histogram = metrics::histogram!("seckill_p4_persist_accept_to_landed_seconds");
    for (accepted, verdict) in items.iter().zip(verdicts) {
        if matches!(verdict, Ok(Verdict::Ordered | Verdict::Refused(_))) {
            histogram.record((now_ms - accepted.accepted_at_ms).max(0) as f64 / 1000.0);
        }
    }
}
