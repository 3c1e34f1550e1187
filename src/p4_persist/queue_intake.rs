//! One order queue, as a writer consumes it: its consumer, or the tries to get one.
//!
//! Each order queue has a connection of its own. A queue without a majority blocks the channel of its consumer, and the broker
//! closes the whole connection in the end: so that takes no consumer and no acknowledgement from the other queues (H6). Tries go
//! on in the background, with growing pauses.
//!
//! Input: the order queue. Output: its deliveries. A crash here leaves deliveries unacknowledged: they come again.

use crate::runtime::exponential_backoff;
use crate::store::rabbit::{Consumer, Delivery, DeliveryId, QUEUE_LEFT_ALONE, RabbitConfig, RabbitError, Topology};
use futures::FutureExt;
use std::time::{Duration, Instant};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

/// Pause after the first try that failed; doubles.
const TRY_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause between two tries. A try may take a channel of the broker for as long as the broker waits for the queue, half a
/// minute: the number of these must not grow.
const TRY_PAUSE_MAX: Duration = Duration::from_secs(10);
/// A consumer that is lost sooner is tried again with pauses, as one that cannot be had: each round counts as a delivery of all
/// messages that it was given.
const SHORT_LIFE: Duration = Duration::from_secs(5);

/// Whether the queue of a lost consumer was deleted.
#[derive(Debug, Clone, Copy)]
enum LostQueue {
    /// No consumer was lost yet.
    No,
    /// The consumer was lost; the next one shows whether the queue is missing.
    Perhaps,
    /// This writer has known since then that the queue is missing.
    Since(Instant),
}

/// A consumer, or why there is none.
type Connected = Result<Consumer, RabbitError>;

/// One order queue of a writer.
pub(super) struct QueueIntake {
    queue: u16,
    /// Its name in the broker.
    name: String,
    consumer: Option<Consumer>,
    /// Since when, while there is one.
    consumed_since: Instant,
    /// The try that is under way.
    connecting: Option<AbortOnDropHandle<Connected>>,
    /// How that try has ended, if it was waited for.
    ended: Option<Result<Connected, JoinError>>,
    lost_queue: LostQueue,
    /// Tries in a row that failed; from 1 on the writer does without this queue.
    failures: u32,
    /// How often the pause between two tries has doubled.
    pauses: u32,
    /// Why the last try failed, until that is logged or returned.
    failure: Option<RabbitError>,
    /// The log says that the queue is left out.
    is_reported: bool,
    try_at: Instant,
}

/// A writer that ends leaves nothing out.
impl Drop for QueueIntake {
    fn drop(&mut self) {
        self.note_success();
    }
}

impl QueueIntake {
    pub(super) fn new(config: &RabbitConfig, queue: u16) -> Self {
        let intake = Self {
            queue,
            name: Topology::new(config).orders_queue(queue),
            consumer: None,
            consumed_since: Instant::now(),
            connecting: None,
            ended: None,
            lost_queue: LostQueue::No,
            failures: 0,
            pauses: 0,
            failure: None,
            is_reported: false,
            try_at: Instant::now(),
        };
        intake.left_out_gauge().increment(0.0);
        intake
    }

    /// Its name in the broker.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_consumed(&self) -> bool {
        self.consumer.is_some()
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.connecting.is_some()
    }

    /// Begins to connect when it is time, and takes over a consumer that is connected. Never waits.
    pub(super) fn connect(&mut self, config: &RabbitConfig, prefetch: u16) {
        if self.consumer.is_some() {
            return;
        }
        let ended = match (self.ended.take(), &mut self.connecting) {
            (Some(ended), _) => ended,
            (None, Some(connecting)) => match connecting.now_or_never() {
                Some(ended) => ended,
                None => return,
            },
            (None, None) => {
                if Instant::now() >= self.try_at {
                    let trying = try_once(config.clone(), self.queue, prefetch, self.may_declare());
                    self.connecting = Some(AbortOnDropHandle::new(tokio::spawn(trying)));
                }
                return;
            }
        };
        self.connecting = None;
        match ended.unwrap_or_else(|join| Err(RabbitError::library_failed(&join))) {
            Ok(consumer) => {
                tracing::info!(phase = "p4_persist", queue = self.name, "consuming");
                self.note_success();
                self.lost_queue = LostQueue::No;
                (self.consumer, self.consumed_since) = (Some(consumer), Instant::now());
            }
            Err(error) => self.note_failure(error),
        }
    }

    /// Waits until the try that is under way has ended, for ever without one; [`QueueIntake::connect`] then takes its result.
    /// Cancel-safe.
    pub(super) async fn tried(&mut self) {
        match &mut self.connecting {
            Some(connecting) if self.ended.is_none() => self.ended = Some(connecting.await),
            Some(_) => {}
            None => std::future::pending().await,
        }
    }

    /// No queue can be consumed: that says nothing about this one, which is tried within `pause`, and soon again where others work.
    pub(super) fn try_with_all(&mut self, pause: Duration) {
        self.pauses = 0;
        self.try_within(pause);
    }

    /// The next try comes after this pause at the latest.
    fn try_within(&mut self, pause: Duration) {
        self.try_at = self.try_at.min(Instant::now() + pause);
    }

    /// Why the last try failed, once.
    pub(super) fn take_failure(&mut self) -> Option<RabbitError> {
        self.failure.take()
    }

    /// Logs why the last try failed: the first time as a warning.
    pub(super) fn report(&mut self) {
        let Some(error) = self.failure.take() else { return };
        if std::mem::replace(&mut self.is_reported, true) {
            tracing::debug!(phase = "p4_persist", queue = self.name, %error, "an order queue still cannot be consumed");
        } else {
            tracing::warn!(
                phase = "p4_persist", queue = self.name, %error,
                "an order queue cannot be consumed: it is left out and tried again"
            );
        }
    }

    /// Up to `max` deliveries, as [`Consumer::recv_group`]; none without a consumer. After an error there is no consumer.
    pub(super) async fn recv(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, RabbitError> {
        let Some(consumer) = &mut self.consumer else { return Ok(Vec::new()) };
        let received = consumer.recv_group(max, wait).await;
        received.inspect_err(|_| self.lose())
    }

    /// Whether the present consumer gave this delivery.
    pub(super) fn gave(&self, id: DeliveryId) -> bool {
        self.consumer.as_ref().is_some_and(|consumer| consumer.gave(id))
    }

    /// Acknowledges those of `ids` that the present consumer gave. After an error there is no consumer.
    pub(super) async fn ack(&mut self, ids: &[DeliveryId]) -> Result<(), RabbitError> {
        let Some(consumer) = &mut self.consumer else { return Ok(()) };
        let own: Vec<DeliveryId> = ids.iter().copied().filter(|id| consumer.gave(*id)).collect();
        if own.is_empty() {
            return Ok(());
        }
        let acknowledged = consumer.ack(&own).await;
        acknowledged.inspect_err(|_| self.lose())
    }

    /// Drops a consumer that failed.
    fn lose(&mut self) {
        let is_young = self.consumed_since.elapsed() < SHORT_LIFE;
        self.release();
        if is_young {
            self.pause();
        } else {
            self.pauses = 0;
        }
    }

    /// The next try comes after a pause, which is longer each time.
    fn pause(&mut self) {
        self.try_at = Instant::now() + exponential_backoff(TRY_PAUSE, self.pauses, TRY_PAUSE_MAX);
        self.pauses = self.pauses.saturating_add(1);
    }

    /// Drops the consumer. Its unacknowledged messages return to the queue with the connection.
    pub(super) fn release(&mut self) {
        if self.consumer.take().is_some() {
            self.lost_queue = LostQueue::Perhaps;
            self.try_within(Duration::ZERO);
        }
    }

    /// Not while a queue that was consumed before has been missing for a short time only: its deletion may still be under way,
    /// and this writer must not declare it again too early.
    fn may_declare(&self) -> bool {
        match self.lost_queue {
            LostQueue::No => true,
            LostQueue::Perhaps => false,
            LostQueue::Since(since) => since.elapsed() >= QUEUE_LEFT_ALONE,
        }
    }

    fn note_failure(&mut self, error: RabbitError) {
        if let (RabbitError::NoQueue { .. }, LostQueue::Perhaps) = (&error, self.lost_queue) {
            self.lost_queue = LostQueue::Since(Instant::now());
        }
        if self.failures == 0 {
            self.left_out_gauge().increment(1.0);
        }
        self.pause();
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(error);
    }

    fn note_success(&mut self) {
        if std::mem::take(&mut self.failures) > 0 {
            self.left_out_gauge().decrement(1.0);
        }
        (self.failure, self.is_reported) = (None, false);
    }

    /// Writers of this process that do without the queue.
    fn left_out_gauge(&self) -> metrics::Gauge {
        metrics::gauge!("seckill_p4_persist_left_out_count", "queue" => self.name.clone())
    }
}

async fn try_once(config: RabbitConfig, queue: u16, prefetch: u16, may_declare: bool) -> Connected {
    if may_declare {
        Consumer::connect(&config, &[queue], prefetch).await
    } else {
        Consumer::consume(&config, &[queue], prefetch).await
    }
}
