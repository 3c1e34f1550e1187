//! The part of the half message scheme that RocketMQ has in its broker: holds half messages, publishes the event of those
//! that are committed, and drops the others. A half message without a command for a while is in doubt: the check-back
//! reads the transaction's state from the database, and decides.
//!
//! A half message is acknowledged after its event is confirmed, so a crash leaves all undecided ones in the queue; events
//! may be published twice.

use super::half_message::HalfCommand;
use super::{MessageStores, event};
use crate::baseline::mysql_messages::check_back;
use crate::baseline::rabbit_queues::{BareDelivery, QueueReader};
use seckill::cli::Failure;
use seckill::store::mysql::DbError;
use seckill::store::rabbit::{Publisher, send_all};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A half message without a command is in doubt after this time.
const IN_DOUBT: Duration = Duration::from_secs(2);
/// Longest wait for a message.
const WAIT: Duration = Duration::from_millis(20);
/// Messages of one step.
const GROUP: usize = 200;
/// Nothing came for this long: messages of a coordinator that was killed have been delivered again by then.
const SILENCE: Duration = Duration::from_secs(2);

/// A half message that is not decided.
struct HeldHalf {
    tag: u64,
    since: Instant,
}

/// A half message that is decided, with what is to be acknowledged then.
struct DecidedHalf {
    request_id: u64,
    command: HalfCommand,
    tags: Vec<u64>,
}

/// Decides the half messages of one sale.
pub(in crate::strategies) struct TransactionCoordinator {
    stores: MessageStores,
    reader: QueueReader,
    publisher: Option<Publisher>,
    halves: BTreeMap<u64, HeldHalf>,
    /// Commands that came before their half message, or after a check-back: with their tags.
    commands: BTreeMap<u64, (HalfCommand, u64)>,
    last_message: Instant,
}

impl TransactionCoordinator {
    pub async fn start(stores: MessageStores) -> Result<Self, Failure> {
        let queues = &stores.queues;
        let reader = QueueReader::open(&stores.rabbit, &[&queues.halves, &queues.commands]).await?;
        let publisher = Some(Publisher::connect(&stores.rabbit).await?);
        let (halves, commands) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { stores, reader, publisher, halves, commands, last_message: Instant::now() })
    }

    /// Takes what has arrived and decides what can be decided; how many events were published.
    pub async fn step(&mut self) -> Result<u64, Failure> {
        let arrived = self.reader.take(GROUP, WAIT).await?;
        if !arrived.is_empty() {
            self.last_message = Instant::now();
        }
        let mut decided = Vec::new();
        for delivery in arrived {
            decided.extend(self.arrived(&delivery)?);
        }
        decided.extend(self.check_back().await?);
        self.conclude(decided).await
    }

    /// Whether no half message is left, neither here nor in the broker.
    pub async fn is_drained(&self) -> Result<bool, Failure> {
        let queues = &self.stores.queues;
        let is_silent = self.halves.is_empty() && self.last_message.elapsed() > SILENCE;
        Ok(is_silent && self.reader.ready(&queues.halves).await? + self.reader.ready(&queues.commands).await? == 0)
    }

    fn arrived(&mut self, delivery: &BareDelivery) -> Result<Option<DecidedHalf>, Failure> {
        let unreadable = || Failure::Failed(format!("{} holds a message of somebody else", delivery.queue));
        let request_id = delivery.message_id.parse().map_err(|_| unreadable())?;
        if delivery.queue == self.stores.queues.halves {
            self.halves.insert(request_id, HeldHalf { tag: delivery.tag, since: Instant::now() });
        } else {
            let command = HalfCommand::of_body(&delivery.body).ok_or_else(unreadable)?;
            self.commands.insert(request_id, (command, delivery.tag));
        }
        if !(self.halves.contains_key(&request_id) && self.commands.contains_key(&request_id)) {
            return Ok(None);
        }
        let pair = self.halves.remove(&request_id).zip(self.commands.remove(&request_id));
        Ok(pair.map(|(half, (command, tag))| DecidedHalf { request_id, command, tags: vec![half.tag, tag] }))
    }

    async fn check_back(&mut self) -> Result<Vec<DecidedHalf>, Failure> {
        let in_doubt = |(request_id, half): (&u64, &HeldHalf)| (half.since.elapsed() > IN_DOUBT).then_some(*request_id);
        let mut decided = Vec::new();
        for request_id in self.halves.iter().filter_map(in_doubt).collect::<Vec<_>>() {
            let is_committed = match check_back(&self.stores.db, &self.stores.sale, request_id).await {
                // Its transaction is under way; asked again in the next step.
                Err(DbError::Deadlock | DbError::LockWait) => continue,
                answered => answered?,
            };
            let command = if is_committed { HalfCommand::Commit } else { HalfCommand::RollBack };
            let half = self.halves.remove(&request_id);
            decided.extend(half.map(|half| DecidedHalf { request_id, command, tags: vec![half.tag] }));
        }
        Ok(decided)
    }

    async fn conclude(&mut self, decided: Vec<DecidedHalf>) -> Result<u64, Failure> {
        let committed = decided.iter().filter(|half| half.command == HalfCommand::Commit);
        let events: Vec<_> = committed.map(|half| event(&self.stores.queues, half.request_id)).collect();
        let published = events.len() as u64;
        send_all(&self.stores.rabbit, &mut self.publisher, events).await?;
        for tag in decided.into_iter().flat_map(|half| half.tags) {
            self.reader.ack(tag).await?;
        }
        Ok(published)
    }
}
