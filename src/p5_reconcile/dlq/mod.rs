//! The dead-letter desk (E5): everything that is parked, and what an operator does about it.
//!
//! Parked things lie in three places: the relay DLQ (a stream in Redis), the MQ DLQ (a queue in RabbitMQ), and the register's
//! open rows, to which P5 copies relay-DLQ entries before it deletes them. None of them decides anything: the database's
//! `request_outcome` does, so every act asks it first.
//!
//! Input: what lies there. Output: an outcome in the database, told to the ledger, a closed register row, a row in `operator_acts`, and
//! then, last of all, an empty place. A crash before the end leaves the entry where it was; acting again finds the outcome
//! decided and only tidies up.

mod act;
mod find;
mod plan;
mod written;

pub(super) use find::reason_of;
pub use plan::{Act, Deed, Done, OnProgress, Report, Selection};

use super::audit::{Auditor, SaleAuditError};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::operator::Actor;
use crate::domain::outcome::Outcome;
use crate::domain::request::Accepted;
use crate::store::mysql::{DbError, outcomes};
use crate::store::rabbit::{Parked, RabbitError};
use crate::store::redis::RedisFault;
use serde::{Serialize, Serializer};

/// Entries looked at in each place in one go; more are left for the next.
pub const ENTRIES_MAX: usize = 10_000;

/// Which dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// What the relay could not publish.
    Relay,
    /// What the consumer could not land.
    Mq,
}

/// Why the desk cannot work.
#[derive(Debug, thiserror::Error)]
pub enum DlqError {
    /// Something else is at work on the same sale.
    #[error("{0}")]
    Busy(String),
    /// Redis.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The broker.
    #[error(transparent)]
    Rabbit(#[from] RabbitError),
}

/// Where a parked thing lies.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The relay DLQ of a shard, under this stream id.
    Relay { shard: u16, id: String },
    /// The MQ DLQ, held by the reader that read it.
    Mq(Box<Parked>),
    /// An open row of the register.
    Register,
}

/// One parked thing.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Its name, `relay/<shard>/<stream id>`, `mq/<fingerprint>` or `register/<request id>`.
    pub entry: String,
    /// The request, when the entry tells it.
    pub request_id: Option<RequestId>,
    /// The sale, when it could be read.
    pub sale_id: Option<SaleId>,
    /// The buyer, when it could be read.
    pub user_id: Option<UserId>,
    /// Units, when it could be read.
    pub quantity: Option<u32>,
    /// Why it was parked.
    pub reason: String,
    /// Attempts that failed, when they were counted.
    pub attempts: Option<u32>,
    /// Since when, Unix milliseconds by that server's clock, when it is known.
    pub parked_at_ms: Option<i64>,
    /// What the database decided about the request meanwhile; then the entry is only to be removed.
    #[serde(rename = "fate", serialize_with = "outcome_code")]
    pub outcome: Option<Outcome>,
    /// The message as it was met.
    #[serde(serialize_with = "lossy")]
    pub payload: Vec<u8>,
    /// The request as accepted: out of the message, else out of the ledger. `None`: a person has to look.
    #[serde(skip)]
    pub accepted: Option<Accepted>,
    #[serde(skip)]
    pub(super) place: Place,
}

/// What lies in the dead-letter queues.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Listing {
    /// The entries: relay DLQ, MQ DLQ, register.
    pub entries: Vec<Entry>,
    /// Some place has more than [`ENTRIES_MAX`].
    pub more: bool,
}

/// The code of an outcome: `ORDER`, or the reason of the failure.
#[must_use]
pub const fn code_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ordered => "ORDER",
        Outcome::Failed(reason) => reason.code(),
    }
}

#[expect(clippy::ref_option, reason = "serde's signature")]
fn outcome_code<S: Serializer>(outcome: &Option<Outcome>, serializer: S) -> Result<S::Ok, S::Error> {
    outcome.map(code_of).serialize(serializer)
}

fn lossy<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(bytes))
}

impl From<SaleAuditError> for DlqError {
    fn from(error: SaleAuditError) -> Self {
        match error {
            SaleAuditError::Redis(fault) => Self::Redis(fault),
            SaleAuditError::Database(error) => Self::Database(error),
            SaleAuditError::Refused(_) | SaleAuditError::OtherShards(..) | SaleAuditError::Moved => {
                Self::Busy(error.to_string())
            }
        }
    }
}

/// An operator at the desk.
#[derive(Clone)]
pub struct Desk {
    /// The servers.
    pub auditor: Auditor,
    /// The operator, written into the register and into the record of acts.
    pub actor: Actor,
}

impl Desk {
    /// What is parked, with the database's word on each request. Changes nothing.
    ///
    /// # Errors
    /// [`DlqError`] when a server is away.
    pub async fn list(&self, source: Option<Source>) -> Result<Listing, DlqError> {
        let sweep = find::sweep(&self.auditor, source).await?;
        let mut listing = sweep.put_back().await?;
        let ids: Vec<RequestId> = listing.entries.iter().filter_map(|entry| entry.request_id).collect();
        let outcomes = outcomes::outcomes_of(&self.auditor.db, &ids).await?;
        for entry in &mut listing.entries {
            entry.outcome = entry.request_id.and_then(|id| outcomes.get(&id)).map(|decided| decided.outcome);
        }
        Ok(listing)
    }
}
