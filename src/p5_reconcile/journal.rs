//! Writing down what an audit saw: log and counters for what is new, gauges always, rows in the database when there is news.
//!
//! A finding that stands is told once, not at every audit: it is counted and logged when it appears, and its run is
//! written again only when there are new ones or none any more, or now and then. A crash forgets what was told; then it is told once more.

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
    written: HashMap<SaleId, Written>,
    quiet: Duration,
}

/// What was written down about a sale within one quiet time.
#[derive(Debug, Default)]
struct Written {
    /// When the quiet time began; none: nothing was written.
    since: Option<Instant>,
    /// What the last row said.
    last: HashSet<Key>,
    /// What any of its rows said: a finding that comes and goes has one row, and one when it went.
    all: HashSet<Key>,
}

impl Written {
    fn is_over(&self, now: Instant, quiet: Duration) -> bool {
        self.since.is_none_or(|since| now.duration_since(since) >= quiet)
    }

    /// Whether a run with these findings is worth a row.
    fn is_news(&self, keys: &HashSet<Key>, now: Instant, quiet: Duration) -> bool {
        self.is_over(now, quiet) || (self.last != *keys && (keys.is_empty() || !keys.is_subset(&self.all)))
    }

    /// It has its row.
    fn note(&mut self, keys: HashSet<Key>, now: Instant, quiet: Duration) {
        if self.is_over(now, quiet) {
            (self.since, self.all) = (Some(now), HashSet::new());
        }
        self.all.extend(keys.iter().copied());
        self.last = keys;
    }
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

    /// Writes a run down when it has a finding that has no row yet, when the findings are gone, and now and then.
    pub async fn write(&mut self, auditor: &Auditor, audit: &SaleAudit, started_at_ms: i64) -> Result<(), DbError> {
        let keys: HashSet<Key> = audit.findings.iter().map(Finding::key).collect();
        let (now, quiet) = (Instant::now(), self.quiet);
        if self.written.get(&audit.sale_id).is_some_and(|written| !written.is_news(&keys, now, quiet)) {
            return Ok(());
        }
        let findings = audit.findings.iter().map(|finding| audit_store::StoredFinding {
            sale_id: Some(audit.sale_id.clone()),
            request_id: finding.request_id,
            code: finding.kind.code().to_owned(),
            detail: finding.detail.clone(),
        });
        let run = audit_store::StoredRun {
            sale_id: Some(audit.sale_id.clone()),
            started_at_ms,
            ended_at_ms: now_ms(),
            consistent: audit.consistent(),
            examined_count: audit.examined_count,
            sheet: serde_json::to_string(&audit.counted).unwrap_or_default(),
            findings: findings.collect(),
        };
        audit_store::record(&auditor.db, &run).await?;
        self.written.entry(audit.sale_id.clone()).or_default().note(keys, now, quiet);
        Ok(())
    }
}

fn gauges(audit: &SaleAudit) {
    let counted = audit.counted;
    for (name, value) in [
        ("granted", counted.granted),
        ("granted_in_redis", counted.granted_in_redis),
        ("grants_open", counted.grants_open),
        ("redis_stock", counted.redis_stock),
        ("in_transit", counted.in_transit),
        ("accepted", counted.accepted),
        ("accepted_ordered", counted.accepted_ordered),
        ("accepted_failed", counted.accepted_failed),
        ("in_flight", counted.in_flight),
        ("parked", counted.parked),
        ("leaked", counted.leaked),
        ("gaps", counted.gaps),
        ("gaps_held", counted.gaps_held),
        ("written_off", counted.written_off),
        ("failed_held", counted.failed_held),
        ("refused", counted.refused),
        ("correction", counted.correction),
        ("landed_since", counted.landed_since),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_that_comes_and_goes_has_one_row_and_one_when_it_went() {
        let (begun, quiet) = (Instant::now(), Duration::from_secs(300));
        let keys = |kinds: &[FindingKind]| kinds.iter().map(|kind| (*kind, None)).collect::<HashSet<Key>>();
        let (none, leak, both) =
            (keys(&[]), keys(&[FindingKind::ALL[0]]), keys(&[FindingKind::ALL[0], FindingKind::ALL[1]]));
        let mut written = Written::default();
        let mut rows = |keys: &HashSet<Key>, after_s: u64| {
            let now = begun + Duration::from_secs(after_s);
            let news = written.is_news(keys, now, quiet);
            if news {
                written.note(keys.clone(), now, quiet);
            }
            news
        };
        assert!(rows(&leak, 0), "new");
        assert!(!rows(&leak, 30), "it stands");
        assert!(rows(&none, 60), "it went");
        for flap in 0..3 {
            assert!(!rows(&leak, 90 + flap * 60) && !rows(&none, 120 + flap * 60), "as before");
        }
        assert!(rows(&both, 270), "another one");
        assert!(rows(&both, 301) && rows(&none, 302), "a quiet time later");
    }
}
