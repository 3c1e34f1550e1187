//! The audit report: log lines and counters for new findings, gauges for all, a row in the database when there is news.
//!
//! A finding is counted and logged once, when it appears. A sale that is over has no gauges. The run gets a row when it
//! has a finding without a row, when all findings are gone, and otherwise every ten intervals. After a crash everything
//! is reported once more.

use super::finding::{AuditFinding, FindingKey, FindingKind};
use super::result::SaleAudit;
use crate::domain::ids::SaleId;
use crate::domain::states::{P5Reconcile, State};
use crate::p5_reconcile::rows::{FindingRows, findings as audit_store};
use crate::runtime::now_ms;
use crate::store::mysql::DbError;
use crate::telemetry::count;
use crate::telemetry::sale_series::{self, SaleFigures};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Intervals after which a run without news gets a row, too.
const PERIOD_INTERVALS: u32 = 10;
/// Sales remembered; beyond that everything is reported again.
const SALES_MAX: usize = 10_000;

/// Reports audits, and remembers of each sale what was reported.
#[derive(Debug)]
pub(in crate::p5_reconcile) struct AuditReporter {
    logged: HashMap<SaleId, HashSet<FindingKey>>,
    rows: HashMap<SaleId, ReportedRows>,
    period: Duration,
}

/// The rows of a sale within one period.
#[derive(Debug, Default)]
struct ReportedRows {
    /// When the period began; none: there is no row.
    since: Option<Instant>,
    /// The findings of the last row.
    last: HashSet<FindingKey>,
    /// The findings of all rows: a finding that comes and goes gets one row, and one when it is gone.
    all: HashSet<FindingKey>,
}

impl ReportedRows {
    fn is_over(&self, now: Instant, period: Duration) -> bool {
        self.since.is_none_or(|since| now.duration_since(since) >= period)
    }

    /// Whether a run with these findings is worth a row.
    fn is_news(&self, keys: &HashSet<FindingKey>, now: Instant, period: Duration) -> bool {
        self.is_over(now, period) || (self.last != *keys && (keys.is_empty() || !keys.is_subset(&self.all)))
    }

    /// The run got its row.
    fn note(&mut self, keys: HashSet<FindingKey>, now: Instant, period: Duration) {
        if self.is_over(now, period) {
            (self.since, self.all) = (Some(now), HashSet::new());
        }
        self.all.extend(keys.iter().cloned());
        self.last = keys;
    }
}

impl AuditReporter {
    /// For audits every `interval_ms`.
    pub(crate) fn new(interval_ms: u64) -> Self {
        let period = Duration::from_millis(interval_ms).saturating_mul(PERIOD_INTERVALS);
        Self { logged: HashMap::new(), rows: HashMap::new(), period }
    }

    /// Writes the logs and counters of one audit.
    pub(crate) fn report(&mut self, audit: &SaleAudit) {
        let (sale, false_alarms) = (&audit.sale_id, audit.false_alarms);
        if self.logged.len() >= SALES_MAX {
            self.logged.clear();
            self.rows.clear();
        }
        let now: HashSet<FindingKey> = audit.findings.iter().map(AuditFinding::key).collect();
        let before = self.logged.insert(sale.clone(), now).unwrap_or_default();
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
            tracing::warn!(phase = "p5_reconcile", %sale, false_alarms, "a second audit did not confirm these findings");
        }
    }

    /// Writes the row of a run, if there is news or the period is over.
    pub(crate) async fn write(
        &mut self,
        kept: &FindingRows,
        audit: &SaleAudit,
        started_at_ms: i64,
    ) -> Result<(), DbError> {
        let keys: HashSet<FindingKey> = audit.findings.iter().map(AuditFinding::key).collect();
        let (now, period) = (Instant::now(), self.period);
        if self.rows.get(&audit.sale_id).is_some_and(|rows| !rows.is_news(&keys, now, period)) {
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
        kept.record(&run).await?;
        self.rows.entry(audit.sale_id.clone()).or_default().note(keys, now, period);
        Ok(())
    }
}

/// Counts findings that were nothing: a second audit does not confirm them, or persisting finds the outcome decided
/// (window 87).
pub(in crate::p5_reconcile) fn count_false_alarms(sale: &SaleId, false_alarms: u64) {
    sale_series::count_false_alarms(sale, false_alarms);
}

/// Shows the figures of an audit on the metrics page; none of a sale that is over.
pub(in crate::p5_reconcile) fn show_figures(audit: &SaleAudit, is_over: bool) {
    if is_over {
        sale_series::hide_sale(&audit.sale_id);
    } else {
        sale_series::show_sale(&audit.sale_id, figures(audit));
    }
}

fn figures(audit: &SaleAudit) -> SaleFigures {
    let counted = audit.counted;
    let units = vec![
        ("granted", counted.granted),
        ("withdrawn", counted.withdrawn),
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
    ];
    let standing = |kind: FindingKind| {
        let count = audit.findings.iter().filter(|finding| finding.kind == kind).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    };
    SaleFigures { units, findings: FindingKind::ALL.map(|kind| (kind.code(), standing(kind))).to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_that_comes_and_goes_has_one_row_and_one_when_it_went() {
        let (begun, period) = (Instant::now(), Duration::from_secs(300));
        let finding = |part: &str| AuditFinding {
            kind: FindingKind::Gap,
            request_id: None,
            detail: String::new(),
            part: part.to_owned(),
        };
        let keys = |parts: &[&str]| parts.iter().map(|part| finding(part).key()).collect::<HashSet<FindingKey>>();
        let (none, leak, both) = (keys(&[]), keys(&["from 5"]), keys(&["from 5", "from 9"]));
        let mut written = ReportedRows::default();
        let mut rows = |keys: &HashSet<FindingKey>, after_s: u64| {
            let now = begun + Duration::from_secs(after_s);
            let news = written.is_news(keys, now, period);
            if news {
                written.note(keys.clone(), now, period);
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
        assert!(rows(&both, 301) && rows(&none, 302), "a period later");
    }
}
