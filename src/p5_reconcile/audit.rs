//! What an audit is made of, and making one. The reading itself is in `sheet`.

use super::sheet::Sheet;
use crate::domain::balance::Counted;
use crate::domain::fate::Fate;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::domain::sale::Sale;
use crate::domain::states::P5Reconcile;
use crate::store::mysql::{Db, DbError};
use crate::store::rabbit::RabbitConfig;
use crate::store::redis::{RedisFault, RedisStore};
use serde::Serialize;
use std::collections::HashMap;

/// How old an undecided request may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// This many milliseconds.
    Ms(u64),
    /// It may not be undecided at all.
    Now,
}

/// Why an audit could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SaleAuditError {
    /// Redis.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FindingKind {
    /// An accepted request older than the window without a fate.
    Leak,
    /// More orders than granted units.
    OverSell,
    /// The database decided requests that Redis does not know.
    Orphan,
    /// The sale was warmed and its keys are missing.
    KeysLost,
    /// A ledger record cannot be read, or one is missing below the newest acceptance number.
    LedgerDamaged,
    /// An equation of the sheet does not hold.
    Unbalanced,
}

impl FindingKind {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Leak => P5Reconcile::Leak.code(),
            Self::OverSell => P5Reconcile::OverSell.code(),
            Self::Orphan => P5Reconcile::Orphan.code(),
            Self::KeysLost => "KEYS_LOST",
            Self::LedgerDamaged => "LEDGER_DAMAGED",
            Self::Unbalanced => "UNBALANCED",
        }
    }

    /// The state it stands for, if it is one of the field's.
    #[must_use]
    pub const fn state(self) -> Option<P5Reconcile> {
        match self {
            Self::Leak => Some(P5Reconcile::Leak),
            Self::OverSell => Some(P5Reconcile::OverSell),
            Self::Orphan => Some(P5Reconcile::Orphan),
            Self::KeysLost | Self::LedgerDamaged | Self::Unbalanced => None,
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The request it is about.
    pub request_id: Option<RequestId>,
    /// For a person.
    pub detail: String,
}

/// An accepted request without a fate.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The request.
    pub request_id: RequestId,
    /// The shard of its ledger.
    pub shard: u16,
    /// What the ledger says.
    pub record: LedgerRecord,
    /// Since it was accepted, by Redis' clock.
    pub age_ms: i64,
    /// It lies in a DLQ, or in the register as open.
    pub parked: bool,
}

/// The audit of one sale.
#[derive(Debug, Clone, Serialize)]
pub struct SaleAudit {
    /// The sale.
    pub sale_id: SaleId,
    /// Ledger records looked at.
    pub examined_count: u64,
    /// The sheet.
    pub counted: Counted,
    /// What is wrong; at most the configured number.
    pub findings: Vec<Finding>,
    /// Findings left out because there were too many.
    pub findings_left_out_count: u64,
    /// Age of the oldest undecided request, milliseconds.
    pub oldest_open_ms: i64,
    /// Requests older than the window (parked ones too) that P5 may land.
    #[serde(skip)]
    pub overdue: Vec<OpenRequest>,
    /// Requests whose fate the ledger has not been told.
    #[serde(skip)]
    pub unmarked: HashMap<u16, Vec<(RequestId, Fate)>>,
}

impl SaleAudit {
    /// Whether everything adds up and nothing is lost.
    #[must_use]
    pub fn consistent(&self) -> bool {
        self.findings.is_empty() && self.counted.consistent()
    }
}

/// Makes audits.
#[derive(Clone)]
pub struct Auditor {
    /// The truth.
    pub db: Db,
    /// What was accepted.
    pub redis: RedisStore,
    /// For the MQ DLQ.
    pub rabbit: RabbitConfig,
    /// Shards of every sale.
    pub shards: u16,
    /// Most findings kept in one audit.
    pub findings_max: usize,
}

impl Auditor {
    /// Audits one sale.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server cannot be asked; nothing is known then.
    pub async fn audit(&self, sale: &Sale, window: Window) -> Result<SaleAudit, SaleAuditError> {
        let mut sheet = Sheet::new(self, sale, window);
        for shard in 0..self.shards {
            sheet.read_shard(shard).await?;
        }
        sheet.judge_open().await?;
        sheet.close().await
    }
}
