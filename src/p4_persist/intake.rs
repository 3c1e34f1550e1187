//! Where deliveries come from: the broker, or the deliveries that are held until the database is available.
//!
//! A queue that cannot be consumed is left out, and the others go on (H6). Only when none can be consumed, that is trouble of the
//! whole writer, as it is with one order queue.
//!
//! Input: the order queues. Output: the next group. A crash here leaves deliveries unacknowledged: they come again.

use super::Persist;
use super::queue_intake::QueueIntake;
use crate::faults::left_out;
use crate::store::rabbit::{Delivery, DeliveryId, RabbitConfig, RabbitError};
use futures::future::select_all;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How often a writer that has no consumer checks which queues are to be tried again.
const CHECK: Duration = Duration::from_millis(250);
/// Longest pause between two tries of a queue while the writer has no consumer.
const TRY_PAUSE_ALONE: Duration = Duration::from_secs(1);

/// The order queues of one writer.
pub(super) struct Intake {
    config: RabbitConfig,
    /// The most unacknowledged messages of each queue.
    prefetch: u16,
    queues: Vec<QueueIntake>,
    /// The queue that gives first, another one each time: the backlog of one cannot starve the others.
    first: usize,
}

/// A queue whose consumer was lost, and why.
type LostConsumer = (String, RabbitError);

impl Intake {
    pub(super) fn new(config: &RabbitConfig, prefetch: u16) -> Self {
        let queues = (0..config.queues).map(|queue| QueueIntake::new(config, queue)).collect();
        Self { config: config.clone(), prefetch, queues, first: 0 }
    }

    /// Up to `max` deliveries that have arrived; waits up to `wait` for the first of them.
    ///
    /// # Errors
    /// Only when no queue can be consumed.
    async fn group(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, RabbitError> {
        self.connect().await?;
        let arrived = self.arrived(max).await?;
        if arrived.is_empty() && !wait.is_zero() { self.first_of_any(max, wait).await } else { Ok(arrived) }
    }

    /// Connects to the queues that have no consumer, in the background while there is one for another queue.
    async fn connect(&mut self) -> Result<(), RabbitError> {
        let deadline = Instant::now() + Duration::from_millis(self.config.connect_timeout_ms);
        let mut failed = None;
        loop {
            self.queues.iter_mut().for_each(|queue| queue.connect(&self.config, self.prefetch));
            if self.is_consuming() {
                self.queues.iter_mut().for_each(QueueIntake::report);
                return Ok(());
            }
            failed = failed.or(self.queues.iter_mut().find_map(QueueIntake::take_failure));
            let is_over = Instant::now() >= deadline || !self.queues.iter().any(QueueIntake::is_connecting);
            if let Some(error) = failed.take_if(|_| is_over) {
                // The pauses of the worker follow, not those of a queue.
                self.queues.iter_mut().for_each(|queue| queue.try_with_all(Duration::ZERO));
                return Err(error);
            }
            self.queues.iter_mut().for_each(|queue| queue.try_with_all(TRY_PAUSE_ALONE));
            let tries = self.queues.iter_mut().map(|queue| Box::pin(queue.tried()));
            drop(timeout(CHECK, select_all(tries)).await);
        }
    }

    fn is_consuming(&self) -> bool {
        self.queues.iter().any(QueueIntake::is_consumed)
    }

    /// What has arrived, from one queue after the other.
    async fn arrived(&mut self, max: usize) -> Result<Vec<Delivery>, RabbitError> {
        self.first = (self.first + 1) % self.queues.len().max(1);
        let (mut group, mut lost) = (Vec::new(), Vec::new());
        let (after, from) = self.queues.split_at_mut(self.first);
        for queue in from.iter_mut().chain(after) {
            let room = max.saturating_sub(group.len());
            if room == 0 {
                break;
            }
            match queue.recv(room, Duration::ZERO).await {
                Ok(more) => group.extend(more),
                Err(error) => lost.push((queue.name().to_owned(), error)),
            }
        }
        self.go_on_without(lost).map(|()| group)
    }

    /// Waits for deliveries of any queue.
    async fn first_of_any(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, RabbitError> {
        let consumed = self.queues.iter_mut().filter(|queue| queue.is_consumed());
        let waits: Vec<_> = consumed
            .map(|queue| {
                Box::pin(async move { queue.recv(max, wait).await.map_err(|error| (queue.name().to_owned(), error)) })
            })
            .collect();
        if waits.is_empty() {
            return Ok(Vec::new());
        }
        let (received, ..) = select_all(waits).await;
        match received {
            Ok(group) => Ok(group),
            Err(lost) => self.go_on_without(vec![lost]).map(|()| Vec::new()),
        }
    }

    /// Acknowledges deliveries of present consumers; those of earlier ones come again. A queue whose consumer is lost by it is
    /// consumed again.
    ///
    /// # Errors
    /// When no consumer is left.
    pub(super) async fn ack(&mut self, ids: &[DeliveryId]) -> Result<(), RabbitError> {
        let mut lost = Vec::new();
        for queue in &mut self.queues {
            if let Err(error) = queue.ack(ids).await {
                lost.push((queue.name().to_owned(), error));
            }
        }
        self.go_on_without(lost)
    }

    fn go_on_without(&self, lost: Vec<LostConsumer>) -> Result<(), RabbitError> {
        let is_consuming = self.is_consuming();
        for (queue, error) in lost {
            if !is_consuming {
                return Err(error);
            }
            tracing::info!(phase = "p4_persist", queue, %error, "an order queue is consumed again, over a new connection");
        }
        Ok(())
    }

    /// Whether a present consumer gave this delivery. Those of an earlier one come again.
    fn gave(&self, id: DeliveryId) -> bool {
        self.queues.iter().any(|queue| queue.gave(id))
    }

    /// Drops all consumers. Their unacknowledged messages return to their queues with the connections.
    fn release(&mut self) {
        self.queues.iter_mut().for_each(QueueIntake::release);
    }
}

impl Persist {
    /// The next group: deliveries that are held, else new ones from the broker.
    pub(super) async fn group(&mut self, group_max: usize, wait: Duration) -> Result<Vec<Delivery>, RabbitError> {
        self.forget_what_comes_again();
        if self.held.is_empty() {
            return self.intake.group(group_max, wait).await;
        }
        let size = group_max.min(self.held.len());
        held_gauge().decrement(size as f64);
        Ok(self.held.drain(..size).collect())
    }

    /// Forgets what waits here and was given by a consumer that is lost: its queue gives it out again.
    pub(super) fn forget_what_comes_again(&mut self) {
        let before = self.held.len();
        self.held.retain(|delivery| self.intake.gave(delivery.id));
        held_gauge().decrement((before - self.held.len()) as f64);
        self.unsent_copies.retain(|unsent| unsent.acked_early || self.intake.gave(unsent.handled.delivery.id));
    }

    /// Drops the consumers, and what waits here of theirs, but for events.
    pub(super) fn release(&mut self) {
        self.committed = None;
        if left_out!(EventsOutliveQueue) {
            self.unpublished.clear();
        }
        self.intake.release();
        held_gauge().decrement(self.held.len() as f64);
        self.held.clear();
        self.unsent_copies.clear();
    }
}

/// Messages that all writers hold until the database is available.
pub(super) fn held_gauge() -> metrics::Gauge {
    metrics::gauge!("seckill_p4_persist_held_count")
}
