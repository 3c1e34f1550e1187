//! One audit under way: what was read so far, and what was found.

use super::finding::{AuditFinding, FindingKind};
use super::ledger_scan::{KnownGaps, LedgerScan};
use super::options::AuditOptions;
use super::result::{OpenRequest, SaleAudit};
use crate::domain::ids::RequestId;
use crate::domain::sale::Sale;
use crate::p5_reconcile::context::ReconcileContext;
use crate::p5_reconcile::rows::books::{KnownSeries, Series};
use crate::sales::rows::grants::GrantMark;
use crate::store::redis::ShardCount;
use std::collections::HashMap;

pub(super) struct AuditRun<'a> {
    pub context: &'a ReconcileContext,
    pub sale: &'a Sale,
    pub options: AuditOptions<'a>,
    /// The sale's numbers in the database before Redis was read.
    pub known: &'a [KnownSeries],
    pub audit: SaleAudit,
    pub open: Vec<OpenRequest>,
    pub shards: HashMap<u16, ShardRead>,
    /// Shards whose counters are lost, with Redis' clock, Unix milliseconds.
    pub lost: Vec<(u16, i64)>,
    /// The gaps of each shard whose ledger this audit scanned.
    pub gaps: Vec<(u16, KnownGaps)>,
    /// Shards whose ledger lacks requests that the database decided.
    pub orphaned: Vec<u16>,
    /// Grants of the epoch that Redis was known to have before it was read.
    pub marked: Vec<GrantMark>,
}

/// What was read of one shard.
pub(super) struct ShardRead {
    /// One snapshot of the counters.
    pub counts: ShardCount,
    /// Its ledger up to that snapshot, or as it was at an earlier scan.
    pub scan: LedgerScan,
    /// Whether the ledger was scanned by this audit.
    pub fresh: bool,
    /// Redis' clock, Unix milliseconds.
    pub now_ms: i64,
}

impl ShardRead {
    /// Units ever accepted in the epoch: as Redis counted them; for keys from before that counter, as the ledger has them.
    pub(crate) fn accepted(&self) -> i64 {
        let trimmed = self.counts.trimmed;
        self.counts.accepted.unwrap_or(self.scan.units + trimmed.ordered + trimmed.failed)
    }
}

impl<'a> AuditRun<'a> {
    pub(crate) fn new(
        context: &'a ReconcileContext,
        sale: &'a Sale,
        options: AuditOptions<'a>,
        known: &'a [KnownSeries],
    ) -> Self {
        let audit = SaleAudit::new(sale.sale_id.clone());
        let (open, shards, lost) = (Vec::new(), HashMap::new(), Vec::new());
        let (gaps, orphaned, marked) = (Vec::new(), Vec::new(), Vec::new());
        Self { context, sale, options, known, audit, open, shards, lost, gaps, orphaned, marked }
    }

    /// Adds a finding of which the sale, or the request, can have one.
    pub(crate) fn find(&mut self, kind: FindingKind, request_id: Option<RequestId>, detail: String) {
        self.add(AuditFinding { kind, request_id, detail, part: String::new() });
    }

    /// Adds a finding of which the sale can have several: `part` says which one it is, the same in each audit.
    pub(crate) fn find_part(&mut self, kind: FindingKind, part: impl Into<String>, detail: String) {
        self.add(AuditFinding { kind, request_id: None, detail, part: part.into() });
    }

    /// Or counts it when there are too many.
    fn add(&mut self, finding: AuditFinding) {
        if self.audit.findings.len() < self.context.findings_max {
            self.audit.findings.push(finding);
        } else {
            self.audit.findings_left_out_count += 1;
        }
    }

    /// The shard of a series, if Redis and the database are both in the epoch of the series.
    pub(crate) fn current(&self, series: Series) -> Option<&ShardRead> {
        let shard = self.shards.get(&series.shard)?;
        (series.epoch == self.sale.epoch && shard.counts.meta.epoch == series.epoch).then_some(shard)
    }
}
