//! What follows the commit of a group: its events, its acks and copies, its outcomes in the ledger.
//!
//! Input: a group whose outcomes are committed. Output, in this order and while the next group is written: events at the
//! broker, messages acknowledged or sent back, ledger records marked. A crash before the ack leaves a redelivery, which finds
//! its outcome and publishes the event again; a crash after it leaves records that P5 marks.

use super::Persist;
use super::handled::HandledDelivery;
use super::ledger_marks::LedgerMarks;
use super::send_back::{UnsentCopy, copy};
use crate::domain::ids::RequestId;
use crate::domain::ledger::SettledUpTo;
use crate::domain::message::OrderMessage;
use crate::domain::outcome::Verdict;
use crate::domain::states::{P4Persist, Phase, State};
use crate::faults::{crash_point, hold, left_out};
use crate::store::mysql::DbError;
use crate::store::rabbit::{DeliveryId, RabbitError, Topology};
use crate::telemetry::count;
use crate::telemetry::traces::{self, SpanResult};
use crate::trace_points::trace_point;
use std::time::{Duration, SystemTime};

/// A group whose outcomes are committed, and whose messages are not acknowledged yet.
pub(super) struct CommittedGroup {
    pub(crate) handled: Vec<HandledDelivery>,
    pub marks: Vec<LedgerMarks>,
    /// Only without the mechanism `AckAfterCommit`, or `EventBeforeAck`.
    pub(crate) acked_early: bool,
}

impl CommittedGroup {
    /// The outcomes of what is decided among `items`.
    pub(super) fn new(items: &[OrderMessage], verdicts: &[Result<Verdict, DbError>], acked_early: bool) -> Self {
        let mut marks: Vec<LedgerMarks> = Vec::new();
        for (accepted, verdict) in items.iter().zip(verdicts) {
            let Ok(Some(outcome)) = verdict.as_ref().map(|verdict| verdict.outcome()) else { continue };
            let (sale_id, shard) = (&accepted.purchase.sale_id, accepted.shard);
            let mark = (accepted.purchase.request_id, outcome);
            let place = SettledUpTo { epoch: accepted.epoch, number: accepted.number };
            // A group is of few ledgers, mostly of one.
            match marks.iter_mut().find(|of| of.shard == shard && of.sale_id == *sale_id) {
                Some(of) => {
                    of.outcomes.push(mark);
                    of.newest = of.newest.max(place);
                }
                None => {
                    marks.push(LedgerMarks { sale_id: sale_id.clone(), shard, outcomes: vec![mark], newest: place });
                }
            }
        }
        Self { handled: Vec::with_capacity(items.len()), marks, acked_early }
    }
}

/// Emits the P4 span of a request, if it is traced.
pub(super) fn trace(handled: &HandledDelivery, request_id: RequestId, begun: SystemTime) {
    let Some(trace) = traces::sampled(request_id) else { return };
    let failed = !matches!(handled.state, P4Persist::DbOk | P4Persist::Idempotent);
    let result =
        SpanResult { begun, state: Some(State::P4(handled.state)), attempt: handled.delivery.attempts + 1, failed };
    trace.record(traces::leaf(Phase::P4Persist, begun), result);
}

impl Persist {
    /// Publishes the events of a committed group and of what was committed before, acknowledges its messages and marks its ledger records.
    pub(super) async fn after_commit(&mut self, group: CommittedGroup) -> Result<(), RabbitError> {
        let CommittedGroup { handled, marks, mut acked_early } = group;
        if left_out!(EventBeforeAck) {
            let ids: Vec<DeliveryId> = handled.iter().map(|handled| handled.delivery.id).collect();
            self.ack_early(&ids).await?;
            acked_early = true;
        }
        hold!(GroupCommitted);
        // Without its events nothing may be acknowledged.
        self.publish_or_store().await?;
        self.ack_or_send_back(handled, acked_early).await?;
        self.marker.mark(marks).await;
        Ok(())
    }

    /// Acknowledges finished messages. Sends the others back, and acknowledges them once the broker has the copies.
    async fn ack_or_send_back(&mut self, handled: Vec<HandledDelivery>, acked_early: bool) -> Result<(), RabbitError> {
        for same in handled.chunk_by(|one, next| one.state == next.state) {
            same.first().into_iter().for_each(|first| count(State::P4(first.state), same.len()));
        }
        let (done, unfinished): (Vec<_>, Vec<_>) = handled.into_iter().partition(HandledDelivery::is_done);
        let ids = |handled: &[HandledDelivery]| -> Vec<DeliveryId> {
            handled.iter().filter(|_| !acked_early).map(|handled| handled.delivery.id).collect()
        };
        self.ack(&ids(&done)).await?;
        if !unfinished.is_empty() {
            hold!(OrdersAcked);
        }
        if left_out!(ConfirmedRetry) && !unfinished.is_empty() {
            self.ack_early(&ids(&unfinished)).await?;
            crash_point!(AfterRetryPublished);
            let topology = Topology::new(&self.rabbit);
            let copies = unfinished.iter().map(|handled| copy(&topology, handled)).collect();
            return self.sender.send(copies).await;
        }
        self.unsent_copies.extend(unfinished.into_iter().map(|handled| UnsentCopy { handled, acked_early }));
        self.send_back().await
    }

    pub(super) async fn ack(&mut self, ids: &[DeliveryId]) -> Result<(), RabbitError> {
        for id in ids {
            trace_point!(Ack { tag: id.traced() });
        }
        if ids.is_empty() { Ok(()) } else { self.intake.ack(ids).await }
    }

    /// Only where a mechanism is left out. The client library sends from a task of its own, and the ack has to be out before
    /// the process may die.
    pub(super) async fn ack_early(&mut self, ids: &[DeliveryId]) -> Result<(), RabbitError> {
        self.ack(ids).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(())
    }
}

/// Records how long ago what was committed now was accepted. Redis' clock and this machine's clock may differ; an acceptance
/// that seems to lie in the future took no time. Repeats are not recorded: their first commit was.
pub(super) fn record_delay(items: &[OrderMessage], verdicts: &[Result<Verdict, DbError>], now_ms: i64) {
    let histogram = metrics::histogram!("seckill_p4_persist_accept_to_landed_seconds");
    let new = |(accepted, verdict): (&OrderMessage, &Result<Verdict, DbError>)| match verdict {
        Ok(Verdict::Ordered | Verdict::Refused(_)) => Some(accepted.accepted_at_ms),
        Ok(Verdict::Already(_) | Verdict::Conflict) | Err(_) => None,
    };
    let accepted_at: Vec<i64> = items.iter().zip(verdicts).filter_map(new).collect();
    for same in accepted_at.chunk_by(|one, next| one == next) {
        let delay_ms = same.first().map_or(0, |at_ms| (now_ms - at_ms).max(0));
        histogram.record_many(delay_ms as f64 / 1000.0, same.len());
    }
}
