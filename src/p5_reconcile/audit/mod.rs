//! The audit of one sale: everything Redis accepted against everything the database decided.
//!
//! Reading order is what makes it true while traffic runs: the database's highest numbers first, then one snapshot of a
//! shard's counters, then the ledger up to that snapshot's number, then the DLQs, and the database last, in one snapshot. A
//! request can only move towards the database, so whatever is seen unsettled here and settled there counts as settled. The
//! equations that come out of it are in docs/architecture.md, "The books".
//!
//! A round of P5 reads the MQ DLQ once, before its first audit, for all of them. So a request that went there since then is
//! told as a leak if it is overdue: that it was when the queue was read, in no DLQ. The second look does not read the queue
//! again either; what it finds otherwise is in the register or decided.

mod close;
mod finding;
mod given;
mod judge;
mod numbers;
mod proof;
mod sheet;
mod transit;
mod walk;

use super::mq_reading::MqSeen;
use crate::domain::balance::{Counted, Equation};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::domain::outcome::Outcome;
use crate::domain::sale::Sale;
use crate::store::mysql::{Db, DbError, books};
use crate::store::rabbit::RabbitConfig;
use crate::store::redis::{RedisFault, RedisStore};
pub use finding::{Finding, FindingKind};
pub(super) use proof::Proof;
use serde::Serialize;
use sheet::Sheet;
use std::collections::{HashMap, HashSet};
pub(super) use walk::Walks;

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

/// An accepted request without an outcome.
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
    /// The acceptance numbers, by epoch and shard.
    pub series: Vec<SeriesSheet>,
    /// Equations of the sheet, as they came out.
    pub equations: Vec<Equation>,
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
    /// Requests whose outcome the ledger has not been told.
    #[serde(skip)]
    pub unmarked: HashMap<u16, Vec<(RequestId, Outcome)>>,
    /// Settled requests that are old enough to be forgotten, by shard.
    #[serde(skip)]
    pub old: HashMap<u16, Vec<RequestId>>,
}

/// The acceptance numbers of one shard in one epoch: `number = outcomes + undecided + gaps`, gaps that a person closed included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeriesSheet {
    /// The epoch.
    pub epoch: u32,
    /// The shard.
    pub shard: u16,
    /// The last number that anybody gave.
    pub number: u64,
    /// Numbers that have an outcome.
    pub outcomes: u64,
    /// Numbers whose request is known and has none yet.
    pub undecided: u64,
    /// Numbers without either: first and last of each run.
    pub gaps: Vec<(u64, u64)>,
    /// How many of those a person has closed.
    pub closed: u64,
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
    /// Audits one sale, with everything counted anew.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server cannot be asked; nothing is known then.
    pub async fn audit(&self, sale: &Sale, window: Window) -> Result<SaleAudit, SaleAuditError> {
        self.audit_in_round(sale, &mut Look::new(window, None)).await
    }

    /// Audits one sale as `look` says, and remembers in it what need not be counted again.
    pub(super) async fn audit_in_round(&self, sale: &Sale, look: &mut Look<'_>) -> Result<SaleAudit, SaleAuditError> {
        self.check_shards(sale).await?;
        for _ in 1..TRIES {
            match self.audit_once(sale, look).await {
                Err(SaleAuditError::Moved) => look.forget(),
                done => return done,
            }
        }
        self.audit_once(sale, look).await
    }

    /// Audits a sale, and looks a second time when something is wrong. Returns the second audit, and how many findings of the
    /// first were nothing: false alarms (window 87).
    ///
    /// # Errors
    /// [`SaleAuditError`], as [`Auditor::audit`].
    pub async fn audit_twice(&self, sale: &Sale, window: Window) -> Result<(SaleAudit, u64), SaleAuditError> {
        self.audit_twice_in_round(sale, &mut Look::new(window, None)).await
    }

    /// The same as `look` says. The second look believes nothing that was counted before, unless `look` expects what the first
    /// one found.
    pub(super) async fn audit_twice_in_round(
        &self,
        sale: &Sale,
        look: &mut Look<'_>,
    ) -> Result<(SaleAudit, u64), SaleAuditError> {
        let first = self.audit_in_round(sale, look).await?;
        if first.findings.is_empty() || first.findings.iter().all(|finding| look.expected.contains(&finding.key())) {
            return Ok((first, 0));
        }
        look.forget();
        let second = self.audit_in_round(sale, look).await?;
        let false_alarms = first.false_alarms(&second);
        Ok((second, false_alarms))
    }

    async fn audit_once(&self, sale: &Sale, look: &mut Look<'_>) -> Result<SaleAudit, SaleAuditError> {
        // First of all: a number that Redis lacks and the database has was there before Redis was asked.
        let known = books::known(&self.db, &sale.sale_id).await?;
        let mut sheet = Sheet::new(self, sale, look, &known);
        sheet.read_marks().await?;
        for shard in 0..self.shards {
            sheet.read_shard(shard).await?;
        }
        sheet.judge().await
    }
}

/// How an audit is made, and what is remembered from one to the next.
pub(super) struct Look<'a> {
    /// How old an undecided request may be.
    pub window: Window,
    /// What the round has seen of the MQ DLQ; without that it is read at each look.
    pub seen: Option<&'a MqSeen>,
    /// Settled records older than this are collected, milliseconds; `None`: none.
    pub retention_ms: Option<i64>,
    /// Findings that stood before, and need no second look.
    pub expected: HashSet<(FindingKind, Option<RequestId>)>,
    /// What was counted of the database.
    pub proof: Proof,
    /// What was walked of the ledgers.
    pub walks: Walks,
}

impl<'a> Look<'a> {
    /// A look that remembers nothing yet.
    pub fn new(window: Window, seen: Option<&'a MqSeen>) -> Self {
        Self {
            window,
            seen,
            retention_ms: None,
            expected: HashSet::new(),
            proof: Proof::default(),
            walks: Walks::default(),
        }
    }

    /// Has everything counted anew.
    fn forget(&mut self) {
        self.proof = Proof::default();
        self.walks = Walks::default();
    }
}
