//! C11: an order is paid or its units came back, never both; units come back once; no money is lost.

use super::super::Found;
use super::super::index::Index;
use super::super::read::{Act, Attempt, Payment};
use std::collections::{BTreeMap, BTreeSet};

/// Checks C11.
pub fn check(index: &Index<'_>, found: &mut Found) {
    let payments: BTreeMap<&str, &Payment> =
        index.input.payments.iter().map(|payment| (payment.payment_id.as_str(), payment)).collect();
    orders(index, found);
    units(index, found);
    money(index, &payments, found);
}

/// Paid with one payment, or not.
fn orders(index: &Index<'_>, found: &mut Found) {
    let mut applied: BTreeMap<&str, u32> = BTreeMap::new();
    for payment in index.input.payments.iter().filter(|payment| payment.state == "APPLIED") {
        *applied.entry(&payment.request_id).or_default() += 1;
    }
    for order in &index.input.orders {
        let (rid, state) = (order.request_id.as_str(), order.state.as_deref().unwrap_or("none"));
        let payments = applied.remove(rid).unwrap_or(0);
        if payments != u32::from(state == "PAID") {
            found.add("C11", format!("order {rid} is {state}, and {payments} payments are applied to it"));
        }
    }
    for (rid, _) in applied {
        found.add("C11", format!("a payment is applied to {rid}, which is no order"));
    }
}

/// What the journal brought back is what ended; and so is what Redis was given for it.
fn units(index: &Index<'_>, found: &mut Found) {
    for sale in &index.input.sales {
        let id = sale.sale_id.as_str();
        let ended = index.input.orders.iter().filter(|order| order.sale_id == id && order.has_ended());
        let ended: i64 = ended.map(|order| order.quantity).sum();
        let flow = index.input.flow.iter().filter(|flow| flow.sale_id == id);
        let returned: i64 =
            flow.filter(|flow| ["expire", "cancel"].contains(&flow.kind.as_str())).map(|flow| flow.delta).sum();
        let is_return = |name: &str| name.starts_with("return-") || name.starts_with("cancel-");
        let granted = index.input.grants.iter().filter(|grant| grant.sale_id == id && is_return(&grant.grant_id));
        let granted: i64 = granted.map(|grant| grant.quantity).sum();
        if (returned, granted) != (ended, ended) {
            found.add(
                "C11",
                format!(
                    "sale {id}: {ended} units of orders that ended, {returned} came back, {granted} were granted again"
                ),
            );
        }
    }
}

/// What the backend got is what is on record, and nothing it reported is missing.
fn money(index: &Index<'_>, payments: &BTreeMap<&str, &Payment>, found: &mut Found) {
    let mut reported: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in index.input.attempts.iter().filter(|attempt| attempt.kind == "pay") {
        reported.entry(attempt.payment.as_deref().unwrap_or_default()).or_default().push(attempt);
    }
    for (id, attempts) in &reported {
        let got: BTreeSet<&str> = attempts
            .iter()
            .map(|attempt| attempt.result.as_str())
            .filter(|result| ["paid", "refund_needed"].contains(result))
            .collect();
        if got.len() > 1 {
            found.add("C11", format!("payment {id}: the backend got {got:?}"));
        }
        match (got.first(), payments.get(id)) {
            (Some(_), None) => found.add("C11", format!("payment {id} was answered and is not on record")),
            (Some(&"paid"), Some(row)) if row.state != "APPLIED" && !is_cancelled_by_hand(index, row) => {
                found.add("C11", format!("payment {id}: the backend got paid, it is {} on record", row.state));
            }
            (Some(&"refund_needed"), Some(row)) if row.state == "APPLIED" => {
                found.add("C11", format!("payment {id}: the backend got refund needed, it is applied"));
            }
            (None, _) => found.add("C11", format!("payment {id}: the backend never got an answer")),
            (Some(_), Some(_)) => {}
        }
    }
    for payment in index.input.payments.iter().filter(|payment| !reported.contains_key(payment.payment_id.as_str())) {
        found.add("C11", format!("payment {} is on record, and no backend reported it", payment.payment_id));
    }
}

/// Whether its order was paid, and then an operator cancelled it: the money goes back.
fn is_cancelled_by_hand(index: &Index<'_>, payment: &Payment) -> bool {
    let rid = payment.request_id.as_str();
    let is_act = |act: &Act| act.act == "cancel" && act.about.as_deref() == Some(rid) && act.result != "refused";
    let is_cancelled = index.orders.get(rid).is_some_and(|order| order.state.as_deref() == Some("CANCELLED"));
    is_cancelled && payment.reason.as_deref() == Some("CANCELLED") && index.input.acts.iter().any(is_act)
}
