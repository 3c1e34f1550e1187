//! What buyers own by `purchases`, against the orders that count against their limits: a sale with a cumulative limit refuses or
//! admits by the first, and an order that ends takes its units off it.
//!
//! Compared in an audit's slow turn, with the orders' own table; the result is remembered for the audits between. Reads only.

use super::finding::FindingKind;
use super::run::AuditRun;
use crate::domain::policy::PurchasePolicy;
use crate::orders::rows::purchases::{self, Differing};
use crate::p5_reconcile::context::ReconcileError;

/// Buyers that a finding names.
const NAMED_MAX: usize = 10;

/// What the last comparison found, in words; `None`: all agreed, or nothing was compared yet.
pub(in crate::p5_reconcile) type PurchasesDiffer = Option<String>;

/// Compares in a slow turn, and reports what the last comparison found.
pub(super) async fn compare(
    run: &mut AuditRun<'_>,
    slow_turn: bool,
    remembered: &mut PurchasesDiffer,
) -> Result<(), ReconcileError> {
    if !matches!(run.sale.policy, PurchasePolicy::Cumulative(_)) {
        return Ok(());
    }
    if slow_turn {
        *remembered = differing(run).await?;
    }
    if let Some(detail) = remembered.clone() {
        run.find_part(FindingKind::Unbalanced, "purchases", detail);
    }
    Ok(())
}

async fn differing(run: &AuditRun<'_>) -> Result<PurchasesDiffer, ReconcileError> {
    let (units, buyers) = purchases::compare(&run.context.db, &run.sale.sale_id, NAMED_MAX).await?;
    if units.noted == units.ordered {
        return Ok(None);
    }
    let of_buyer = |buyer: &Differing| {
        let name = String::from_utf8_lossy(&buyer.user_id);
        format!("buyer {name} {} against {}", buyer.noted, buyer.ordered)
    };
    let buyers: Vec<String> = buyers.iter().map(of_buyer).collect();
    let more = if buyers.len() == NAMED_MAX { ", and perhaps others" } else { "" };
    let detail = format!(
        "purchases of buyers = orders that count against their limits: {} against {} in sale {}: {}{more}",
        units.noted,
        units.ordered,
        run.sale.sale_id,
        buyers.join(", ")
    );
    Ok(Some(detail))
}
