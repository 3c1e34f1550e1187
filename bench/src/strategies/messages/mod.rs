//! Schemes in which an order is followed by an event for other systems, and neither may be there without the other. By
//! file: `outbox_relay` (database outbox), `half_message` with `producer` (what the buyer's process does) and `coordinator`
//! (transactional half message). What publishes events is a process of its own when it is to be killed.
//!
//! Input: a sale. Output: events in a queue that is not consumed until they are counted.

mod coordinator;
mod half_message;
mod outbox_relay;
mod producer;

use crate::baseline::mysql_messages::{self, CheckBacks};
use crate::baseline::rabbit_queues::{self, QueueReader};
use coordinator::TransactionCoordinator;
use half_message::HalfCommand;
pub(super) use half_message::{HalfMessageSender, HalfStops};
use outbox_relay::OutboxRelay;
pub(super) use producer::SharedProducer;
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::store::mysql::Db;
use seckill::store::rabbit::{Outgoing, PublishRoute, RabbitConfig};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How an order's event gets to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageScheme {
    /// A row in the order's transaction, and a relay.
    Outbox,
    /// A half message before the transaction, a command after it, and a check-back.
    HalfMessage,
}

/// A sale's queues.
#[derive(Debug, Clone)]
pub(super) struct QueueNames {
    halves: String,
    commands: String,
    events: String,
}

/// Where a scheme's rows and messages of one sale are.
#[derive(Clone)]
pub(super) struct MessageStores {
    pub db: Db,
    pub rabbit: RabbitConfig,
    pub sale: SaleId,
    queues: QueueNames,
}

fn to_queue(queue: &str, request_id: u64, body: &str) -> Outgoing {
    Outgoing::new(PublishRoute { exchange: "", key: queue }, request_id.to_string(), body)
}

fn event(queues: &QueueNames, request_id: u64) -> Outgoing {
    to_queue(&queues.events, request_id, &format!(r#"{{"event":"order.created","request_id":"{request_id}"}}"#))
}

fn half(queues: &QueueNames, request_id: u64) -> Outgoing {
    to_queue(&queues.halves, request_id, &format!(r#"{{"half":"order.created","request_id":"{request_id}"}}"#))
}

fn command(queues: &QueueNames, request_id: u64, command: HalfCommand) -> Outgoing {
    to_queue(&queues.commands, request_id, command.body())
}

impl MessageStores {
    pub fn new(db: Db, rabbit: RabbitConfig, sale: SaleId) -> Self {
        let name = |queue| format!("{}.{sale}.{queue}", rabbit.prefix);
        let queues = QueueNames { halves: name("halves"), commands: name("commands"), events: name("events") };
        Self { db, rabbit, sale, queues }
    }

    fn queues(&self) -> [&str; 3] {
        [&self.queues.halves, &self.queues.commands, &self.queues.events]
    }

    /// Makes tables and queues.
    pub async fn make(&self) -> Result<(), Failure> {
        mysql_messages::make(&self.db).await?;
        Ok(rabbit_queues::declare(&self.rabbit, &self.queues()).await?)
    }

    /// What the check-backs of this sale decided, where the scheme has them.
    pub async fn check_backs(&self, scheme: MessageScheme) -> Result<Option<CheckBacks>, Failure> {
        match scheme {
            MessageScheme::Outbox => Ok(None),
            MessageScheme::HalfMessage => Ok(Some(mysql_messages::check_backs(&self.db, &self.sale).await?)),
        }
    }

    /// Takes all events out of their queue: how often each order's came. Then removes the queues; nothing may publish
    /// any more.
    pub async fn take_events(&self, patience: Duration) -> Result<BTreeMap<u64, u64>, Failure> {
        let events = self.queues.events.as_str();
        let idle = QueueReader::open(&self.rabbit, &[]).await?;
        let (count, until) = (idle.ready(events).await?, Instant::now() + patience);
        drop(idle);
        let (mut by_order, mut taken) = (BTreeMap::new(), 0);
        let mut reader = QueueReader::open(&self.rabbit, &[events]).await?;
        while taken < count {
            if Instant::now() > until {
                return Err(Failure::Failed(format!("{taken} of {count} events came out of {events}")));
            }
            for delivery in reader.take(usize::MAX, Duration::from_millis(100)).await? {
                let unreadable = |_| Failure::Failed(format!("{events} holds a message of somebody else"));
                *by_order.entry(delivery.message_id.parse().map_err(unreadable)?).or_default() += 1;
                // The broker stops at 2,000 unacknowledged messages.
                reader.ack(delivery.tag).await?;
                taken += 1;
            }
        }
        drop(reader);
        rabbit_queues::delete(&self.rabbit, &self.queues()).await?;
        Ok(by_order)
    }
}

/// What a kill left of the events of a sale's orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct EventOutcome {
    /// Orders with an event.
    pub published: usize,
    /// Orders without one.
    pub missing: usize,
    /// Events of no order.
    pub without_order: usize,
    /// Events beyond the first of an order; consumers know them by their message id.
    pub twice: u64,
    /// What check-backs decided, where the scheme has them.
    pub check_backs: Option<CheckBacks>,
}

impl EventOutcome {
    pub fn of(orders: &BTreeSet<u64>, events: &BTreeMap<u64, u64>, check_backs: Option<CheckBacks>) -> Self {
        let published = orders.iter().filter(|order| events.contains_key(order)).count();
        Self {
            published,
            missing: orders.len() - published,
            without_order: events.len() - published,
            twice: events.values().map(|count| count - 1).sum(),
            check_backs,
        }
    }
}

/// What publishes the events of one sale.
pub(super) enum EventDispatcher {
    Outbox(Box<OutboxRelay>),
    HalfMessage(Box<TransactionCoordinator>),
}

impl EventDispatcher {
    pub async fn start(scheme: MessageScheme, stores: MessageStores) -> Result<Self, Failure> {
        Ok(match scheme {
            MessageScheme::Outbox => Self::Outbox(Box::new(OutboxRelay::start(stores).await?)),
            MessageScheme::HalfMessage => Self::HalfMessage(Box::new(TransactionCoordinator::start(stores).await?)),
        })
    }

    /// Works for a moment; how many events were published.
    pub async fn step(&mut self) -> Result<u64, Failure> {
        match self {
            Self::Outbox(relay) => relay.step().await,
            Self::HalfMessage(coordinator) => coordinator.step().await,
        }
    }

    async fn is_drained(&self) -> Result<bool, Failure> {
        match self {
            Self::Outbox(relay) => relay.is_drained().await,
            Self::HalfMessage(coordinator) => coordinator.is_drained().await,
        }
    }

    /// Works until every order has its event: how many were published, and the time until the last one was.
    pub async fn drain(&mut self, patience: Duration) -> Result<(u64, Duration), Failure> {
        let begun = Instant::now();
        let (mut published, mut took) = (0, Duration::ZERO);
        while begun.elapsed() < patience {
            match self.step().await? {
                0 if self.is_drained().await? => return Ok((published, took)),
                0 => {}
                count => {
                    published += count;
                    took = begun.elapsed();
                }
            }
        }
        Err(Failure::Failed(format!("events were still to be published after {} s", patience.as_secs())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_compared_with_orders_one_by_one() {
        let outcome = EventOutcome::of(&[1, 2, 3].into(), &[(2, 1), (3, 3), (4, 1)].into(), None);
        let expected = EventOutcome { published: 2, missing: 1, without_order: 1, twice: 2, check_backs: None };
        assert_eq!(outcome, expected);
    }
}
