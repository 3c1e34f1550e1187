//! What one audit of a sale remembers for the next.
//!
//! Two memories, because they are given up for different reasons: outcomes are counted on from a border in the database, and all of
//! them anew where an equation does not hold; a ledger is scanned again when something came, grew old or is doubted.

use super::database_side::{CountedOutcomes, DatabaseSide, OwnedUnitsSide};
use super::finding::{AuditFinding, FindingKey, FindingKind};
use super::judge::JudgedSale;
use super::redis_side::ScanMemory;
use super::result::SaleAudit;
use crate::p5_reconcile::rows::books::Series;
use std::collections::HashSet;

/// What an audit remembers. An audit with an empty memory reads everything.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct AuditMemory {
    /// Findings of the last audit: they need no confirmation.
    pub expected: HashSet<FindingKey>,
    /// What was counted of the database.
    pub outcomes: CountedOutcomes,
    /// What was read of the ledgers.
    pub(super) scans: ScanMemory,
    /// How the units that buyers own, and entries, differed from their orders, when they were compared last.
    pub(super) owned: OwnedUnitsSide,
    /// The gaps whose buyers were written down; as long as they are the same, no buyer is new.
    pub named_gaps: Vec<(Series, Vec<(u64, u64)>)>,
}

impl AuditMemory {
    /// Findings that stand need no confirmation by the next audit.
    pub(crate) fn expect_again(&mut self, audit: &SaleAudit) {
        self.expected = audit.findings.iter().map(AuditFinding::key).collect();
    }

    /// Whether it expects all that an audit found.
    pub(super) fn expects(&self, audit: &SaleAudit) -> bool {
        audit.findings.iter().all(|finding| self.expected.contains(&finding.key()))
    }

    /// An equation that does not hold is counted anew each time: what is remembered would repeat it, or hide it.
    pub(super) fn doubt_sums(&mut self) {
        if self.expected.iter().any(|key| key.is_of(FindingKind::Unbalanced)) {
            self.outcomes.count_all_next();
        }
    }

    /// Remembers what an audit came to.
    pub(super) fn learn(&mut self, judged: &JudgedSale, database: &DatabaseSide) {
        for (shard, gaps) in &judged.gaps {
            self.scans.remember_gaps(*shard, gaps.clone());
        }
        judged.shards_to_rescan.iter().for_each(|shard| self.scans.doubt(*shard));
        if database.owned.is_new {
            self.owned = OwnedUnitsSide { is_new: false, ..database.owned.clone() };
        }
    }

    /// Makes the next audit read everything.
    pub(super) fn forget(&mut self) {
        self.outcomes = CountedOutcomes::default();
        self.scans = ScanMemory::default();
        self.owned = OwnedUnitsSide::default();
    }
}
