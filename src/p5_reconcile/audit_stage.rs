//! Where an audit is, in words for a person who waits for it. Values only.

use std::fmt::{Display, Formatter, Result};

/// What an audit does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditStage {
    /// It has not read anything yet.
    #[default]
    Begun,
    /// It reads the ledger of a shard, record by record.
    Ledger {
        /// The shard.
        shard: u16,
    },
    /// It searches undecided requests in the dead-letter queues.
    DeadLetters,
    /// It counts the outcomes of the sale in the database.
    Outcomes,
    /// It looks up the outcome of each request that has none in the ledger.
    Undecided {
        /// How many these are.
        count: usize,
    },
    /// It begins again, because the sale moved while it was counted.
    Again,
}

impl Display for AuditStage {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Begun => write!(out, "waiting for the servers"),
            Self::Ledger { shard } => write!(out, "reading the ledger of shard {shard}"),
            Self::DeadLetters => write!(out, "reading the dead-letter queues"),
            Self::Outcomes => write!(out, "counting the outcomes in the database"),
            Self::Undecided { count } => {
                write!(
                    out,
                    "looking up {count} requests that have no outcome yet; it is quicker when nothing is on its way"
                )
            }
            Self::Again => write!(out, "beginning again, because the sale moved while it was counted"),
        }
    }
}
