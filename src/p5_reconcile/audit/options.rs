//! How an audit is made, and what one audit remembers for the next.

use super::finding::{AuditFinding, FindingKey};
use super::ledger_scan::ScanMemory;
use super::outcome_counts::CountedOutcomes;
use super::purchases::PurchasesDiffer;
use super::result::SaleAudit;
use crate::p5_reconcile::dlq::MqDlqContents;
use crate::p5_reconcile::rows::books::Series;
use std::collections::HashSet;
use std::time::Duration;

/// How old an undecided request may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// This many milliseconds.
    Ms(u64),
    /// It may not be undecided at all.
    Now,
}

impl Window {
    /// Milliseconds; below zero with [`Window::Now`], so that every age is beyond it.
    pub(super) fn limit_ms(self) -> i64 {
        match self {
            Self::Ms(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
            Self::Now => -1,
        }
    }

    pub(super) const fn duration(self) -> Duration {
        match self {
            Self::Ms(ms) => Duration::from_millis(ms),
            Self::Now => Duration::ZERO,
        }
    }
}

/// How an audit is made.
#[derive(Debug, Clone, Copy)]
pub(in crate::p5_reconcile) struct AuditOptions<'a> {
    pub window: Window,
    /// What the round has read of the MQ DLQ; without it each audit reads the queue.
    pub mq_dlq: Option<&'a MqDlqContents>,
    /// Settled records older than this are collected, milliseconds; `None`: none.
    pub(crate) retention_ms: Option<i64>,
}

/// What one audit of a sale remembers for the next. An audit with an empty memory reads everything.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct AuditMemory {
    /// Findings of the last audit: they need no confirmation.
    pub expected: HashSet<FindingKey>,
    /// What was counted of the database.
    pub outcomes: CountedOutcomes,
    /// What was read of the ledgers.
    pub scans: ScanMemory,
    /// How the units that buyers own differed from their orders.
    pub purchases: PurchasesDiffer,
    /// The gaps whose buyers were written down; as long as they are the same, no buyer is new.
    pub named_gaps: Vec<(Series, Vec<(u64, u64)>)>,
}

impl AuditMemory {
    /// Findings that stand need no confirmation by the next audit.
    pub(crate) fn expect_again(&mut self, audit: &SaleAudit) {
        self.expected = audit.findings.iter().map(AuditFinding::key).collect();
    }

    /// Makes the next audit read everything.
    pub(crate) fn forget(&mut self) {
        self.outcomes = CountedOutcomes::default();
        self.scans = ScanMemory::default();
        self.purchases = None;
    }
}
