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
#[derive(Debug, PartialEq, Eq)]
struct DecidedHalf {
    request_id: u64,
    command: HalfCommand,
    tags: Vec<u64>,
}

/// Half messages without a command, and commands without a half message: either may come first. A command whose half
/// message a check-back has decided stays here.
#[derive(Default)]
struct UndecidedHalves {
    halves: BTreeMap<u64, HeldHalf>,
    /// With the tag of the command.
    commands: BTreeMap<u64, (HalfCommand, u64)>,
}

impl UndecidedHalves {
    fn half(&mut self, request_id: u64, half: HeldHalf) -> Option<DecidedHalf> {
        self.halves.insert(request_id, half);
        self.pair(request_id)
    }

    fn command(&mut self, request_id: u64, command: HalfCommand, tag: u64) -> Option<DecidedHalf> {
        self.commands.insert(request_id, (command, tag));
        self.pair(request_id)
    }

    fn pair(&mut self, request_id: u64) -> Option<DecidedHalf> {
        let (command, tag) = *self.commands.get(&request_id)?;
        let half = self.halves.remove(&request_id)?;
        self.commands.remove(&request_id);
        Some(DecidedHalf { request_id, command, tags: vec![half.tag, tag] })
    }

    fn in_doubt(&self, now: Instant) -> Vec<u64> {
        let is_late = |half: &HeldHalf| now.saturating_duration_since(half.since) > IN_DOUBT;
        self.halves.iter().filter(|(_, half)| is_late(half)).map(|(request_id, _)| *request_id).collect()
    }

    fn checked(&mut self, request_id: u64, is_committed: bool) -> Option<DecidedHalf> {
        let command = if is_committed { HalfCommand::Commit } else { HalfCommand::RollBack };
        let half = self.halves.remove(&request_id)?;
        Some(DecidedHalf { request_id, command, tags: vec![half.tag] })
    }
}

/// Decides the half messages of one sale.
pub(in crate::strategies) struct TransactionCoordinator {
    stores: MessageStores,
    reader: QueueReader,
    publisher: Option<Publisher>,
    undecided: UndecidedHalves,
    last_message: Instant,
}

impl TransactionCoordinator {
    pub async fn start(stores: MessageStores) -> Result<Self, Failure> {
        let queues = &stores.queues;
        let reader = QueueReader::open(&stores.rabbit, &[&queues.halves, &queues.commands]).await?;
        let publisher = Some(Publisher::connect(&stores.rabbit).await?);
        let undecided = UndecidedHalves::default();
        Ok(Self { stores, reader, publisher, undecided, last_message: Instant::now() })
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
        let is_silent = self.undecided.halves.is_empty() && self.last_message.elapsed() > SILENCE;
        Ok(is_silent && self.reader.ready(&queues.halves).await? + self.reader.ready(&queues.commands).await? == 0)
    }

    fn arrived(&mut self, delivery: &BareDelivery) -> Result<Option<DecidedHalf>, Failure> {
        let unreadable = || Failure::Failed(format!("{} holds a message of somebody else", delivery.queue));
        let request_id = delivery.message_id.parse().map_err(|_| unreadable())?;
        if delivery.queue == self.stores.queues.halves {
            let half = HeldHalf { tag: delivery.tag, since: Instant::now() };
            return Ok(self.undecided.half(request_id, half));
        }
        let command = HalfCommand::of_body(&delivery.body).ok_or_else(unreadable)?;
        Ok(self.undecided.command(request_id, command, delivery.tag))
    }

    async fn check_back(&mut self) -> Result<Vec<DecidedHalf>, Failure> {
        let mut decided = Vec::new();
        for request_id in self.undecided.in_doubt(Instant::now()) {
            match check_back(&self.stores.db, &self.stores.sale, request_id).await {
                // Its transaction is under way: the next step checks again.
                Err(DbError::Deadlock | DbError::LockWait) => {}
                checked => decided.extend(self.undecided.checked(request_id, checked?)),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn half(tag: u64) -> HeldHalf {
        HeldHalf { tag, since: Instant::now() }
    }

    #[test]
    fn a_half_message_is_decided_by_its_own_command_whichever_comes_first() {
        let mut undecided = UndecidedHalves::default();
        assert_eq!(undecided.half(1, half(10)), None);
        assert_eq!(undecided.command(2, HalfCommand::RollBack, 20), None);
        let first = undecided.command(1, HalfCommand::Commit, 21);
        assert_eq!(first, Some(DecidedHalf { request_id: 1, command: HalfCommand::Commit, tags: vec![10, 21] }));
        let second = undecided.half(2, half(11));
        assert_eq!(second, Some(DecidedHalf { request_id: 2, command: HalfCommand::RollBack, tags: vec![11, 20] }));
        assert!(undecided.halves.is_empty() && undecided.commands.is_empty());
    }

    #[test]
    fn a_half_message_without_a_command_is_in_doubt_and_a_check_back_decides_it_once() {
        let mut undecided = UndecidedHalves::default();
        undecided.half(1, half(10));
        let now = Instant::now();
        assert!(undecided.in_doubt(now).is_empty());
        assert_eq!(undecided.in_doubt(now + IN_DOUBT * 2), [1]);
        let decided = DecidedHalf { request_id: 1, command: HalfCommand::RollBack, tags: vec![10] };
        assert_eq!((undecided.checked(1, false), undecided.checked(1, true)), (Some(decided), None));
        assert_eq!(undecided.command(1, HalfCommand::Commit, 20), None, "a command that comes too late");
    }
}
