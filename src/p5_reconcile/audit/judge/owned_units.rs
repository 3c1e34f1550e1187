//! What buyers own by `purchases`, against the orders that count against their limits: a sale with a cumulative limit
//! refuses or admits by the first, and an order that ends takes its units off it.
//!
//! Compared in an audit's slow turn, with the orders' own table; what was found then stands in the audits between.

use crate::domain::policy::PurchasePolicy;
use crate::domain::sale::Sale;
use crate::orders::rows::purchases::Differing;
use crate::p5_reconcile::audit::database_side::OwnedUnitsDiffer;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};

/// Buyers that a finding names.
const NAMED_MAX: usize = 10;

/// Reports how the units differ.
pub(super) fn report(sale: &Sale, differ: Option<&OwnedUnitsDiffer>, found: &mut FoundSoFar) {
    let Some(OwnedUnitsDiffer { units, buyers }) = differ else { return };
    if !matches!(sale.policy, PurchasePolicy::Cumulative(_)) {
        return;
    }
    let of_buyer = |buyer: &Differing| {
        let name = String::from_utf8_lossy(&buyer.user_id);
        format!("buyer {name} {} against {}", buyer.noted, buyer.ordered)
    };
    let buyers: Vec<String> = buyers.iter().map(of_buyer).collect();
    let more = if buyers.len() >= NAMED_MAX { ", and perhaps others" } else { "" };
    let detail = format!(
        "purchases of buyers = orders that count against their limits: {} against {} in sale {}: {}{more}",
        units.noted,
        units.ordered,
        sale.sale_id,
        buyers.join(", ")
    );
    found.add_part(FindingKind::Unbalanced, "purchases", detail);
}
