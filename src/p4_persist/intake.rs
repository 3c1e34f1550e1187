//! Where deliveries come from: the broker, or the deliveries that are held until the database is available.
//!
//! Input: the order queues. Output: the next group. A crash here leaves deliveries unacknowledged: they come again.

use super::Persist;
use crate::store::rabbit::{Consumer, Delivery, QUEUE_LEFT_ALONE, RabbitError};
use std::time::{Duration, Instant};

/// Whether a queue of a lost consumer was deleted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum LostQueue {
    /// No consumer was lost yet.
    #[default]
    No,
    /// The consumer was lost; the next one shows whether a queue is missing.
    Perhaps,
    /// This writer has known since then that a queue is missing.
    Since(Instant),
}

impl Persist {
    /// The next group: deliveries that are held, else new ones from the broker.
    pub(super) async fn group(&mut self, group_max: usize, wait: Duration) -> Result<Vec<Delivery>, RabbitError> {
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            None => {
                let queues: Vec<u16> = (0..self.rabbit.queues).collect();
                let consumer = match Consumer::consume(&self.rabbit, &queues, self.settings.prefetch).await {
                    Err(error @ RabbitError::NoQueue { .. }) => {
                        self.wait_for_deletion(error)?;
                        Consumer::connect(&self.rabbit, &queues, self.settings.prefetch).await?
                    }
                    done => done?,
                };
                self.lost_queue = LostQueue::No;
                tracing::info!(phase = "p4_persist", queues = queues.len(), "consuming");
                self.consumer.insert(consumer)
            }
        };
        if self.held.is_empty() {
            return consumer.recv_group(group_max, wait).await;
        }
        let size = group_max.min(self.held.len());
        held_gauge().decrement(size as f64);
        Ok(self.held.drain(..size).collect())
    }

    /// Returns the error while a queue that was consumed before has been missing for a short time only: its deletion may still be
    /// under way, and this writer must not declare it again too early.
    fn wait_for_deletion(&mut self, error: RabbitError) -> Result<(), RabbitError> {
        match self.lost_queue {
            LostQueue::No => Ok(()),
            LostQueue::Since(since) if since.elapsed() >= QUEUE_LEFT_ALONE => Ok(()),
            LostQueue::Since(_) => Err(error),
            LostQueue::Perhaps => {
                self.lost_queue = LostQueue::Since(Instant::now());
                Err(error)
            }
        }
    }

    /// Drops the consumer. Its unacknowledged messages return to their queues with the connection.
    pub(super) fn release(&mut self) {
        if self.consumer.take().is_some() {
            self.lost_queue = LostQueue::Perhaps;
        }
        held_gauge().decrement(self.held.len() as f64);
        self.held.clear();
        self.unsent_copies.clear();
    }
}

/// Messages that all writers hold until the database is available.
pub(super) fn held_gauge() -> metrics::Gauge {
    metrics::gauge!("seckill_p4_persist_held_count")
}
