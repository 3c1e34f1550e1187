//! How much waits outside Redis: the broker's queues, and what waits in the database for somebody.
//!
//! Input: the broker and the database. Output: gauges of the process that leads. Changes nothing, so a crash leaves nothing.

use super::audit::Auditor;
use crate::store::mysql::{events, failed_requests};
use crate::store::rabbit::{RabbitError, Topology, queue_depths};

impl Auditor {
    /// Sets the gauges. While a server is away its gauges are `NaN`: a number that is not known must not look like one that
    /// does not change. Trouble here must not keep sales from being repaired.
    pub(super) async fn measure_backlog(&self) {
        match queue_depths(&self.rabbit).await {
            Ok(depths) => {
                for depth in depths {
                    queue_gauges(depth.queue, depth.ready as f64, f64::from(depth.consumers));
                }
            }
            Err(error) => {
                tracing::debug!(phase = "p5_reconcile", %error, "the queues cannot be counted");
                for queue in Topology::new(&self.rabbit).all_queues() {
                    queue_gauges(queue, f64::NAN, f64::NAN);
                }
                // That is known of a queue which does not exist, and somebody has to hear it: no consumer has ever started.
                if let RabbitError::NoQueue { queue } = error {
                    queue_gauges(queue, 0.0, 0.0);
                }
            }
        }
        let untold = metrics::gauge!("seckill_p5_reconcile_events_waiting_count");
        let open = metrics::gauge!("seckill_p5_reconcile_register_open_count");
        match futures::future::try_join(events::waiting_count(&self.db), failed_requests::open_count(&self.db)).await {
            Ok((untold_now, open_now)) => {
                untold.set(untold_now as f64);
                open.set(open_now as f64);
            }
            Err(error) => {
                tracing::debug!(phase = "p5_reconcile", %error, "the tables cannot be counted");
                untold.set(f64::NAN);
                open.set(f64::NAN);
            }
        }
    }
}

fn queue_gauges(queue: String, ready: f64, consumers: f64) {
    metrics::gauge!("seckill_p5_reconcile_queue_count", "queue" => queue.clone()).set(ready);
    metrics::gauge!("seckill_p5_reconcile_queue_consumers_count", "queue" => queue).set(consumers);
}
