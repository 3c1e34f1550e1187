//! C1: never oversold, and stock, orders and journal agree. C5: "sold out" was honest.

use super::super::Found;
use super::super::index::Index;
use std::collections::BTreeSet;

/// Checks C1 and C5.
pub fn check(index: &Index<'_>, found: &mut Found) {
    at_the_end(index, found);
    in_samples(index, found);
    sold_out(index, found);
}

fn at_the_end(index: &Index<'_>, found: &mut Found) {
    for sale in &index.input.sales {
        let (id, granted, stock) = (&sale.sale_id, sale.granted, sale.stock);
        let ordered = index.ordered_units(id);
        if ordered > granted {
            found.add("C1", format!("sale {id}: oversold, {ordered} ordered of {granted} granted"));
        }
        if stock < 0 {
            found.add("C1", format!("sale {id}: stock is {stock}"));
        }
        if stock + ordered != granted {
            found.add("C1", format!("sale {id}: stock {stock} + ordered {ordered} is not granted {granted}"));
        }
        let flow: i64 = index.input.flow.iter().filter(|flow| flow.sale_id == *id).map(|flow| flow.delta).sum();
        if flow != stock {
            found.add("C1", format!("sale {id}: stock is {stock}, its journal says {flow}"));
        }
    }
    let unknown = index.input.orders.iter().filter(|order| !index.sales.contains_key(order.sale_id.as_str()));
    for order in unknown {
        found.add("C1", format!("order {} is of sale {}, which does not exist", order.request_id, order.sale_id));
    }
}

fn in_samples(index: &Index<'_>, found: &mut Found) {
    for sample in &index.input.samples {
        let Some(sale) = &sample.sale else { continue };
        let (granted, stock, ordered) = (sample.granted, sample.stock, sample.ordered);
        if ordered > granted || stock < 0 || stock + ordered != granted {
            found.add(
                "C1",
                format!("sale {sale} at {} ms: granted {granted}, stock {stock}, ordered {ordered}", sample.at_ms),
            );
        }
    }
}

/// Only for sales that got units once: after a top-up "sold out" may have been true before it.
fn sold_out(index: &Index<'_>, found: &mut Found) {
    let answered: BTreeSet<&str> = index
        .input
        .attempts
        .iter()
        .filter(|attempt| attempt.result == "sold_out")
        .map(|attempt| attempt.sale.as_str())
        .collect();
    for sale in answered.into_iter().filter_map(|id| index.sales.get(id)) {
        let grants = index.input.grants.iter().filter(|grant| grant.sale_id == sale.sale_id).count();
        let missing = index.never_accepted_units(sale);
        if grants <= 1 && missing > 0 {
            found.add(
                "C5",
                format!(
                    "sale {}: sold out was answered, but {missing} of {} units were never accepted",
                    sale.sale_id, sale.granted
                ),
            );
        }
    }
}
