//! The balance sheet of a sale, made now, and the audits that P5 has recorded.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, SaleReadProblems, answer};
use super::state::Admin;
use crate::http::extract::SaleInPath;
use crate::http::problem::{Kind, Problem, RETRY_LATER_S};
use crate::p5_reconcile::rows::findings as audit_store;
use crate::p5_reconcile::{AuditOptions, SaleAudit, Suspect, Window, audit_sale, gap_suspects};
use actix_web::web;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

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
    responses((status = 200, description = "The balance sheet", body = Value), SaleReadProblems)
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
    answer(sheet(&audit, &suspects))
}

fn one_at_a_time() -> Problem {
    let english = "another audit is under way in this process; wait for its end";
    Kind::RateLimited.because_both(english, "本进程正在进行另一次审计，请等待其结束").retry_within_s(RETRY_LATER_S)
}

/// An audit with its equations and the suspects of its gaps, ready to be shown.
fn sheet(audit: &SaleAudit, suspects: &[Suspect]) -> Value {
    let equations: Vec<Value> = audit
        .equations
        .iter()
        .map(|equation| {
            let (left, right) = (equation.left, equation.right);
            json!({ "name": equation.name, "left": left, "right": right, "difference": left - right, "holds": equation.holds() })
        })
        .collect();
    json!({ "consistent": audit.consistent(), "audit": audit, "equations": equations, "suspects": suspects })
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
    responses((status = 200, description = "Runs, newest first", body = Value), ReadProblems)
)]
pub(super) async fn runs(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<RunsQuery>) -> AdminAnswer {
    let limit = query.limit.unwrap_or(RUNS);
    if !(1..=100).contains(&limit) {
        return Err(Kind::Unprocessable.because_both("limit: expected 1 to 100", "limit：应为 1 至 100"));
    }
    let runs = admin.servers.rows.findings.last_runs(limit).await?;
    answer(json!({ "runs": runs.iter().map(run).collect::<Vec<_>>() }))
}

fn run(run: &audit_store::StoredRun) -> Value {
    let findings: Vec<Value> = run
        .findings
        .iter()
        .map(|finding| {
            json!({ "sale_id": finding.sale_id, "request_id": finding.request_id, "code": finding.code, "detail": finding.detail })
        })
        .collect();
    json!({
        "sale_id": run.sale_id,
        "started_at_ms": run.started_at_ms,
        "ended_at_ms": run.ended_at_ms,
        "consistent": run.consistent,
        "examined_count": run.examined_count,
        // Another version may have written it: shown as it is.
        "sheet": RawValue::from_string(run.sheet.clone()).ok(),
        "findings": findings,
    })
}
