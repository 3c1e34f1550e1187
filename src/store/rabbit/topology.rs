//! Exchanges and queues: their names and their arguments.
//!
//! | name | what it is |
//! |---|---|
//! | `<prefix>.orders` → `<prefix>.orders.<n>` | direct exchange; n from 0 is the routing key |
//! | `<prefix>.retry.<ms>` | fanout exchange and queue; what expires goes back to `orders` with the routing key it came with |
//! | `<prefix>.dlq` | fanout exchange and queue; no expiry, no length limit, for people and P5 |
//! | `<prefix>.events` | topic exchange: `order.confirmed`, `.failed`, `.paid`, `.expired`, `.cancelled`, `.refund_needed` |
//!
//! There is no alternate exchange: with one, an unroutable publish is acknowledged and never returned. The retry and dead
//! letter queues stand behind fanout exchanges so that a message keeps its routing key, which says where it belongs.
//!
//! `declare.rs` makes sure that they exist. Values only.

use super::config::RabbitConfig;
use crate::config::QueueType;
use crate::faults::left_out;
use amqprs::{FieldTable, FieldValue, ShortStr};
use std::time::Duration;

/// Deliveries of one message before the broker itself dead-letters it. Only the last net under the application's own count:
/// a crashing consumer raises it for everything it had prefetched, so it is far above any honest number.
const DELIVERY_LIMIT: i64 = 1_000;
/// For the dead-letter queue, where every read counts as a delivery and nothing may ever be dropped. Brokers from 4.0 on
/// would use 20; those before 4.0 do not know "none".
const DELIVERY_LIMIT_NEVER: i64 = 1_000_000_000;

/// The names of everything in the broker.
#[derive(Debug, Clone)]
pub struct Topology {
    prefix: String,
    queue_type: QueueType,
    /// The order queues that are declared.
    order_queues: std::ops::Range<u16>,
    retry_delays_ms: Vec<u64>,
    /// Whether what is missing is created.
    pub(super) declare: bool,
}

/// A queue and its binding.
pub(super) struct QueueSpec {
    pub(super) name: String,
    pub(super) exchange: String,
    pub(super) routing_key: String,
    pub(super) arguments: Vec<(&'static str, FieldValue)>,
}

impl Topology {
    /// The topology that `config` describes.
    #[must_use]
    pub fn new(config: &RabbitConfig) -> Self {
        Self {
            prefix: config.prefix.clone(),
            queue_type: config.queue_type,
            order_queues: 0..config.queues,
            retry_delays_ms: config.retry_delays_ms(),
            declare: config.declare,
        }
    }

    /// The same with one order queue: its publisher asks nothing of the others, which may not answer (H6).
    #[must_use]
    pub(crate) fn of_order_queue(config: &RabbitConfig, index: u16) -> Self {
        Self { order_queues: index..index.saturating_add(1), ..Self::new(config) }
    }

    /// The same without order queues, for copies and events: no order queue that does not answer stands in their way (H6).
    #[must_use]
    pub(super) fn without_order_queues(config: &RabbitConfig) -> Self {
        Self { order_queues: 0..0, ..Self::new(config) }
    }

    /// The exchange that orders are published to, with [`Topology::orders_key`].
    #[must_use]
    pub fn orders_exchange(&self) -> String {
        format!("{}.orders", self.prefix)
    }

    /// The routing key of the `index`-th order queue.
    #[must_use]
    pub(crate) fn orders_key(&self, index: u16) -> String {
        index.to_string()
    }

    /// The `index`-th order queue.
    #[must_use]
    pub fn orders_queue(&self, index: u16) -> String {
        format!("{}.orders.{index}", self.prefix)
    }

    /// How long a message waits after its `attempt`-th failure (from 1), in milliseconds.
    #[must_use]
    pub fn retry_delay_ms(&self, attempt: u32) -> u64 {
        let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        self.retry_delays_ms.get(index).or(self.retry_delays_ms.last()).copied().unwrap_or(0)
    }

    /// The exchange to publish a message to that is to come back after its `attempt`-th failure (from 1). Publish it with
    /// the routing key that it was delivered with.
    #[must_use]
    pub fn retry_exchange(&self, attempt: u32) -> String {
        self.retry_name(self.retry_delay_ms(attempt))
    }

    fn retry_name(&self, delay_ms: u64) -> String {
        format!("{}.retry.{delay_ms}", self.prefix)
    }

    /// The retry queues, each with the pause of its messages.
    pub(super) fn retry_queues(&self) -> impl Iterator<Item = (String, Duration)> + '_ {
        self.retry_delays_ms.iter().map(|ms| (self.retry_name(*ms), Duration::from_millis(*ms)))
    }

    /// The dead-letter exchange, and the queue behind it.
    #[must_use]
    pub fn dlq(&self) -> String {
        format!("{}.dlq", self.prefix)
    }

    /// The exchange that carries events of finished orders to other systems. Without a queue bound to it messages vanish, so
    /// publish to it with [`super::Outgoing::optional`].
    #[must_use]
    pub fn events_exchange(&self) -> String {
        format!("{}.events", self.prefix)
    }

    /// All queues: orders, retries by delay, dead letters.
    #[must_use]
    pub(crate) fn all_queues(&self) -> Vec<String> {
        self.specs().into_iter().map(|spec| spec.name).collect()
    }

    /// Every exchange with its kind.
    pub(super) fn exchanges(&self) -> Vec<(String, &'static str)> {
        let retries = self.retry_delays_ms.iter().map(|ms| (self.retry_name(*ms), "fanout"));
        let fixed = [(self.orders_exchange(), "direct"), (self.dlq(), "fanout"), (self.events_exchange(), "topic")];
        fixed.into_iter().chain(retries).collect()
    }

    /// Every queue.
    pub(super) fn specs(&self) -> Vec<QueueSpec> {
        let orders = self.order_queues.clone().map(|n| QueueSpec {
            name: self.orders_queue(n),
            exchange: self.orders_exchange(),
            routing_key: self.orders_key(n),
            arguments: self.arguments(Some(self.dlq()), DELIVERY_LIMIT),
        });
        let retries = self.retry_delays_ms.iter().map(|ms| {
            let name = self.retry_name(*ms);
            // The watch of a rebuild takes a message and puts it back, as often as the pause is long: no number of deliveries is too many.
            let mut arguments = self.arguments(Some(self.orders_exchange()), DELIVERY_LIMIT_NEVER);
            arguments.push(("x-message-ttl", FieldValue::l(i64::try_from(*ms).unwrap_or(i64::MAX))));
            QueueSpec { exchange: name.clone(), name, routing_key: String::new(), arguments }
        });
        let dlq = QueueSpec {
            name: self.dlq(),
            exchange: self.dlq(),
            routing_key: String::new(),
            arguments: self.arguments(None, DELIVERY_LIMIT_NEVER),
        };
        orders.chain(retries).chain([dlq]).collect()
    }

    /// The arguments of an order queue, for the benchmark's own queue of the same kind.
    pub fn order_queue_arguments(&self) -> FieldTable {
        table(self.arguments(Some(self.dlq()), DELIVERY_LIMIT))
    }

    /// No `x-dead-letter-routing-key`: a dead letter keeps its routing key.
    fn arguments(&self, dead_letter_exchange: Option<String>, delivery_limit: i64) -> Vec<(&'static str, FieldValue)> {
        let mut arguments = Vec::with_capacity(6);
        match self.queue_type {
            QueueType::Classic => arguments.push(("x-queue-type", FieldValue::from("classic"))),
            QueueType::Quorum => {
                arguments.push(("x-queue-type", FieldValue::from("quorum")));
                arguments.push(("x-delivery-limit", FieldValue::l(delivery_limit)));
                if dead_letter_exchange.is_some() && !left_out!(DeadLetterAtLeastOnce) {
                    arguments.push(("x-dead-letter-strategy", FieldValue::from("at-least-once")));
                }
            }
        }
        // If a policy sets a length limit: refuse new messages rather than discard confirmed ones. At-least-once
        // dead-lettering needs it, too.
        arguments.push(("x-overflow", FieldValue::from("reject-publish")));
        if let Some(exchange) = dead_letter_exchange {
            arguments.push(("x-dead-letter-exchange", FieldValue::from(exchange)));
        }
        arguments
    }
}

/// How long to wait before a queue that was in use and is missing is declared again. The broker may not notify its consumers
/// of the deletion (RabbitMQ 3.10.8 on a busy machine), and moves them into the new queue in a broken state; within this time
/// they inspect the queue themselves (window 59).
pub(crate) const QUEUE_LEFT_ALONE: Duration = Duration::from_secs(3);

/// Arguments as the broker reads them.
pub(super) fn table(arguments: Vec<(&'static str, FieldValue)>) -> FieldTable {
    let mut table = FieldTable::new();
    for (name, value) in arguments {
        // The names are short constants, so none is ever left out.
        if let Ok(key) = ShortStr::try_from(name) {
            table.insert(key, value);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_stay_there() {
        let topology = Topology::new(&RabbitConfig::new("amqp://h"));
        let delays: Vec<u64> = (0..10).map(|attempt| topology.retry_delay_ms(attempt)).collect();
        assert_eq!(delays, [5_000, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
        assert_eq!(topology.retry_exchange(7), "seckill.retry.300000");
        let one = RabbitConfig { retry_delay_max_ms: 5_000, ..RabbitConfig::new("amqp://h") };
        assert_eq!(one.retry_delays_ms(), [5_000]);
    }

    #[test]
    fn every_queue_has_a_name_of_its_own() {
        let topology = Topology::new(&RabbitConfig { queues: 2, ..RabbitConfig::new("amqp://h") });
        let names = topology.all_queues();
        assert_eq!(names.len(), 2 + 7 + 1);
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
        assert_eq!(names[..2], ["seckill.orders.0", "seckill.orders.1"]);
    }
}
