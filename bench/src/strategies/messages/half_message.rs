//! A purchase with a transactional half message, as RocketMQ has it: a half message that no consumer sees (confirmed), the
//! local transaction, then the command to commit or to roll back, whose end is not waited for.
//!
//! A crash before the command leaves a half message in doubt: the coordinator's check-back decides it.

use super::producer::SharedProducer;
use super::{MessageStores, command, half};
use crate::baseline::StockAttempt;
use crate::baseline::mysql_messages::{LocalTransaction, order_after_half};
use crate::baseline::mysql_units::BareOrder;
use seckill::cli::Failure;
use seckill::runtime::now_ms;
use seckill::store::mysql::DbError;

/// A command to the coordinator about a half message; the body of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HalfCommand {
    Commit,
    RollBack,
}

impl HalfCommand {
    pub const fn body(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::RollBack => "rollback",
        }
    }

    pub fn of_body(body: &[u8]) -> Option<Self> {
        [Self::Commit, Self::RollBack].into_iter().find(|command| command.body().as_bytes() == body)
    }
}

/// Buyers who never get further than this: what a kill -9 at this point leaves, for certain.
#[derive(Debug, Clone, Copy)]
pub(in crate::strategies) struct HalfStops {
    /// The half message is stored, the local transaction has not begun.
    pub after_half: u64,
    /// The local transaction is committed, the command is not sent.
    pub after_transaction: u64,
}

/// Sends half messages and their commands for all buyers of a process.
pub(in crate::strategies) struct HalfMessageSender {
    pub stores: MessageStores,
    pub producer: SharedProducer,
    pub stops: Option<HalfStops>,
}

impl HalfMessageSender {
    /// One purchase; what the database rolled back because of contention is tried again.
    pub async fn buy(&self, number: u64) -> Result<StockAttempt, Failure> {
        let MessageStores { db, sale, queues, .. } = &self.stores;
        self.producer.publish_confirmed(half(queues, number)).await?;
        self.stop_at(number, |stops| stops.after_half).await;
        let mut retries = 0;
        let ended = loop {
            match order_after_half(db, sale, BareOrder { id: number, at_ms: now_ms() }).await {
                Err(DbError::Deadlock | DbError::LockWait) => retries += 1,
                ended => break ended?,
            }
        };
        self.stop_at(number, |stops| stops.after_transaction).await;
        let is_taken = ended == LocalTransaction::Committed;
        let decision = if is_taken { HalfCommand::Commit } else { HalfCommand::RollBack };
        self.producer.publish(command(queues, number, decision)).await?;
        Ok(StockAttempt { is_taken, retries })
    }

    async fn stop_at(&self, number: u64, stop: impl Fn(&HalfStops) -> u64) {
        if self.stops.as_ref().is_some_and(|stops| stop(stops) == number) {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_it_was_written_and_nothing_else_is_one() {
        for command in [HalfCommand::Commit, HalfCommand::RollBack] {
            assert_eq!(HalfCommand::of_body(command.body().as_bytes()), Some(command));
        }
        assert_eq!(HalfCommand::of_body(b"{}"), None);
    }
}
