//! Writing down what an audit saw: log and counters for what is new, gauges always, rows in the database when there is news.
//!
//! A finding that stands is told once, not at every audit: it is counted and logged when it appears, and its run is
//! written again only when the findings change, or now and then. A crash forgets what was told; then it is told once more.

use super::audit::{Auditor, Finding, FindingKind, SaleAudit};
use super::compensate::count_false_alarms;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::states::{P5Reconcile, State};
use crate::runtime::now_ms;
use crate::store::mysql::{DbError, audit as audit_store};
use crate::telemetry::count;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// A run without news is written down after this many intervals.
const QUIET_INTERVALS: u32 = 10;
/// Sales remembered; beyond it everything is told anew.
const SALES_MAX: usize = 10_000;

type Key = (FindingKind, Option<RequestId>);

/// What was told about each sale.
#[derive(Debug)]
pub(super) struct Journal {
    told: HashMap<SaleId, HashSet<Key>>,
    written: HashMap<SaleId, (Instant, HashSet<Key>)>,
    quiet: Duration,
}

impl Journal {
    /// For audits every `interval_ms`.
    pub fn new(interval_ms: u64) -> Self {
        let quiet = Duration::from_millis(interval_ms).saturating_mul(QUIET_INTERVALS);
        Self { told: HashMap::new(), written: HashMap::new(), quiet }
    }

    /// Logs, counters and gauges of one audit.
    pub fn report(&mut self, audit: &SaleAudit, false_alarms: u64) {
        let sale = &audit.sale_id;
        if self.told.len() >= SALES_MAX {
            self.told.clear();
            self.written.clear();
        }
        let now: HashSet<Key> = audit.findings.iter().map(Finding::key).collect();
        let before = self.told.insert(sale.clone(), now).unwrap_or_default();
        if audit.findings.is_empty() {
            count(State::P5(P5Reconcile::Match), 1);
        }
        for finding in audit.findings.iter().filter(|finding| !before.contains(&finding.key())) {
            if let Some(state) = finding.kind.state() {
                count(State::P5(state), 1);
            }
            tracing::error!(
                phase = "p5_reconcile", %sale, kind = finding.kind.code(),
                request_id = finding.request_id.map(tracing::field::display), detail = %finding.detail, "finding"
            );
        }
        count_false_alarms(sale, false_alarms);
        if false_alarms > 0 {
            tracing::warn!(phase = "p5_reconcile", %sale, false_alarms, "findings that a second look did not confirm");
        }
        gauges(audit);
    }

    /// Writes a run down when its findings changed, or now and then.
    pub async fn write(&mut self, auditor: &Auditor, audit: &SaleAudit, started_at_ms: i64) -> Result<(), DbError> {
        let keys: HashSet<Key> = audit.findings.iter().map(Finding::key).collect();
        let old = self.written.get(&audit.sale_id).is_some_and(|(at, told)| *told == keys && at.elapsed() < self.quiet);
        if old {
            return Ok(());
        }
        let findings = audit.findings.iter().map(|finding| audit_store::Finding {
            sale_id: Some(audit.sale_id.clone()),
            request_id: finding.request_id,
            code: finding.kind.code().to_owned(),
            detail: finding.detail.clone(),
        });
        let run = audit_store::Run {
            sale_id: Some(audit.sale_id.clone()),
            started_at_ms,
            ended_at_ms: now_ms(),
            consistent: audit.consistent(),
            examined_count: audit.examined_count,
            sheet: serde_json::to_string(&audit.counted).unwrap_or_default(),
            findings: findings.collect(),
        };
        audit_store::record(&auditor.db, &run).await?;
        self.written.insert(audit.sale_id.clone(), (Instant::now(), keys));
        Ok(())
    }
}

fn gauges(audit: &SaleAudit) {
    let counted = audit.counted;
    for (name, value) in [
        ("redis_stock", counted.redis_stock),
        ("accepted", counted.accepted),
        ("in_flight", counted.in_flight),
        ("parked", counted.parked),
        ("leaked", counted.leaked),
        ("database_stock", counted.database_stock),
        ("ordered", counted.ordered),
    ] {
        metrics::gauge!("seckill_p5_reconcile_units", "sale" => audit.sale_id.to_string(), "what" => name)
            .set(value as f64);
    }
    for kind in FindingKind::ALL {
        let standing = audit.findings.iter().filter(|finding| finding.kind == kind).count();
        metrics::gauge!("seckill_p5_reconcile_findings_count", "sale" => audit.sale_id.to_string(), "finding" => kind.code())
            .set(standing as f64);
    }
}
