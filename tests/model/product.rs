//! What each mutation of the models is in the product: the switch of a test build that leaves out the same mechanism, and the
//! test that notices it. `docs/model.md` prints it.

use crate::product_table::InProduct::{self, None, Receiver, Switch};
use crate::product_table::{ORDERS, OTHER_NET, PROTOCOL, TRANSFERS};
use crate::product_table_beside::{DROPS, EVENTS, NEIGHBOURS, WEBHOOKS};
use crate::product_table_lines::LINES;
use crate::rows::{self, Mutant};
use crate::search::Lacking;
use crate::{drops, events, lines, neighbours, orders, transfers, webhooks};
use std::collections::BTreeSet;
use std::path::Path;

/// A row of the models that leaves a mechanism out, as the product has it.
struct Row {
    name: &'static str,
    in_product: Option<InProduct>,
}

fn find<M: PartialEq>(table: &[(M, InProduct)], wanted: &M) -> Option<InProduct> {
    table.iter().find(|(mutation, _)| mutation == wanted).map(|(_, in_product)| *in_product)
}

/// Every mutation of the models. What is left out by a setting of a server or of the model's size is none of the product.
fn all() -> Vec<Row> {
    let protocol = rows::mutants().into_iter().filter_map(|Mutant { name, setup, .. }| {
        let mutation = setup.mutation?;
        Some(Row { name, in_product: find(PROTOCOL, &mutation) })
    });
    let orders = orders::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let lacking = setup.lacking?;
        Some(Row { name, in_product: find(ORDERS, &lacking) })
    });
    let transfers = transfers::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let absent = setup.absent?;
        Some(Row { name, in_product: find(TRANSFERS, &absent) })
    });
    let events = events::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let absent = setup.absent?;
        Some(Row { name, in_product: find(EVENTS, &absent) })
    });
    let webhooks = webhooks::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let absent = setup.absent?;
        Some(Row { name, in_product: find(WEBHOOKS, &absent) })
    });
    let neighbours = neighbours::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let absent = setup.absent?;
        Some(Row { name, in_product: find(NEIGHBOURS, &absent) })
    });
    let drops = drops::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let absent = setup.absent?;
        Some(Row { name, in_product: find(DROPS, &absent) })
    });
    let lines = lines::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let absent = setup.absent?;
        Some(Row { name, in_product: find(LINES, &absent) })
    });
    let first = protocol.chain(orders).chain(transfers);
    first.chain(events).chain(webhooks).chain(neighbours).chain(drops).chain(lines).collect()
}

/// This share of the mutations has a switch and a test that notices it.
const SWITCHED_PERCENT_MIN: usize = 95;

const HEAD: &str = "
## Mutations of the product

What a row above leaves out of a model, a test build leaves out of the product: `FAILPOINTS=\"<switch>=return\"`
([`faults`](../src/faults.rs)). The test beside it finds the harm while the switch is on, and none while it is off;
what finds it is the audit, what is in the servers in the end, or what receivers got. A rule *of the receiver* is left
out by the test's own one.

| left out | switch | noticed by |
|---|---|---|
";

/// The section of `docs/model.md`.
pub fn section() -> String {
    let mut text = HEAD.to_owned();
    for Row { name, in_product } in all() {
        let [switch, noticed] = match in_product {
            Some(Switch(mechanism, test)) => [format!("`{}`", mechanism.code()), format!("`{test}`")],
            Some(Receiver(test)) => ["of the receiver".to_owned(), format!("`{test}`")],
            Some(None(reason)) => ["none".to_owned(), reason.to_owned()],
            Option::None => ["–".to_owned(), "–".to_owned()],
        };
        text.push_str(&format!("| {name} | {switch} | {noticed} |\n"));
    }
    let (name, mechanism, test) = OTHER_NET;
    text + &format!("| {name} | `{}` | `{test}` |\n", mechanism.code())
}

#[test]
fn every_mutation_has_a_switch_in_the_product_or_a_reason() {
    let rows = all();
    let missing: Vec<_> = rows.iter().filter(|row| row.in_product.is_none()).map(|row| row.name).collect();
    assert!(missing.is_empty(), "neither a switch nor a reason: {missing:?}");
    let first = PROTOCOL.len() + ORDERS.len() + TRANSFERS.len();
    let beside = EVENTS.len() + WEBHOOKS.len() + NEIGHBOURS.len() + DROPS.len() + LINES.len();
    assert_eq!(rows.len(), first + beside, "each has one row");
    let switched = rows.iter().filter(|row| matches!(row.in_product, Some(Switch(..) | Receiver(_)))).count();
    assert!(switched * 100 >= rows.len() * SWITCHED_PERCENT_MIN, "only {switched} of {} have a switch", rows.len());
}

/// The names of all tests.
fn tests(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            tests(&entry, names);
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&entry).unwrap();
            let lines = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("fn "));
            names.extend(lines.filter_map(|line| Some(line.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn every_test_that_notices_a_mutation_exists() {
    let mut known = BTreeSet::new();
    tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut known);
    for Row { name, in_product } in all() {
        if let Some(Switch(_, test) | Receiver(test)) = in_product {
            assert!(known.contains(test), "{name}: there is no test {test}");
        }
    }
}
