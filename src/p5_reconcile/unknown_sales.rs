//! When P5 asks for sales that only Redis knows, and shows them: all keys of Redis are visited for it, so not in every round.
//!
//! Input: rounds of a leader. Output: reports of the sales that are unknown, until they are not any more. A crash forgets what was shown,
//! and the next leader asks in its first round.

use super::audit::{AuditReporter, show_figures, unknown_sales};
use super::context::{ReconcileContext, ReconcileError};
use crate::domain::ids::SaleId;
use crate::runtime::now_ms;
use crate::telemetry::sale_series;
use std::collections::BTreeSet;

/// Rounds from one question to the next: ten minutes by default.
const ROUNDS: u32 = 20;

/// The sales that only Redis knows, as they were last shown.
#[derive(Debug, Default)]
pub(super) struct UnknownSales {
    shown: BTreeSet<SaleId>,
    /// Rounds that may pass without a question.
    rest: u32,
}

impl UnknownSales {
    /// To be called in each round, when the sales that are known have been audited. Returns why it could not be asked; the next round
    /// asks again.
    pub(crate) async fn report(
        &mut self,
        context: &ReconcileContext,
        reporter: &mut AuditReporter,
    ) -> Option<ReconcileError> {
        if let Some(rest) = self.rest.checked_sub(1) {
            self.rest = rest;
            return None;
        }
        let failed = self.ask(context, reporter).await.err();
        failed.inspect(|error| {
            tracing::warn!(phase = "p5_reconcile", %error, "sales that only Redis knows cannot be searched");
        })
    }

    async fn ask(&mut self, context: &ReconcileContext, reporter: &mut AuditReporter) -> Result<(), ReconcileError> {
        let started_at_ms = now_ms();
        let audits = unknown_sales(context).await?;
        let now: BTreeSet<SaleId> = audits.iter().map(|audit| audit.sale_id.clone()).collect();
        // One that is known again shows its figures by its own audits.
        self.shown.difference(&now).for_each(sale_series::hide_sale);
        for audit in &audits {
            reporter.report(audit);
            show_figures(audit, false);
            reporter.write(&context.rows.findings, audit, started_at_ms).await?;
        }
        (self.shown, self.rest) = (now, ROUNDS - 1);
        Ok(())
    }
}
