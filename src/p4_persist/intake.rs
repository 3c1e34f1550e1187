//! Where deliveries come from: the broker, or what waited in hand for the database.
//!
//! Input: the order queues. Output: the next group. A crash here leaves deliveries unacknowledged: they come again.

use super::Persist;
use crate::store::rabbit::{Consumer, Delivery, QUEUE_LEFT_ALONE, RabbitError};
use std::time::{Duration, Instant};

/// What is known about the queues of a consumer that was lost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Missing {
    /// Nothing was lost yet.
    #[default]
    No,
    /// The consumer was lost; whether a queue is missing is to be seen.
    Perhaps,
    /// A queue is missing since then, as far as is known here.
    Since(Instant),
}

impl Persist {
    /// What is to be landed next: what waited for the database, else what the broker gives out.
    pub(super) async fn group(&mut self, group_max: usize, wait: Duration) -> Result<Vec<Delivery>, RabbitError> {
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            None => {
                let queues: Vec<u16> = (0..self.rabbit.queues).collect();
                let consumer = match Consumer::consume(&self.rabbit, &queues, self.settings.prefetch).await {
                    Err(error @ RabbitError::NoQueue { .. }) => {
                        self.let_deletion_end(error)?;
                        Consumer::connect(&self.rabbit, &queues, self.settings.prefetch).await?
                    }
                    done => done?,
                };
                self.missing = Missing::No;
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

    /// The error while a queue that was consumed before is missing, and not for long enough yet.
    fn let_deletion_end(&mut self, error: RabbitError) -> Result<(), RabbitError> {
        match self.missing {
            Missing::No => Ok(()),
            Missing::Since(since) if since.elapsed() >= QUEUE_LEFT_ALONE => Ok(()),
            Missing::Since(_) => Err(error),
            Missing::Perhaps => {
                self.missing = Missing::Since(Instant::now());
                Err(error)
            }
        }
    }

    /// Unacknowledged messages go back to their queue with the connection.
    pub(super) fn let_go(&mut self) {
        if self.consumer.take().is_some() {
            self.missing = Missing::Perhaps;
        }
        held_gauge().decrement(self.held.len() as f64);
        self.held.clear();
        self.back.clear();
    }
}

/// Messages in the hands of all writers that wait for the database.
pub(super) fn held_gauge() -> metrics::Gauge {
    metrics::gauge!("seckill_p4_persist_held_count")
}
