//! What buyers own by `purchases` and `drop_purchases`, against the orders that count against their limits: a sale with a cumulative
//! limit and a drop with a limit refuse or admit by the first, and an order that ends takes its units off it.
//!
//! Compared in an audit's slow turn, with the orders' own table; what was found then stands in the audits between. A drop is compared
//! by one of its sales ([`Sale::judged_drop`]). Entries of a line are compared with their orders in the same turn.

use crate::domain::line::EntryState;
use crate::domain::sale::Sale;
use crate::lines::rows::DifferingEntry;
use crate::orders::rows::purchases::Differing;
use crate::p5_reconcile::audit::database_side::OwnedUnitsDiffer;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};

/// Buyers that a finding names.
const NAMED_MAX: usize = 10;

/// Reports entries of a line that contradict their orders.
pub(super) fn report_entries(entries: &[DifferingEntry], found: &mut FoundSoFar) {
    if entries.is_empty() {
        return;
    }
    let of_entry = |entry: &DifferingEntry| match (entry.state, entry.request_id) {
        (EntryState::Taken, Some(request)) => {
            format!("entry {} is TAKEN, and its request {request} has no order", entry.id)
        }
        (EntryState::Lapsed, Some(request)) => format!("entry {} is LAPSED, and the order {request} lives", entry.id),
        (state, request) => format!("entry {} is {} with the request {request:?}", entry.id, state.code()),
    };
    let named: Vec<String> = entries.iter().map(of_entry).collect();
    let more = if entries.len() >= NAMED_MAX { ", and perhaps others" } else { "" };
    let detail = format!("entries of the line = their orders: {}{more}", named.join(", "));
    found.add_part(FindingKind::Unbalanced, "line_entries", detail);
}

/// Reports how the units differ.
pub(super) fn report(sale: &Sale, differ: &[OwnedUnitsDiffer], found: &mut FoundSoFar) {
    for OwnedUnitsDiffer { of_drop, units, buyers } in differ {
        let (part, of) = match of_drop {
            Some(drop_id) => ("drop_purchases", format!("drop {drop_id}")),
            None if sale.counts_units() => ("purchases", format!("sale {}", sale.sale_id)),
            None => continue,
        };
        let of_buyer = |buyer: &Differing| {
            let name = String::from_utf8_lossy(&buyer.user_id);
            format!("buyer {name} {} against {}", buyer.noted, buyer.ordered)
        };
        let named: Vec<String> = buyers.iter().map(of_buyer).collect();
        let more = if buyers.len() >= NAMED_MAX { ", and perhaps others" } else { "" };
        let detail = format!(
            "purchases of buyers = orders that count against their limits: {} against {} in {of}: {}{more}",
            units.noted,
            units.ordered,
            named.join(", ")
        );
        found.add_part(FindingKind::Unbalanced, part, detail);
    }
}
