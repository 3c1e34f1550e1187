//! Paths through the protocol's model, played on the real thing: the real scripts, tables and queues, one step at a time, and
//! both states compared after each step. `docs/model.md` says what that covers and what it cannot see.
//!
//! `GENERATED_PATHS` and `GENERATED_SEED` say how many paths and which; `GENERATED_ONLY` names a configuration (`make generated`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking and report what they played"
)]

// The model's own files: what is played is what is searched.
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../model/actions.rs"]
mod actions;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../model/books.rs"]
mod books;
#[path = "../model/giver.rs"]
mod giver;
#[path = "../model/laws_of_the_books.rs"]
mod laws_of_the_books;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../model/lines/mod.rs"]
mod lines;
#[path = "../model/operator.rs"]
mod operator;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../model/orders/mod.rs"]
mod orders;
#[path = "../model/persist.rs"]
mod persist;
#[path = "../model/properties.rs"]
mod properties;
#[path = "../model/rebuild.rs"]
mod rebuild;
#[path = "../model/reconcile.rs"]
mod reconcile;
#[path = "../model/relay.rs"]
mod relay;
#[path = "../model/repeats.rs"]
mod repeats;
#[path = "../model/reserve.rs"]
mod reserve;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../model/rows.rs"]
mod rows;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../model/rows_of_the_books.rs"]
mod rows_of_the_books;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../model/search.rs"]
mod search;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../model/setup.rs"]
mod setup;
#[path = "../model/sheet.rs"]
mod sheet;
#[path = "../model/short.rs"]
mod short;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../model/state.rs"]
mod state;

#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../model/transfers/mod.rs"]
mod transfers;

mod configurations;
mod controls;
mod play;
mod run;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
mod walks;

use configurations::Configuration;
use play::{BucketsStage, LinesStage, Played, ShopStage, Stage};
use run::Results;
use support::world::run as in_turn;
use tokio::sync::Mutex;

/// Tries that fit into a state.
const TRIES_MAX: u8 = setup::TRIES;
/// Deliveries of one message that fit into a state.
const CONSUMERS_MAX: usize = 2;

/// Sets of servers that paths are played on at once.
const STAGES: u64 = 2;
/// Paths of a run without other orders: a minute or two.
const SAMPLE: u64 = 300;
/// From this number of paths on, every kind of step is on one of them.
const WHOLE: u64 = 10_000;
const SEED: u64 = 20_261_127;

/// One run at a time: they share two processors, and a control leaves a mechanism out in the whole process.
static TURN: Mutex<()> = Mutex::const_new(());

fn number(name: &str, usual: u64) -> u64 {
    let read = |text: String| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}"));
    std::env::var(name).map_or(usual, read)
}

/// Plays the configurations of one model whose name has the words of `GENERATED_ONLY`. Returns the differences.
async fn play_all<M: Played>(stages: &mut [M::Stage], rows: &[Configuration<M>]) {
    let (seed, paths) = (number("GENERATED_SEED", SEED), number("GENERATED_PATHS", SAMPLE));
    let only = std::env::var("GENERATED_ONLY").unwrap_or_default();
    let (mut differences, mut missing) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| row.name.contains(&only)) {
        let count = paths * row.share / 100;
        let results = run::run(stages, row, (seed, usize::try_from(count.max(1)).unwrap(), paths >= WHOLE)).await;
        say(row.name, &results);
        differences.extend(results.differences);
        missing.extend(results.missing.into_iter().map(|kind| format!("{}: {kind:?}", row.name)));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(paths < WHOLE || missing.is_empty(), "no path has these steps: {missing:#?}");
}

fn say(name: &str, results: &Results) {
    let seconds = results.took.as_secs_f64();
    let searched = results.worlds.map_or_else(|| "a sample".to_owned(), |worlds| format!("{worlds} worlds searched"));
    eprintln!(
        "{name}: {} paths, {} steps in {seconds:.1} s ({:.1} paths/s); {} kinds of steps, {} missing, {searched}; {} differ",
        results.paths,
        results.steps,
        results.paths as f64 / seconds,
        results.kinds,
        results.missing.len(),
        results.differences.len()
    );
}

#[test]
fn the_servers_do_what_the_model_of_the_protocol_does() {
    in_turn(async {
        let _turn = TURN.lock().await;
        let mut stages = Vec::new();
        for worker in 0..number("GENERATED_STAGES", STAGES) {
            stages.push(Stage::new(worker).await);
        }
        play_all(&mut stages, &configurations::of_the_protocol()).await;
    });
}

#[test]
fn the_servers_do_what_the_model_of_orders_does() {
    in_turn(async {
        let _turn = TURN.lock().await;
        let mut stages = Vec::new();
        for worker in 0..number("GENERATED_STAGES", STAGES) {
            stages.push(ShopStage::new(worker).await);
        }
        play_all(&mut stages, &configurations::of_orders()).await;
    });
}

#[test]
fn the_servers_do_what_the_model_of_two_buckets_does() {
    in_turn(async {
        let _turn = TURN.lock().await;
        let mut stages = [BucketsStage::new().await];
        play_all(&mut stages, &configurations::of_transfers()).await;
    });
}

#[test]
fn the_servers_do_what_the_model_of_lines_does() {
    in_turn(async {
        let _turn = TURN.lock().await;
        let mut stages = Vec::new();
        for worker in 0..number("GENERATED_STAGES", STAGES) {
            stages.push(LinesStage::new(worker).await);
        }
        play_all(&mut stages, &configurations::of_lines()).await;
    });
}

#[test]
fn a_mechanism_that_is_left_out_is_a_difference() {
    in_turn(async {
        let _turn = TURN.lock().await;
        controls::each_is_noticed().await;
    });
}

#[test]
fn a_mechanism_of_lines_that_is_left_out_is_a_difference() {
    in_turn(async {
        let _turn = TURN.lock().await;
        controls::each_of_lines_is_noticed().await;
    });
}

#[test]
fn the_document_names_each_configuration() {
    let page = std::fs::read_to_string("docs/model.md").expect("the page");
    let names = configurations::of_the_protocol().iter().map(|row| row.name).collect::<Vec<_>>();
    let orders = configurations::of_orders().iter().map(|row| row.name).collect::<Vec<_>>();
    let transfers = configurations::of_transfers().iter().map(|row| row.name).collect::<Vec<_>>();
    let lines = configurations::of_lines().iter().map(|row| row.name).collect::<Vec<_>>();
    for name in [names, orders, transfers, lines].concat() {
        assert!(page.contains(&format!("| {name} |")), "docs/model.md does not name {name}");
    }
}
