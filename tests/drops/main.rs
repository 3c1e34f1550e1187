//! The named drops of the real world. Each is a file (`tests/drops/*.json`) as a shop would write it: the shape of `seckill drop create
//! --file`, with times of a day; `file.rs` moves them to now, hours become seconds. Each is a test by name: servers and one process of
//! each role, the drop created by the command line, a crowd over HTTP with more buyers than units, cheaters by all tricks that its
//! file invites to, and every role killed by SIGKILL and started again meanwhile. At rest a checker judges ([`checker`]).
//!
//! In a sale with a line buyers enter it, leave, and take or leave what they are offered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod accounts;
mod checker;
mod client;
mod crowd;
mod file;
mod play;
mod report;
mod roles;
mod rows;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
mod target;
mod tricks;

use report::Report;
use std::path::Path;
use support::basics::{files, raw_commands, time};

/// `DROPS_SEED`: it decides when processes die, who comes when, and who pays.
fn seed() -> u64 {
    let asked = std::env::var("DROPS_SEED").ok().filter(|seed| !seed.is_empty());
    asked.map_or(20_261_129, |seed| seed.parse().unwrap_or_else(|_| panic!("DROPS_SEED={seed}: a number")))
}

/// Fails when a rule is broken.
fn is_green(report: &Report) {
    let file = report.write();
    assert!(report.violations.is_empty(), "{:#?}\nreport: {}", report.violations, file.display());
}

/// Plays a drop of a name, and fails when it proves too little.
fn holds(name: &str, tricked: &[&str]) {
    time::run_waiting(async {
        let report = play::on_a_system_of_its_own(name, seed(), "").await;
        is_green(&report);
        assert!(report.kills.len() == 4, "each role has to die: {:?}", report.kills);
        let accepted = i64::try_from(report.accepted).expect("few");
        assert!(accepted * 3 >= report.units, "{accepted} requests were accepted for {} units", report.units);
        // Some units went by the line, where there is one.
        assert!(report.offers >= 3 || !tricked.contains(&tricks::CLICKS), "{} offers", report.offers);
        for trick in tricked {
            let tally = report.tricks.get(trick).copied().unwrap_or_default();
            assert!(tally.refused >= 3, "{trick}: {tally:?}");
        }
    });
}

#[test]
fn sneaker_in_14_sizes_one_a_person() {
    holds(
        "sneaker",
        &[tricks::AT_ONCE, tricks::ACCOUNTS, tricks::PERSONS, tricks::ENCODED, tricks::TOKENS, tricks::EARLY],
    );
}

#[test]
fn members_ten_minutes_earlier_with_a_fifth_of_the_units() {
    holds("members", &[tricks::PASSES, tricks::EARLY, tricks::LATE, tricks::TOKENS]);
}

#[test]
fn app_share_that_rolls_over_to_all() {
    holds("app", &[tricks::PASSES, tricks::LATE, tricks::ENCODED]);
}

#[test]
fn rounds_at_three_times_of_a_day() {
    holds("rounds", &[tricks::EARLY, tricks::LATE, tricks::TOKENS]);
}

#[test]
fn colours_at_two_prices() {
    holds("colours", &[tricks::PRICE, tricks::AT_ONCE, tricks::ORDERS]);
}

#[test]
fn samples_1000_of_them_free() {
    holds("samples", &[tricks::TOKENS, tricks::QUANTITY, tricks::EARLY]);
}

#[test]
fn staff_allocation_by_pass() {
    holds("staff", &[tricks::PASSES, tricks::QUANTITY]);
}

#[test]
fn bundle_of_two_products_two_a_buyer() {
    holds("bundle", &[tricks::AT_ONCE, tricks::QUANTITY, tricks::ENCODED]);
}

#[test]
fn hidden_until_it_is_published_and_by_token() {
    holds("hidden", &[tricks::HIDDEN, tricks::NO_TOKEN, tricks::REPEATS]);
}

#[test]
fn tickets_four_a_person_over_two_nights() {
    holds("tickets", &[tricks::ACCOUNTS, tricks::PERSONS, tricks::QUANTITY, tricks::AT_ONCE]);
}

#[test]
fn raffle_in_three_cities_one_a_person() {
    holds("raffle", &[tricks::CLICKS, tricks::ENTRIES, tricks::UNTIMELY, tricks::FOREIGN, tricks::PERSONS]);
}

#[test]
fn waitlist_after_the_sell_out() {
    holds("waitlist", &[tricks::CLICKS, tricks::ENTRIES, tricks::UNTIMELY, tricks::FOREIGN, tricks::QUANTITY]);
}

/// Neither the script nor the database counts the limit of a drop: some get around it, and the checker says who.
#[test]
fn a_system_that_does_not_count_over_the_sales_of_a_drop_goes_red() {
    time::run_waiting(async {
        let report = play::on_a_system_of_its_own("bundle", seed(), "drop_counted=return;drop_guard=return").await;
        let found: Vec<_> = report.violations.iter().filter(|found| found.rule == "LIMIT").collect();
        assert!(found.iter().any(|found| found.what.contains("of the drop")), "{:#?}", report.violations);
        eprintln!(
            "without the drop's limit: {} violations, {} of them: {}",
            report.violations.len(),
            found.len(),
            found[0].what
        );
    });
}

/// Offers are purchased before their requests are in their entries: the checker says which orders are of none.
#[test]
fn a_system_that_writes_no_request_into_an_entry_goes_red() {
    time::run_waiting(async {
        let report = play::on_a_system_of_its_own("waitlist", seed(), "offer_request_first=return").await;
        let of = |rule: &str| report.violations.iter().filter(|found| found.rule == rule).count();
        assert!(of("OFFER") > 0 && of("UNKNOWN") > 0 && of("CLICK") > 0, "{:#?}", report.violations);
        eprintln!("without requests in entries: {} violations, {} of OFFER", report.violations.len(), of("OFFER"));
    });
}

/// `make drop NAME=sneaker`: on the stack of `make run`, which lives on. A name, or a path with a slash.
#[test]
#[ignore = "needs a running stack: make drop"]
fn one_drop_on_the_stack_of_make_run() {
    time::run_waiting(async {
        let name = std::env::var("DROP_NAME").ok().filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| panic!("DROP_NAME: one of {}, or a path", file::names().join(", ")));
        let folder = std::env::var("DROP_STACK").unwrap_or_else(|_| ".seckill".to_owned());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        is_green(&play::on_the_stack(&folder, &name, seed()).await);
    });
}
