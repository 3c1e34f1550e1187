//! C14: what an operator was answered is so. Units are added or withdrawn once under each name and never without being asked for, a cancelled order
//! is cancelled, and a sale that is paused accepts no buyer.

use super::super::Found;
use super::super::index::Index;
use super::super::read::{Act, Attempt};
use std::collections::{BTreeMap, BTreeSet};

/// What the names of the operators' grants begin with.
const ADDED: &str = "more-";

/// What the grants of the operators' withdrawals begin with.
const WITHDRAWN: &str = "withdraw-";

/// Checks C14.
pub fn check(index: &Index<'_>, found: &mut Found) {
    added(index, found);
    withdrawn(index, found);
    for act in index.input.acts.iter().filter(|act| act.act == "cancel" && act.result == "done") {
        let rid = act.about.as_deref().unwrap_or_default();
        let state = index.orders.get(rid).and_then(|order| order.state.as_deref()).unwrap_or("none");
        if state != "CANCELLED" {
            found.add("C14", format!("order {rid}: an operator got cancelled, its state is {state}"));
        }
    }
    paused(index, found);
}

/// Grants, by sale and name.
fn added(index: &Index<'_>, found: &mut Found) {
    let of_operators = index.input.grants.iter().filter(|grant| grant.grant_id.starts_with(ADDED));
    let mut on_record: BTreeMap<(&str, &str), Vec<i64>> = BTreeMap::new();
    for grant in of_operators {
        on_record.entry((&grant.sale_id, &grant.grant_id)).or_default().push(grant.quantity);
    }
    let mut asked: BTreeSet<(&str, &str)> = BTreeSet::new();
    for act in index.input.acts.iter().filter(|act| act.act == "top_up") {
        let (sale, grant) = (act.sale.as_str(), act.about.as_deref().unwrap_or_default());
        asked.insert((sale, grant));
        let units = on_record.get(&(sale, grant)).cloned().unwrap_or_default();
        if act.result == "done" && units != [act.units.unwrap_or(0)] {
            let wanted = act.units.unwrap_or(0);
            found.add("C14", format!("sale {sale}: an operator added {wanted} as {grant}, on record is {units:?}"));
        }
    }
    for (sale, grant) in on_record.keys().filter(|name| !asked.contains(*name)) {
        found.add("C14", format!("sale {sale}: grant {grant} is on record, and no operator asked for it"));
    }
}

/// Withdrawals, by sale and name: on record is what was answered, and nothing that no operator asked for.
fn withdrawn(index: &Index<'_>, found: &mut Found) {
    let acts = || index.input.acts.iter().filter(|act| act.act == "withdraw");
    let name = |act: &Act| format!("{WITHDRAWN}{}", act.about.as_deref().unwrap_or_default());
    let on_record = |sale: &str, grant: &str| -> i64 {
        let grants = index.input.grants.iter().filter(|of| of.sale_id == sale && of.grant_id == grant);
        grants.map(|grant| -grant.quantity).sum()
    };
    for act in acts().filter(|act| act.result == "done") {
        let (sale, grant, taken) = (&act.sale, name(act), act.taken.unwrap_or(0));
        let there = on_record(sale, &grant);
        if there != taken || taken > act.units.unwrap_or(0) {
            let asked = act.units.unwrap_or(0);
            found.add(
                "C14",
                format!("sale {sale}: an operator withdrew {taken} of {asked} as {grant}, on record is {there}"),
            );
        }
    }
    let unasked = index.input.grants.iter().filter(|grant| grant.grant_id.starts_with(WITHDRAWN));
    for grant in unasked.filter(|grant| !acts().any(|act| act.sale == grant.sale_id && name(act) == grant.grant_id)) {
        let (sale, grant) = (&grant.sale_id, &grant.grant_id);
        found.add("C14", format!("sale {sale}: withdrawal {grant} is on record, and no operator asked for it"));
    }
}

/// From the answer of a pause until the resumption begins. An act of unknown end may still be carried out, so a sale is judged only
/// until its first one.
fn paused(index: &Index<'_>, found: &mut Found) {
    let mut of_sales: BTreeMap<&str, Vec<&Act>> = BTreeMap::new();
    for act in index.input.acts.iter().filter(|act| ["pause", "resume"].contains(&act.act.as_str())) {
        of_sales.entry(&act.sale).or_default().push(act);
    }
    for (sale, acts) in of_sales {
        let known: Vec<&Act> = acts.into_iter().take_while(|act| act.result == "done").collect();
        for pause in known.windows(2).filter(|two| two[0].act == "pause" && two[1].act == "resume") {
            let (from_ms, to_ms) = (pause[0].complete_ms, pause[1].invoke_ms);
            let within = |attempt: &&&Attempt| attempt.invoke_ms > from_ms && attempt.complete_ms < to_ms;
            for (rid, attempts) in &index.attempts {
                let buys: Vec<&&Attempt> =
                    attempts.iter().filter(|attempt| attempt.kind == "buy" && attempt.sale == sale).collect();
                let first = buys.iter().min_by_key(|attempt| attempt.invoke_ms);
                // What was tried before may have been accepted before.
                if first.is_some_and(|first| within(first) && first.result == "accepted") {
                    found.add("C14", format!("request {rid} was accepted while sale {sale} was paused"));
                }
            }
        }
    }
}
