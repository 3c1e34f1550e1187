//! Many lines: runs with settings that bring requests to other cells of the tables, one after the other, until their trace has the
//! lines that were asked for (`make traces`). Every line of each has to be explained, and every request has to be a run of the model.
//!
//! Output: `target/chaos/traces-SEED.md`: each run, and which cells were used how often, or why they cannot be.

use crate::run::{self, Orders};
use crate::time::run_waiting;
use crate::traces::Cells;
use crate::{asked, report, seeds, settings};
use std::fmt::Write;

/// Settings of a run, and what they are for.
struct Variant {
    name: &'static str,
    set: &'static [&'static str],
}

const VARIANTS: [Variant; 4] = [
    Variant { name: "as always", set: &[] },
    Variant { name: "few tries: what fails is parked", set: &["p3_relay.attempts_max=2", "p4_persist.attempts_max=3"] },
    Variant { name: "one try", set: &["p3_relay.attempts_max=1", "p4_persist.attempts_max=1"] },
    Variant {
        name: "P5 comes early, and relays take over soon",
        set: &["p3_relay.confirm_timeout_ms=500", "p3_relay.claim_idle_ms=1500", "p5_reconcile.window_ms=1600"],
    },
];

/// Lines of a minute, at least: a run with fewer proves too little to go on for hours.
const LINES_A_MINUTE_MIN: usize = 1_000;

#[test]
fn the_lines_of_many_runs_are_explained() {
    let Some(wanted) = asked::<usize>("CHAOS_LINES") else { return };
    run_waiting(async {
        let seed = seeds(&[1])[0];
        let all_ms = asked::<u64>("CHAOS_MINUTES").unwrap_or(20) * 60_000;
        let length_ms = all_ms / VARIANTS.len() as u64;
        let (mut lines, mut cells, mut text) = (0, Cells::default(), String::new());
        for (round, Variant { name, set }) in (0..).zip(VARIANTS.iter().cycle()) {
            // Of two neighbours each outbox has one.
            let seed = seed.wrapping_add(round);
            let set = settings(seed).into_iter().chain(set.iter().map(|set| (*set).to_owned())).collect();
            let finished = run::run(Orders { seed, length_ms, repairs: true, set, off: None }).await;
            report::write(&finished);
            writeln!(text, "- {name}: {}", finished.summary()).expect("text");
            eprintln!("{name}: {}", finished.summary());
            assert!(finished.is_green(), "{}", finished.complaints());
            let few =
                finished.traces.lines < LINES_A_MINUTE_MIN * usize::try_from(length_ms / 60_000).expect("a number");
            assert!(!few, "{name}: only {} lines", finished.traces.lines);
            lines += finished.traces.lines;
            cells.merge(&finished.traces.cells);
            finished.deployment.finish().await;
            if lines >= wanted && round + 1 >= VARIANTS.len() as u64 {
                break;
            }
        }
        let said = format!(
            "{lines} lines are explained; {} cells were used; never: {}",
            cells.seen(),
            cells.unseen().join(", ")
        );
        eprintln!("{said}");
        let text = format!("# Lines of many runs, seed {seed}\n\n{said}\n\n{text}\n{}", cells.table());
        std::fs::write(report::folder().join(format!("traces-{seed}.md")), text).expect("written");
        let surprises = cells.surprises();
        assert!(surprises.is_empty(), "these have lines, and should have none: {}", surprises.join("; "));
    });
}
