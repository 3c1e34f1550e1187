//! What every part of P5 may touch, and why a part could not do its work.

use super::archive::rows::ArchiveRows;
use super::audit_stage::AuditStage;
use super::rows::{BookRows, DecidedRows, FindingRows};
use crate::config::Settings;
use crate::domain::fault::MayBeOutage;
use crate::domain::ids::SaleId;
use crate::events::rows::OutcomeEventRows;
use crate::lines::rows::LineRows;
use crate::orders::persist::Persister;
use crate::orders::rows::{OrderRows, RegisterRows, RequestRows};
use crate::sales::SaleHandles;
use crate::sales::grants::{GrantError, SaleAndGrantRows};
use crate::sales::rows::error::SaleError;
use crate::sales::rows::{ActRows, ArchivedRows};
use crate::sales::withdrawals::WithdrawalError;
use crate::store::mysql::DbError;
use crate::store::rabbit::RabbitConfig;
#[cfg(feature = "faults")]
use crate::store::redis::Stock;
use crate::store::redis::{
    Buyers, Outbox, RebuildKeys, RedisFault, RedisHealth, RelayDlq, RequestLedger, SaleCache, SaleKeys, Transfers,
};
use tokio::sync::watch;

/// Messages of the MQ DLQ read by an audit outside of P5's rounds. A round reads the queue once for all of its audits, and P5
/// copies it into the failed requests: only messages younger than its last round are found nowhere else.
const MQ_DLQ_MAX: usize = 5_000;

/// What P5 may touch in Redis. A part that works with one handle only is given that handle.
#[derive(Clone)]
pub struct ReconcileHandles {
    /// A sale's keys as a whole: read by the audit, frozen by a rebuild, removed after the end.
    pub(crate) sale_keys: SaleKeys,
    /// Forgotten when a sale has changed.
    pub(crate) sale_cache: SaleCache,
    /// Only for the test that shows why P5 gives no units back (window 90).
    #[cfg(feature = "faults")]
    pub(crate) stock: Stock,
    /// Units between two shards.
    pub(crate) transfers: Transfers,
    /// The buyers whom a gap may be about.
    pub(crate) buyers: Buyers,
    /// Read first by an audit; marked, trimmed.
    pub(crate) ledger: RequestLedger,
    /// Read only: where a request waits.
    pub(crate) outbox: Outbox,
    /// Copied into the failed requests.
    pub(crate) relay_dlq: RelayDlq,
    /// Keys under reconstruction.
    pub(crate) rebuild: RebuildKeys,
    /// The servers' clocks.
    pub(crate) health: RedisHealth,
}

impl ReconcileHandles {
    /// The handles that open grants go through.
    pub(super) fn of_sale(&self) -> SaleHandles {
        SaleHandles { sale_keys: self.sale_keys.clone(), sale_cache: self.sale_cache.clone() }
    }
}

/// What P5 may touch in the database.
#[derive(Clone)]
pub struct ReconcileRows {
    /// The books.
    pub(crate) books: BookRows,
    /// Decided requests, for a rebuild.
    pub(crate) decided: DecidedRows,
    /// Findings of the audits.
    pub(crate) findings: FindingRows,
    /// The rows of a sale that is archived.
    pub(crate) archive: ArchiveRows,
    /// The sales, and the grants that carry units to Redis.
    pub(crate) giving: SaleAndGrantRows,
    /// What is kept of sales that were removed.
    pub(crate) archived: ArchivedRows,
    /// The record of what operators did.
    pub(crate) acts: ActRows,
    /// Orders and their payments.
    pub(crate) orders: OrderRows,
    /// Lines and their entries.
    pub(crate) lines: LineRows,
    /// What is on record of requests.
    pub(crate) requests: RequestRows,
    /// The register of failed requests.
    pub(crate) register: RegisterRows,
    /// Events that wait for the broker.
    pub(crate) outcome_events: OutcomeEventRows,
    /// Writes what was accepted and never arrived.
    pub(crate) persister: Persister,
}

/// The servers and limits that the parts of P5 work with.
#[derive(Clone)]
pub struct ReconcileContext {
    /// What P5 may touch in the database. It decides: its `request_outcome` is the truth.
    pub rows: ReconcileRows,
    /// Knows what was accepted.
    pub redis: ReconcileHandles,
    /// For the MQ DLQ and the depths of the queues.
    pub rabbit: RabbitConfig,
    /// Shards of every sale.
    pub shards: u16,
    /// Most findings kept in one audit.
    pub findings_max: usize,
    /// Most messages of the MQ DLQ read in one audit; tests set fewer.
    pub mq_dlq_max: usize,
    /// Where the audit is that is made with this context or a copy of it.
    pub stage: watch::Sender<AuditStage>,
}

/// Why an audit or a repair could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Redis did not answer, or refused.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The sale was warmed for another number of shards than this process works with.
    #[error(
        "the sale was warmed with redis.shards = {0}, this process has {1}; the number cannot change while a sale lives, set it back"
    )]
    OtherShards(u16, u16),
    /// Settled records were trimmed, or a closed sale left Redis, while it was counted.
    #[error("the sale was trimmed during the audit; run it again")]
    Moved,
}

impl ReconcileError {
    /// Whether a server as a whole is the problem, so that trying the next thing is pointless now.
    pub(super) const fn is_outage(&self) -> bool {
        match self {
            Self::Redis(RedisFault::NotSent(_) | RedisFault::Unknown(_)) => true,
            Self::Database(error) => error.is_outage(),
            Self::Redis(RedisFault::Refused(_) | RedisFault::NoScript | RedisFault::Contract(_))
            | Self::OtherShards(..)
            | Self::Moved => false,
        }
    }
}

impl ReconcileContext {
    /// The context of a process with these settings.
    #[must_use]
    pub fn new(rows: ReconcileRows, redis: ReconcileHandles, rabbit: RabbitConfig, settings: &Settings) -> Self {
        let (shards, findings_max) = (settings.redis.shards, settings.p5_reconcile.findings_max);
        Self { rows, redis, rabbit, shards, findings_max, mq_dlq_max: MQ_DLQ_MAX, stage: watch::Sender::default() }
    }

    /// Refuses a sale that was warmed for another number of shards: every count would be wrong, and a repair too.
    pub(super) async fn check_shards(&self, sale: &SaleId) -> Result<(), ReconcileError> {
        match self.redis.sale_keys.shards_of(sale).await? {
            Some(warmed) if warmed != self.shards => Err(ReconcileError::OtherShards(warmed, self.shards)),
            Some(_) | None => Ok(()),
        }
    }
}

impl MayBeOutage for ReconcileError {
    fn is_outage(&self) -> bool {
        match self {
            Self::Redis(error) => error.is_outage(),
            Self::Database(error) => error.is_outage(),
            Self::OtherShards(..) | Self::Moved => false,
        }
    }
}

impl From<WithdrawalError> for ReconcileError {
    fn from(error: WithdrawalError) -> Self {
        match error {
            WithdrawalError::Redis(error) => error.into(),
            WithdrawalError::Sale(SaleError::Db(error)) => error.into(),
            WithdrawalError::Sale(refusal) => Self::Database(DbError::Other(refusal.to_string())),
        }
    }
}

impl From<GrantError> for ReconcileError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Redis(error) => error.into(),
            GrantError::Database(error) => error.into(),
        }
    }
}
