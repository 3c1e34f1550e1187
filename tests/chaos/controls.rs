//! Negative controls: the same runs with one mechanism left out have to go red, else green runs prove nothing.
//!
//! Input: `CHAOS_CONTROLS`, a list of mechanisms or `all`; by default one. Output: `target/chaos/controls.md`. Here are the
//! mechanisms whose absence shows under faults drawn at random; the rest need a scene of their own and have it in
//! `tests/it` or `tests/system` (`docs/proof.md` names it). P5's repairs are off: what only the ledger can heal is to be seen.

use crate::run::{self, Orders};
use crate::{asked, time};
use seckill::faults::Mechanism;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// What faults at random bring to light.
const SEEN_AT_RANDOM: [Mechanism; 9] = [
    Mechanism::Ledger,
    Mechanism::Mandatory,
    Mechanism::ConfirmFirst,
    Mechanism::AckAfterCommit,
    Mechanism::Rollback,
    Mechanism::ReplayCheck,
    Mechanism::ExpiryCondition,
    Mechanism::GrantOnce,
    Mechanism::OrderEventRow,
];
/// What the lines of the processes show by themselves: each run has to break one of these rules of `tests/traces`.
const SEEN_IN_TRACES: [(Mechanism, &[&str]); 2] =
    [(Mechanism::ConfirmFirst, &["T2"]), (Mechanism::AckAfterCommit, &["T2"])];
/// Always run.
const BY_DEFAULT: [Mechanism; 1] = [Mechanism::AckAfterCommit];
/// Length of one run, and how many a control may take.
const LENGTH_MS: u64 = 20_000;
const RUNS_MAX: u32 = 6;

fn wanted() -> Vec<Mechanism> {
    let Some(wanted) = asked::<String>("CHAOS_CONTROLS") else { return BY_DEFAULT.to_vec() };
    if wanted == "all" {
        return SEEN_AT_RANDOM.to_vec();
    }
    let named = |code: &str| *Mechanism::ALL.iter().find(|known| known.code() == code).expect(code);
    wanted.split(',').map(named).collect()
}

/// Runs until something is found; the rules that were broken and what it took.
async fn search(off: Mechanism) -> Option<String> {
    for attempt in 1..=RUNS_MAX {
        let (seed, begun) = (u64::from(attempt), Instant::now());
        let orders = Orders { seed, length_ms: LENGTH_MS, repairs: false, set: Vec::new(), off: Some(off) };
        let finished = run::run(orders).await;
        eprintln!("{}: {}", off.code(), finished.summary());
        let red = !finished.verdict.is_green();
        let traced = finished.traces.rules();
        for (_, rules) in SEEN_IN_TRACES.iter().filter(|(of, _)| *of == off) {
            assert!(rules.iter().all(|rule| traced.contains(rule)), "{}: the lines show only {traced:?}", off.code());
        }
        let found = format!(
            "| `{}` | {} | {} | {attempt} | {} | {} |",
            off.code(),
            finished.verdict.rules().join(", "),
            traced.join(", "),
            begun.elapsed().as_secs(),
            finished.verdict.violations.len()
        );
        // Red is what was wanted here: the folder is not needed.
        finished.deployment.finish().await;
        if red {
            return Some(found);
        }
    }
    None
}

#[test]
fn a_run_without_a_mechanism_goes_red() {
    time::run_waiting(async {
        let mut table =
            "| left out | rules broken | by its lines | runs | seconds of the last | findings |\n|---|---|---|---|---|---|\n".to_owned();
        let mut missed = Vec::new();
        for off in wanted() {
            match search(off).await {
                Some(row) => writeln!(table, "{row}").expect("text"),
                None => missed.push(off.code()),
            }
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("chaos");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("controls.md"), &table).expect("written");
        eprintln!("{table}");
        assert!(missed.is_empty(), "not found out: {missed:?}");
    });
}
