//! The balance sheet of a sale, made now, and the audits that P5 has recorded.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, SaleReadProblems, answer};
use super::state::Admin;
use crate::domain::balance::Equation;
use crate::domain::ids::{RequestId, SaleId};
use crate::http::extract::SaleInPath;
use crate::http::problem::{Kind, Problem, RETRY_LATER_S};
use crate::p5_reconcile::rows::findings::{StoredFinding, StoredRun};
use crate::p5_reconcile::{AuditOptions, SaleAudit, Suspect, Window, audit_sale, gap_suspects};
use actix_web::web;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Runs listed without `limit`.
const RUNS: u32 = 20;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// Waive the window: every undecided request counts as lost.
    #[serde(default)]
    now: bool,
}

/// Make the balance sheet now: equations, acceptance numbers, findings, buyers of gaps.
#[utoipa::path(
    get, path = "/admin/v1/sales/{sale_id}/audit", operation_id = "audit_sale", tag = "records",
    params(SaleInPath, AuditQuery),
    responses((status = 200, description = "The balance sheet", body = AuditAnswer), SaleReadProblems)
)]
pub(super) async fn audit(
    _call: ViewCall,
    admin: web::Data<Admin>,
    query: web::Query<AuditQuery>,
    path: web::Path<SaleInPath>,
) -> AdminAnswer {
    let id = &path.sale_id;
    let sale = admin.servers.rows.sales.get(id).await?;
    let sale = sale
        .ok_or_else(|| Kind::SaleNotFound.because_both(format!("there is no sale {id}"), format!("没有活动 {id}")))?;
    let window = if query.now { Window::Now } else { Window::Ms(admin.window_ms) };
    let Ok(_turn) = admin.auditing.try_lock() else { return Err(one_at_a_time()) };
    // As P5 does: a finding that a second audit does not confirm is not reported.
    let audit = audit_sale(&admin.context, &sale, AuditOptions::from(window).confirmed()).await?;
    let suspects = gap_suspects(&admin.context, &audit).await?;
    answer(AuditAnswer::of(audit, suspects))
}

fn one_at_a_time() -> Problem {
    let english = "another audit is under way in this process; wait for its end";
    Kind::RateLimited.because_both(english, "本进程正在进行另一次审计，请等待其结束").retry_within_s(RETRY_LATER_S)
}

/// An equation of the balance sheet, ready to be shown.
#[derive(Serialize, utoipa::ToSchema)]
struct ShownEquation {
    /// What should be equal, in words.
    name: &'static str,
    /// Left side, units.
    left: i64,
    /// Right side, units.
    right: i64,
    /// The left side less the right one.
    difference: i64,
    /// Whether there is none.
    holds: bool,
}

/// An audit with its equations and the suspects of its gaps.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AuditAnswer {
    /// Whether everything adds up and nothing is lost.
    consistent: bool,
    audit: SaleAudit,
    /// Those of the audit, with their differences.
    equations: Vec<ShownEquation>,
    /// Buyers of the gaps, as far as Redis has them.
    suspects: Vec<Suspect>,
}

impl AuditAnswer {
    fn of(audit: SaleAudit, suspects: Vec<Suspect>) -> Self {
        let shown = |of: &Equation| ShownEquation {
            name: of.name,
            left: of.left,
            right: of.right,
            difference: of.left - of.right,
            holds: of.holds(),
        };
        let equations = audit.equations.iter().map(shown).collect();
        Self { consistent: audit.consistent(), audit, equations, suspects }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsQuery {
    /// How many; 20 when left out.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

/// List the last runs of the audit with their findings.
#[utoipa::path(
    get, path = "/admin/v1/audits", operation_id = "list_audits", tag = "records",
    params(RunsQuery),
    responses((status = 200, description = "Runs, newest first", body = AuditRuns), ReadProblems)
)]
pub(super) async fn runs(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<RunsQuery>) -> AdminAnswer {
    let limit = query.limit.unwrap_or(RUNS);
    if !(1..=100).contains(&limit) {
        return Err(Kind::Unprocessable.because_both("limit: expected 1 to 100", "limit：应为 1 至 100"));
    }
    let runs = admin.servers.rows.findings.last_runs(limit).await?;
    answer(AuditRuns { runs: runs.into_iter().map(AuditRun::of).collect() })
}

/// A finding of a run.
#[derive(Serialize, utoipa::ToSchema)]
struct RunFinding {
    #[schema(value_type = Option<String>)]
    sale_id: Option<SaleId>,
    #[schema(value_type = Option<String>)]
    request_id: Option<RequestId>,
    /// Stable state code.
    #[schema(example = "P5-RC1")]
    code: String,
    /// For a person.
    detail: String,
}

/// An audit that P5 recorded.
#[derive(Serialize, utoipa::ToSchema)]
struct AuditRun {
    /// Null: of all sales.
    #[schema(value_type = Option<String>)]
    sale_id: Option<SaleId>,
    /// Unix milliseconds.
    started_at_ms: i64,
    /// Unix milliseconds.
    ended_at_ms: i64,
    /// Whether everything added up.
    consistent: bool,
    /// Ledger records that it read.
    examined_count: u64,
    /// The balance sheet, as the version that made it wrote it: terms come and go.
    #[schema(value_type = Option<Object>)]
    sheet: Option<Box<RawValue>>,
    findings: Vec<RunFinding>,
}

/// Recorded audits.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AuditRuns {
    /// Newest first.
    runs: Vec<AuditRun>,
}

impl AuditRun {
    fn of(run: StoredRun) -> Self {
        let finding = |of: StoredFinding| RunFinding {
            sale_id: of.sale_id,
            request_id: of.request_id,
            code: of.code,
            detail: of.detail,
        };
        Self {
            sale_id: run.sale_id,
            started_at_ms: run.started_at_ms,
            ended_at_ms: run.ended_at_ms,
            consistent: run.consistent,
            examined_count: run.examined_count,
            // Another version may have written it: shown as it is.
            sheet: RawValue::from_string(run.sheet).ok(),
            findings: run.findings.into_iter().map(finding).collect(),
        }
    }
}
