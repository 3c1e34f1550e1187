//! ParkedMessage entries as values, and why they cannot be worked on.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::message::{self, OrderMessage};
use crate::domain::outcome::Outcome;
use crate::p5_reconcile::context::ReconcileError;
use crate::store::mysql::DbError;
use crate::store::rabbit::{ParkedMessage, RabbitError};
use crate::store::redis::RedisFault;
use serde::{Serialize, Serializer};

/// Bytes of a message that a failed request keeps; its column holds 65,535.
pub(super) const PAYLOAD_MAX: usize = 60_000;

/// Which dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DlqSource {
    /// Requests that the relay could not publish.
    Relay,
    /// Requests that the consumer could not persist.
    Mq,
}

/// Why an action on parked entries failed.
#[derive(Debug, thiserror::Error)]
pub enum DlqError {
    /// Another process works on the same sale.
    #[error("{0}")]
    Busy(String),
    /// Redis did not answer, or refused.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The broker did not answer, or refused.
    #[error(transparent)]
    Rabbit(#[from] RabbitError),
}

impl From<ReconcileError> for DlqError {
    fn from(error: ReconcileError) -> Self {
        match error {
            ReconcileError::Redis(fault) => Self::Redis(fault),
            ReconcileError::Database(error) => Self::Database(error),
            ReconcileError::OtherShards(..) | ReconcileError::Moved => Self::Busy(error.to_string()),
        }
    }
}

/// Where an entry is parked.
#[derive(Debug, Clone)]
pub(super) enum DlqPlace {
    /// The relay DLQ of a shard, under this stream id.
    Relay { shard: u16, id: String },
    /// The MQ DLQ; the reader that read the message holds it.
    Mq(Box<ParkedMessage>),
    /// An open failed request in the database.
    FailedRequest,
}

/// One parked entry.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DlqEntry {
    /// Its name, `relay/<shard>/<stream id>`, `mq/<fingerprint>` or `register/<request id>`.
    pub entry: String,
    /// These four when the entry could be read.
    pub request_id: Option<RequestId>,
    pub sale_id: Option<SaleId>,
    pub user_id: Option<UserId>,
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
    /// The message, byte for byte.
    #[serde(serialize_with = "lossy")]
    pub payload: Vec<u8>,
    /// The request as accepted, out of the message or else the ledger. `None`: a person has to decide.
    #[serde(skip)]
    pub accepted: Option<OrderMessage>,
    #[serde(skip)]
    pub(super) place: DlqPlace,
}

impl DlqEntry {
    pub(super) fn new(entry: String, place: DlqPlace, payload: Vec<u8>) -> Self {
        let mut new = Self {
            entry,
            request_id: None,
            sale_id: None,
            user_id: None,
            quantity: None,
            reason: String::new(),
            attempts: None,
            parked_at_ms: None,
            outcome: None,
            accepted: None,
            payload,
            place,
        };
        let read = message::decode(&new.payload).ok();
        new.set_accepted(read);
        new
    }

    pub(super) fn set_accepted(&mut self, accepted: Option<OrderMessage>) {
        if let Some(accepted) = &accepted {
            let purchase = &accepted.purchase;
            self.request_id = Some(purchase.request_id);
            self.sale_id = Some(purchase.sale_id.clone());
            self.user_id = Some(purchase.user_id.clone());
            self.quantity = Some(purchase.quantity.get());
        }
        self.accepted = accepted;
    }

    /// Whether this word, a request id or an entry name, means this entry.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.entry == word || self.request_id.is_some_and(|id| id.to_string() == word)
    }
}

/// The entries of the dead-letter queues.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct DlqListing {
    /// In this order: relay DLQ, MQ DLQ, failed requests.
    pub entries: Vec<DlqEntry>,
    /// A place has more entries than are read at once.
    pub more: bool,
}

/// The code of an outcome: `ORDER`, or the reason of the failure.
pub(crate) const fn code_of(outcome: Outcome) -> &'static str {
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
