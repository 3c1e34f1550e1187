//! What an audit came to. Values only.

use super::finding::{AuditFinding, FindingKind};
use crate::domain::balance::{BalanceSheet, Equation};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::domain::outcome::Outcome;
use crate::p5_reconcile::rows::books::Series;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// An accepted request without an outcome.
#[derive(Debug, Clone)]
pub(crate) struct OpenRequest {
    pub(crate) request_id: RequestId,
    /// The shard of its ledger.
    pub(crate) shard: u16,
    pub(crate) record: LedgerRecord,
    /// Since it was accepted, by Redis' clock.
    pub(crate) age_ms: i64,
    /// It is in a DLQ, or an open failed request.
    pub(crate) parked: bool,
}

/// The audit of one sale.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct SaleAudit {
    /// The audited sale.
    #[schema(value_type = String)]
    pub sale_id: SaleId,
    /// Ledger records read.
    pub examined_count: u64,
    /// The terms of the balance sheet.
    pub counted: BalanceSheet,
    /// The acceptance numbers, by epoch and shard.
    pub series: Vec<SeriesAudit>,
    /// The equations of the balance sheet, as they came out.
    pub equations: Vec<Equation>,
    /// What is wrong; at most the configured number.
    pub findings: Vec<AuditFinding>,
    /// Findings left out because there were too many.
    pub(crate) findings_left_out_count: u64,
    /// Age of the oldest undecided request, milliseconds.
    pub(crate) oldest_open_ms: i64,
    /// Messages of the MQ DLQ that were not read, because there were too many or no time was left: a request among them
    /// counts as a leak instead of parked.
    pub mq_dlq_unseen_count: u64,
    /// Findings of a first audit that this one, which was made to confirm it, does not have: false alarms (window 87).
    #[serde(skip)]
    pub false_alarms: u64,
    /// Units are in two buckets at once: nothing more may be sold before a rebuild has counted them again.
    #[serde(skip)]
    pub(crate) sells_twice: bool,
    /// Requests that are decided under another number than their record's: that number is closed.
    #[serde(skip)]
    pub(crate) void: Vec<OpenRequest>,
    /// Requests older than the window, parked ones too, that P5 may persist.
    #[serde(skip)]
    pub(crate) overdue: Vec<OpenRequest>,
    /// Decided requests whose ledger record does not say so, by shard.
    #[serde(skip)]
    pub(crate) unmarked: HashMap<u16, Vec<(RequestId, Outcome)>>,
    /// Settled requests whose record is older than the retention, by shard.
    #[serde(skip)]
    pub(crate) old: HashMap<u16, Vec<RequestId>>,
}

/// The acceptance numbers of one shard in one epoch: `number = outcomes + undecided + gaps + closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SeriesAudit {
    /// The epoch of the numbers.
    pub epoch: u32,
    /// The shard that gave the numbers.
    pub shard: u16,
    /// The last known number.
    pub number: u64,
    /// Numbers that have an outcome.
    pub outcomes: u64,
    /// Numbers whose request is known and has no outcome yet.
    pub undecided: u64,
    /// Numbers of which neither is known: first and last of each run.
    #[schema(value_type = Vec<Vec<u64>>)]
    pub gaps: Vec<(u64, u64)>,
    /// Numbers of gaps that a person has closed.
    pub closed: u64,
}

impl SaleAudit {
    pub(super) fn new(sale_id: SaleId) -> Self {
        Self {
            sale_id,
            examined_count: 0,
            counted: BalanceSheet::default(),
            series: Vec::new(),
            equations: Vec::new(),
            findings: Vec::new(),
            findings_left_out_count: 0,
            oldest_open_ms: 0,
            mq_dlq_unseen_count: 0,
            false_alarms: 0,
            sells_twice: false,
            void: Vec::new(),
            overdue: Vec::new(),
            unmarked: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// Of a sale that the database does not know: there is no sheet, only this finding.
    pub(super) fn of_unknown(sale_id: SaleId, detail: String) -> Self {
        let finding = AuditFinding { kind: FindingKind::UnknownSale, request_id: None, detail, part: String::new() };
        Self { findings: vec![finding], ..Self::new(sale_id) }
    }

    /// Whether everything adds up and nothing is lost.
    #[must_use]
    pub fn consistent(&self) -> bool {
        self.findings.is_empty() && self.counted.consistent()
    }

    /// The numbers of each series that no person has closed and nothing is known of.
    pub(in crate::p5_reconcile) fn open_gaps(&self) -> Vec<(Series, Vec<(u64, u64)>)> {
        let open = self.series.iter().filter(|series| !series.gaps.is_empty());
        open.map(|of| (Series { epoch: of.epoch, shard: of.shard }, of.gaps.clone())).collect()
    }

    /// Whether every unit of both sides is known to be where it belongs.
    pub(crate) fn is_balanced(&self) -> bool {
        self.counted.bridged && self.equations.iter().all(Equation::holds)
    }

    /// Findings of this audit that a second one, made right after, does not have.
    pub(super) fn not_confirmed_by(&self, second: &Self) -> u64 {
        if self.findings_left_out_count + second.findings_left_out_count > 0 {
            // The lists are cut at different places; only their lengths can be compared.
            let found = |audit: &Self| audit.findings.len() as u64 + audit.findings_left_out_count;
            return found(self).saturating_sub(found(second));
        }
        let confirmed: HashSet<_> = second.findings.iter().map(AuditFinding::key).collect();
        self.findings.iter().filter(|finding| !confirmed.contains(&finding.key())).count() as u64
    }
}

/// How many numbers are in these runs, each with its first and last.
pub(super) fn numbers_in(runs: &[(u64, u64)]) -> u64 {
    runs.iter().map(|(first, last)| last - first + 1).sum()
}
