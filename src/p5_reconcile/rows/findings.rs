//! The stored audits of P5: what a run read and what it found. A run and its findings are one transaction.

use crate::domain::ids::{RequestId, SaleId};
use crate::orders::persist::DETAIL_CHARS_MAX;
use crate::p5_reconcile::rows::FindingRows;
use crate::store::mysql::codes::{cut, datetime};
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{audit_findings, audit_runs};
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Unsigned};
use diesel_async::RunQueryDsl;

/// Findings kept of one run; the sheet has the totals of all.
const FINDINGS_MAX: usize = 1000;

/// Runs that found nothing are kept for a day, milliseconds.
pub const QUIET_KEPT_MS: i64 = 24 * 60 * 60 * 1000;
/// Runs with findings, and those that did not add up, are kept for 30 days, milliseconds.
pub const NEWS_KEPT_MS: i64 = 30 * QUIET_KEPT_MS;
/// Most runs that one call of [`prune`] deletes.
const PRUNED_MAX: i64 = 1_000;

/// One run of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// The sale; `None` for all.
    pub sale_id: Option<SaleId>,
    /// When the run began, Unix milliseconds.
    pub started_at_ms: i64,
    /// When the run ended, Unix milliseconds.
    pub ended_at_ms: i64,
    /// Whether everything added up.
    pub consistent: bool,
    /// Ledger records that the run read.
    pub examined_count: u64,
    /// The balance sheet as JSON.
    pub sheet: String,
    /// What was wrong.
    pub findings: Vec<StoredFinding>,
}

/// Something that was wrong.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = audit_findings)]
pub struct StoredFinding {
    /// The sale it is about.
    pub sale_id: Option<SaleId>,
    /// The request it is about.
    pub request_id: Option<RequestId>,
    /// Stable state code, at most 24 characters are kept.
    pub code: String,
    /// For a person; cut to 1,000 characters.
    pub detail: String,
}

type RunColumns = (u64, Option<SaleId>, UnixMs, UnixMs, bool, u64, String);

impl FindingRows {
    /// Writes a run and its first [`FINDINGS_MAX`] findings; returns its number.
    pub async fn record(&self, run: &StoredRun) -> Result<u64, DbError> {
        let row = (
            audit_runs::sale_id.eq(run.sale_id.as_ref().map(|sale_id| sale_id.as_str().as_bytes())),
            audit_runs::started_at.eq(datetime(run.started_at_ms)?),
            audit_runs::ended_at.eq(datetime(run.ended_at_ms)?),
            audit_runs::consistent.eq(run.consistent),
            audit_runs::examined_count.eq(run.examined_count),
            audit_runs::sheet.eq(run.sheet.as_str()),
        );
        self.db
            .run("audit_record", async |conn| {
                transaction(conn, async |conn| {
                    diesel::insert_into(audit_runs::table).values(row).execute(conn).await?;
                    let last = diesel::dsl::sql::<Unsigned<BigInt>>("LAST_INSERT_ID()");
                    let run_id: u64 = diesel::select(last).get_result(conn).await?;
                    let findings: Vec<_> =
                        run.findings.iter().take(FINDINGS_MAX).map(|f| finding_row(run_id, f)).collect();
                    if !findings.is_empty() {
                        diesel::insert_into(audit_findings::table).values(&findings).execute(conn).await?;
                    }
                    Ok(run_id)
                })
                .await
            })
            .await
    }
}

#[derive(Insertable)]
#[diesel(table_name = audit_findings, treat_none_as_default_value = false)]
struct FindingRow<'a> {
    run_id: u64,
    sale_id: Option<&'a [u8]>,
    request_id: Option<u64>,
    code: &'a str,
    detail: &'a str,
}

fn finding_row(run_id: u64, finding: &StoredFinding) -> FindingRow<'_> {
    FindingRow {
        run_id,
        sale_id: finding.sale_id.as_ref().map(|sale_id| sale_id.as_str().as_bytes()),
        request_id: finding.request_id.map(RequestId::get),
        code: cut(&finding.code, 24),
        detail: cut(&finding.detail, DETAIL_CHARS_MAX),
    }
}

impl FindingRows {
    /// The last `limit` runs (at most 100) with their findings, newest first.
    pub async fn last_runs(&self, limit: u32) -> Result<Vec<StoredRun>, DbError> {
        let (runs, findings) = self
            .db
            .run("audit_last_runs", async |conn| {
                let newest = audit_runs::table.order(audit_runs::run_id.desc()).limit(i64::from(limit.min(100)));
                let runs: Vec<RunColumns> = newest.load(conn).await?;
                let of_runs = audit_findings::run_id.eq_any(runs.iter().map(|run| run.0));
                let columns = (audit_findings::run_id, StoredFinding::as_select());
                let findings = audit_findings::table.filter(of_runs).order(audit_findings::finding_id).select(columns);
                let findings: Vec<(u64, StoredFinding)> = findings.load(conn).await?;
                Ok((runs, findings))
            })
            .await?;
        Ok(runs.into_iter().map(|run| with_findings(run, &findings)).collect())
    }
}

fn with_findings(run: RunColumns, findings: &[(u64, StoredFinding)]) -> StoredRun {
    let (run_id, sale_id, started_at, ended_at, consistent, examined_count, sheet) = run;
    let of_run = findings.iter().filter(|(of, _)| *of == run_id);
    StoredRun {
        sale_id,
        started_at_ms: started_at.into(),
        ended_at_ms: ended_at.into(),
        consistent,
        examined_count,
        sheet,
        findings: of_run.map(|(_, finding)| finding.clone()).collect(),
    }
}

impl FindingRows {
    /// Deletes old runs with their findings: those that found nothing after [`QUIET_KEPT_MS`], the others after [`NEWS_KEPT_MS`],
    /// by the age of their end at `now_ms` (Unix milliseconds). However many runs there are, none goes before its time. Returns
    /// how many runs went, at most [`PRUNED_MAX`] a call. Repeating is safe.
    pub async fn prune(&self, now_ms: i64) -> Result<usize, DbError> {
        let (quiet, news) = (datetime(now_ms - QUIET_KEPT_MS)?, datetime(now_ms - NEWS_KEPT_MS)?);
        self.db
            .run("audit_prune", async |conn| {
                transaction(conn, async |conn| {
                    let has_findings = diesel::dsl::exists(
                        audit_findings::table.filter(audit_findings::run_id.eq(audit_runs::run_id)),
                    );
                    let nothing_found = audit_runs::consistent.eq(true).and(diesel::dsl::not(has_findings));
                    let old: Vec<u64> = audit_runs::table
                        .filter(audit_runs::ended_at.lt(quiet))
                        .filter(audit_runs::ended_at.lt(news).or(nothing_found))
                        .order(audit_runs::ended_at)
                        .limit(PRUNED_MAX)
                        .select(audit_runs::run_id)
                        .load(conn)
                        .await?;
                    let findings = audit_findings::table.filter(audit_findings::run_id.eq_any(&old));
                    diesel::delete(findings).execute(conn).await?;
                    Ok(diesel::delete(audit_runs::table.filter(audit_runs::run_id.eq_any(&old))).execute(conn).await?)
                })
                .await
            })
            .await
    }
}
