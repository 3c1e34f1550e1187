//! The audit of one sale: everything Redis accepted against everything the database decided.
//!
//! Reading order is what makes it true while traffic runs: the database's highest number first, then one snapshot of a
//! shard's counters, then the ledger up to that snapshot's number, then the DLQs, and the database's fates last. A request
//! can only move towards the database, so whatever is seen unsettled here and settled there counts as settled.
//!
//! A round of P5 reads the MQ DLQ once, before its first audit, for all of them. So a request that went there since then is
//! told as a leak if it is overdue: that it was when the queue was read, in no DLQ. The second look does not read the queue
//! again either; what it finds otherwise is in the register or decided.

mod sheet;

use super::mq_reading::MqSeen;
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
use sheet::Sheet;
use std::collections::{HashMap, HashSet};

/// How often an audit that met a trimming is made again.
const TRIES: u32 = 5;

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
    /// The database refused a change.
    #[error("{0}")]
    Refused(String),
    /// The sale was warmed for another number of shards than this process works with.
    #[error(
        "the sale was warmed with redis.shards = {0}, this process has {1}; the number cannot change while a sale lives, set it back"
    )]
    OtherShards(u16, u16),
    /// Settled records were trimmed, or a closed sale left Redis, while it was counted.
    #[error("the sale was trimmed during the audit; run it again")]
    Moved,
}

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Leak, Self::OverSell, Self::Orphan, Self::KeysLost, Self::LedgerDamaged, Self::Unbalanced];

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

impl Finding {
    /// What makes two findings the same one. Words change from look to look (ages, counts).
    #[must_use]
    pub const fn key(&self) -> (FindingKind, Option<RequestId>) {
        (self.kind, self.request_id)
    }
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
    /// Messages of the MQ DLQ that there was no time for, or too many to look at: a request among them counts as a leak instead
    /// of parked.
    pub mq_dlq_unseen_count: u64,
    /// Requests older than the window (parked ones too) that P5 may land.
    #[serde(skip)]
    pub overdue: Vec<OpenRequest>,
    /// Requests whose fate the ledger has not been told.
    #[serde(skip)]
    pub unmarked: HashMap<u16, Vec<(RequestId, Fate)>>,
    /// Settled requests with the time of their acceptance (Redis' clock), by shard: what may be trimmed once old enough.
    #[serde(skip)]
    pub settled: HashMap<u16, Vec<(RequestId, i64)>>,
}

impl SaleAudit {
    /// Whether everything adds up and nothing is lost.
    #[must_use]
    pub fn consistent(&self) -> bool {
        self.findings.is_empty() && self.counted.consistent()
    }

    /// Findings of this audit that a second one, made right after, does not have.
    fn false_alarms(&self, second: &Self) -> u64 {
        if self.findings_left_out_count + second.findings_left_out_count > 0 {
            // The lists are cut at different places; only their lengths can be compared.
            let found = |audit: &Self| audit.findings.len() as u64 + audit.findings_left_out_count;
            return found(self).saturating_sub(found(second));
        }
        let confirmed: HashSet<_> = second.findings.iter().map(Finding::key).collect();
        self.findings.iter().filter(|finding| !confirmed.contains(&finding.key())).count() as u64
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
    /// Most messages of the MQ DLQ looked at in one audit, normally [`super::MQ_DLQ_MAX`].
    pub mq_dlq_max: usize,
}

impl Auditor {
    /// Audits one sale.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server cannot be asked; nothing is known then.
    pub async fn audit(&self, sale: &Sale, window: Window) -> Result<SaleAudit, SaleAuditError> {
        self.audit_in_round(sale, window, None).await
    }

    /// Audits one sale, with what the round has `seen` of the MQ DLQ; without that it is read now.
    pub(super) async fn audit_in_round(
        &self,
        sale: &Sale,
        window: Window,
        seen: Option<&MqSeen>,
    ) -> Result<SaleAudit, SaleAuditError> {
        self.check_shards(sale).await?;
        for _ in 1..TRIES {
            match self.audit_once(sale, window, seen).await {
                Err(SaleAuditError::Moved) => {}
                done => return done,
            }
        }
        self.audit_once(sale, window, seen).await
    }

    /// Audits a sale, and looks a second time when something is wrong. Returns the second audit, and how many findings of the
    /// first were nothing: false alarms (window 87).
    ///
    /// # Errors
    /// [`SaleAuditError`], as [`Auditor::audit`].
    pub async fn audit_twice(&self, sale: &Sale, window: Window) -> Result<(SaleAudit, u64), SaleAuditError> {
        self.audit_twice_in_round(sale, window, None).await
    }

    /// The same with what the round has `seen` of the MQ DLQ; without that it is read at each look.
    pub(super) async fn audit_twice_in_round(
        &self,
        sale: &Sale,
        window: Window,
        seen: Option<&MqSeen>,
    ) -> Result<(SaleAudit, u64), SaleAuditError> {
        let first = self.audit_in_round(sale, window, seen).await?;
        if first.findings.is_empty() {
            return Ok((first, 0));
        }
        let second = self.audit_in_round(sale, window, seen).await?;
        let false_alarms = first.false_alarms(&second);
        Ok((second, false_alarms))
    }

    async fn audit_once(
        &self,
        sale: &Sale,
        window: Window,
        seen: Option<&MqSeen>,
    ) -> Result<SaleAudit, SaleAuditError> {
        let mut sheet = Sheet::new(self, sale, window, seen);
        for shard in 0..self.shards {
            sheet.read_shard(shard).await?;
        }
        sheet.judge_open().await?;
        sheet.close().await
    }
}
