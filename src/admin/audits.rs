//! The balance sheet of a sale, made now, and the audits that P5 has recorded.

use super::json_api::{answer, query, sale_id_in};
use super::state::Admin;
use crate::http::problem::{Kind, Problem};
use crate::p5_reconcile::{SaleAudit, Suspect, Window, audit_sale_confirmed, gap_suspects};
use crate::store::mysql::{audit as audit_store, sales};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::Semaphore;

/// An audit reads the whole ledger of a sale: one at a time in this process.
static ONE_AUDIT: Semaphore = Semaphore::const_new(1);
/// Runs listed without `limit`.
const RUNS: u32 = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// Waive the window: every undecided request counts as lost.
    #[serde(default)]
    now: bool,
}

pub(super) async fn audit(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>) -> HttpResponse {
    let work = async {
        let AuditQuery { now } = query(&request)?;
        let id = sale_id_in(&path)?;
        let sale = sales::get(&admin.servers.db, &id).await?;
        let sale = sale.ok_or_else(|| Kind::SaleNotFound.because(format!("there is no sale {id}")))?;
        let window = if now { Window::Now } else { Window::Ms(admin.window_ms) };
        let _turn = ONE_AUDIT.acquire().await.map_err(|_| Problem::from(Kind::Internal))?;
        // As P5 does: a finding that a second audit does not confirm is not reported.
        let (audit, _false_alarms) = audit_sale_confirmed(&admin.context, &sale, window).await?;
        let suspects = gap_suspects(&admin.context, &audit).await?;
        Ok(sheet(&audit, &suspects))
    };
    answer(&request, work.await)
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    #[serde(default)]
    limit: Option<u32>,
}

pub(super) async fn runs(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let work = async {
        let RunsQuery { limit } = query(&request)?;
        let limit = limit.unwrap_or(RUNS);
        if !(1..=100).contains(&limit) {
            return Err(Kind::Unprocessable.because("limit: expected 1 to 100"));
        }
        let runs = audit_store::last_runs(&admin.servers.db, limit).await?;
        Ok(json!({ "runs": runs.iter().map(run).collect::<Vec<_>>() }))
    };
    answer(&request, work.await)
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
