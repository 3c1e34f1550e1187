//! How much waits outside Redis: in the broker's queues and in the database.
//!
//! Input: the broker and the database. Output: gauges of the process that leads. Changes nothing, so a crash leaves nothing.
//! Trouble here must not keep sales from being repaired, so it is only logged.

use super::context::ReconcileRows;
use super::rows::BookRows;
use crate::events::rows::outcome::{UnpublishedEvents, UnpublishedFigures};
use crate::runtime::now_ms;
use crate::store::rabbit::{RabbitConfig, RabbitError, Topology, queue_depths};

/// Sets the gauges of the backlog. While a server does not answer its gauges are `NaN`: an unknown number must not seem one
/// that does not change.
pub(super) async fn measure_backlog(rows: &ReconcileRows, rabbit: &RabbitConfig) {
    match queue_depths(rabbit).await {
        Ok(depths) => {
            for depth in depths {
                queue_gauges(depth.queue, depth.ready as f64, f64::from(depth.consumers));
            }
        }
        Err(error) => {
            tracing::debug!(phase = "p5_reconcile", %error, "the queues cannot be counted");
            for queue in Topology::new(rabbit).all_queues() {
                queue_gauges(queue, f64::NAN, f64::NAN);
            }
            // The numbers of a queue that does not exist are known, and an alert depends on them: no consumer has ever started.
            if let RabbitError::NoQueue { queue } = error {
                queue_gauges(queue, 0.0, 0.0);
            }
        }
    }
    let open = metrics::gauge!("seckill_p5_reconcile_register_open_count");
    let (unpublished, open_now) =
        futures::future::join(rows.outcome_events.unpublished_figures(), rows.register.open_count()).await;
    match unpublished {
        Ok(UnpublishedFigures { outcomes, orders }) => {
            event_gauges(EventGauges::of(&outcomes), EventGauges::of(&orders));
        }
        Err(error) => {
            tracing::debug!(phase = "p5_reconcile", %error, "waiting events cannot be counted");
            event_gauges(EventGauges::UNKNOWN, EventGauges::UNKNOWN);
        }
    }
    match open_now {
        Ok(open_now) => open.set(open_now as f64),
        Err(error) => {
            tracing::debug!(phase = "p5_reconcile", %error, "the register cannot be counted");
            open.set(f64::NAN);
        }
    }
}

/// Events of one table that wait.
struct EventGauges {
    count: f64,
    oldest_s: f64,
}

impl EventGauges {
    const UNKNOWN: Self = Self { count: f64::NAN, oldest_s: f64::NAN };

    fn of(unpublished: &UnpublishedEvents) -> Self {
        Self { count: unpublished.events_count as f64, oldest_s: unpublished.oldest_ms as f64 / 1000.0 }
    }
}

fn event_gauges(outcomes: EventGauges, orders: EventGauges) {
    metrics::gauge!("seckill_p5_reconcile_events_untold_count").set(outcomes.count);
    metrics::gauge!("seckill_p5_reconcile_order_events_untold_count").set(orders.count);
    for (table, of) in [("outcome_event", outcomes), ("order_events", orders)] {
        metrics::gauge!("seckill_p5_reconcile_events_untold_oldest_seconds", "table" => table).set(of.oldest_s);
    }
}

fn queue_gauges(queue: String, ready: f64, consumers: f64) {
    metrics::gauge!("seckill_p5_reconcile_queue_count", "queue" => queue.clone()).set(ready);
    metrics::gauge!("seckill_p5_reconcile_queue_consumers_count", "queue" => queue).set(consumers);
}

/// Counts the sales that ended and were not closed, neither by a person nor, `auto_close_after_s` later, by themselves. On an error
/// the gauge stays as it was.
pub(super) async fn measure_ended(books: &BookRows, auto_close_after_s: u64) {
    match books.ended_open(now_ms(), auto_close_after_s).await {
        Ok(found) => metrics::gauge!("seckill_p5_reconcile_ended_not_closed_count").set(found.count as f64),
        Err(error) => tracing::warn!(phase = "p5_reconcile", %error, "sales that ended cannot be counted"),
    }
}
