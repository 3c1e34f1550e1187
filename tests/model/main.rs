//! The protocol of P2 to P5, and the life of orders, as models, searched exhaustively with stateright: every order of steps and every place of a
//! bounded number of faults. Needs no server. `docs/model.md` says what it covers and what not.
//!
//! `SECKILL_MODEL=bigger` adds larger configurations (`make model`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking and report what they searched"
)]

mod actions;
mod against_the_code;
mod beside;
mod books;
mod drops;
mod events;
mod giver;
mod laws_of_the_books;
mod lines;
mod neighbours;
mod operator;
mod orders;
mod persist;
mod product;
mod product_table;
mod product_table_beside;
mod product_table_lines;
mod properties;
mod rebuild;
mod reconcile;
mod relay;
mod repeats;
mod report;
mod reserve;
mod rows;
mod rows_of_the_books;
mod search;
mod setup;
mod shared_cases;
mod sheet;
mod short;
mod state;
mod transfers;
mod webhooks;

use actions::REACHED;
use orders::{CELLS, OrdersSetup};
use properties::SIGHTS;
use rows::{Configuration, Expected, Mutant};
use search::{Complete, Found, Lacking, Searched, find_breaks, search, side_by_side};
use seckill::domain::order_life::{OrderEvent, OrderState};
use seckill::domain::states::{self, RequestEvent, State, Transition, next};
use setup::Setup;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::sync::LazyLock;
use transfers::TransfersSetup;

/// Tries that fit into a state: what a search keeps is small.
const TRIES_MAX: u8 = setup::TRIES;
/// Deliveries of one message that fit into a state.
const CONSUMERS_MAX: usize = 2;

/// Searched once, for all tests of this file.
static CONFIGURATIONS: LazyLock<Vec<(Configuration, Found)>> = LazyLock::new(|| searched(rows::configurations()));

/// Each mutation without P5 and with it.
static MUTANTS: LazyLock<Vec<(Mutant, [Option<Found>; 2])>> = LazyLock::new(|| {
    let rows = rows::mutants();
    let found = side_by_side(rows.len(), |at| {
        let Mutant { setup, without_p5, with_p5, .. } = rows[at];
        [(without_p5, false), (with_p5, true)].map(|(expected, reconcile)| match expected {
            Expected::Breaks(laws) => Some(find_breaks(Setup { reconcile, ..setup }, laws)),
            Expected::Heals => Some(search(Setup { reconcile, ..setup })),
            Expected::NotThere => None,
        })
    });
    rows.into_iter().zip(found).collect()
});

/// The life of orders: what has to hold.
static ORDERS: LazyLock<Vec<(Complete<OrdersSetup>, Found)>> = LazyLock::new(|| complete(orders::configurations()));

/// The same with one mechanism left out.
static ORDERS_WITHOUT: LazyLock<Vec<(Lacking<OrdersSetup>, Found)>> = LazyLock::new(|| lacking(orders::without()));

/// Two buckets.
static TRANSFERS: LazyLock<Vec<(Complete<TransfersSetup>, Found)>> =
    LazyLock::new(|| complete(transfers::configurations()));

/// The same with one mechanism left out.
static TRANSFERS_WITHOUT: LazyLock<Vec<(Lacking<TransfersSetup>, Found)>> =
    LazyLock::new(|| lacking(transfers::without()));

fn complete<M: Searched + Display>(rows: Vec<Complete<M>>) -> Vec<(Complete<M>, Found)> {
    let found = side_by_side(rows.len(), |at| search(rows[at].setup));
    let results: Vec<_> = rows.into_iter().zip(found).collect();
    for (Complete { name, setup, .. }, found) in &results {
        eprintln!("{name}, {setup}: {} states in {:.1} s", found.states, found.took.as_secs_f64());
    }
    results
}

fn lacking<M: Searched>(rows: Vec<Lacking<M>>) -> Vec<(Lacking<M>, Found)> {
    let found = side_by_side(rows.len(), |at| find_breaks(rows[at].setup, rows[at].breaks));
    rows.into_iter().zip(found).collect()
}

/// Every search broke exactly what it is expected to break, and did not end early.
fn judge_complete<M: Searched + Display>(results: &[(Complete<M>, Found)]) {
    for (Complete { name, setup, states_min, breaks }, found) in results {
        let broken: BTreeSet<_> = found.broken.keys().copied().collect();
        assert_eq!(broken, breaks.iter().copied().collect(), "{name}, {setup}: {:#?}", found.broken);
        assert!(found.states >= *states_min, "{name}, {setup}: only {} states", found.states);
    }
}

/// Each mechanism breaks its laws when it is left out.
fn judge_lacking<M: Searched>(results: &[(Lacking<M>, Found)]) {
    let mut wrong = Vec::new();
    for (Lacking { name, breaks, .. }, found) in results {
        let broken: BTreeSet<_> = found.broken.keys().copied().collect();
        if broken != breaks.iter().copied().collect() {
            wrong.push(format!("{name}: it breaks {broken:?}, not {breaks:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn judge_sights<M: Searched>(results: &[(Complete<M>, Found)]) {
    let seen: BTreeSet<_> = results.iter().flat_map(|(_, found)| found.seen.iter().copied()).collect();
    let wanted: BTreeSet<_> = M::SIGHTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(seen, wanted);
}

fn searched(rows: Vec<Configuration>) -> Vec<(Configuration, Found)> {
    let found = side_by_side(rows.len(), |at| search(rows[at].setup));
    let results: Vec<_> = rows.into_iter().zip(found).collect();
    for (Configuration { name, setup, .. }, found) in &results {
        eprintln!("{name}, {setup}: {} states in {:.1} s", found.states, found.took.as_secs_f64());
    }
    results
}

/// Every row broke exactly what it is expected to break, saw what it must see, and did not end early.
fn judge(results: &[(Configuration, Found)]) {
    let laws = |broken: &mut dyn Iterator<Item = &'static str>| broken.collect::<BTreeSet<_>>();
    let unexpected = |(row, found): &&(Configuration, Found)| {
        laws(&mut found.broken.keys().copied()) != laws(&mut row.breaks.iter().copied())
    };
    let named = |(row, found): &(Configuration, Found)| format!("{}, {}: {:#?}", row.name, row.setup, found.broken);
    let wrong: Vec<_> = results.iter().filter(unexpected).map(named).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (Configuration { name, setup, states_min, sees, .. }, found) in results {
        assert!(found.states >= *states_min, "{name}, {setup}: only {} states", found.states);
        for sight in sees.concat() {
            assert!(found.seen.contains(&sight), "{name}, {setup}: never seen: {sight}");
        }
    }
}

#[test]
fn every_law_holds_wherever_the_guarantees_say_so() {
    judge(&CONFIGURATIONS);
    if std::env::var_os("SECKILL_MODEL").is_some() {
        judge(&searched(rows::bigger()));
    }
}

#[test]
fn every_interesting_situation_is_reached() {
    let seen: BTreeSet<_> = CONFIGURATIONS.iter().flat_map(|(_, found)| &found.seen).collect();
    assert_eq!(seen.len(), SIGHTS.len(), "only {seen:?}");
}

#[test]
fn every_state_that_the_transition_table_leads_to_is_reached() {
    assert!(!CONFIGURATIONS.is_empty());
    let reached = REACHED.lock().unwrap().clone();
    let targets = states::all().flat_map(|state| RequestEvent::ALL.map(|event| next(state, event)));
    let targets = targets.filter_map(|step| if let Transition::To(to) = step { Some(to) } else { None });
    let missing: BTreeSet<_> = targets.filter(|to| !reached.contains(to)).map(State::code).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}

#[test]
fn every_mutation_breaks_its_law() {
    for (Mutant { name, without_p5, with_p5, .. }, found) in MUTANTS.iter() {
        for ((expected, found), p5) in [*without_p5, *with_p5].into_iter().zip(found).zip(["without P5", "with P5"]) {
            let broken: Vec<_> = found.iter().flat_map(|found| found.broken.keys().copied()).collect();
            match expected {
                Expected::Breaks(laws) => assert_eq!(broken, laws, "{name}, {p5}"),
                Expected::Heals | Expected::NotThere => assert!(broken.is_empty(), "{name}, {p5}: {broken:?}"),
            }
        }
        let bites = [*without_p5, *with_p5].iter().any(|expected| matches!(expected, Expected::Breaks(_)));
        assert!(bites, "{name} is expected to break nothing");
    }
}

#[test]
fn the_laws_of_orders_hold() {
    judge_complete(&ORDERS);
    if std::env::var_os("SECKILL_MODEL").is_some() {
        judge_complete(&complete(orders::bigger()));
    }
}

#[test]
fn every_interesting_situation_of_orders_is_reached() {
    judge_sights(&ORDERS);
}

#[test]
fn every_cell_of_the_table_of_orders_is_reached() {
    assert!(!ORDERS.is_empty());
    let reached = CELLS.lock().unwrap().clone().unwrap_or_default();
    let cells = OrderState::ALL.into_iter().flat_map(|state| OrderEvent::ALL.map(|event| (state, event)));
    let missing: Vec<_> = cells.filter(|cell| !reached.contains(cell)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}

#[test]
fn every_mutation_of_the_life_of_orders_breaks_its_law() {
    judge_lacking(&ORDERS_WITHOUT);
}

#[test]
fn the_laws_of_two_buckets_hold() {
    judge_complete(&TRANSFERS);
}

#[test]
fn every_interesting_situation_of_two_buckets_is_reached() {
    judge_sights(&TRANSFERS);
}

#[test]
fn every_mutation_of_two_buckets_breaks_its_law() {
    judge_lacking(&TRANSFERS_WITHOUT);
}

#[test]
fn the_document_says_what_was_computed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/model.md");
    let computed = report::markdown(&CONFIGURATIONS, &MUTANTS)
        + &report::section(orders::HEAD, &ORDERS, orders::REACHED, &ORDERS_WITHOUT)
        + &report::section(transfers::HEAD, &TRANSFERS, "each of these", &TRANSFERS_WITHOUT)
        + &product::section()
        + &beside::NEIGHBOURS.section(neighbours::HEAD)
        + &beside::EVENTS.section(events::HEAD)
        + &beside::WEBHOOKS.section(webhooks::HEAD)
        + &beside::DROPS.section(drops::HEAD)
        + &beside::LINES.section(lines::HEAD)
        + against_the_code::SECTION;
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &computed).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == computed, "UPDATE_DOCS=1 cargo test --test model writes docs/model.md");
}
