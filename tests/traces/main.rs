//! Trace validation by itself: does the checker explain what it should, and nothing else? The chaos runs and the scenes of
//! `tests/hosts` use it on what they wrote. `SECKILL_TRACES=folder` checks the lines of any run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

// The model that the lines are held against.
include!("../model/protocol.in");

mod checker;

use std::path::Path;

#[test]
fn the_lines_of_a_folder_are_explained() {
    let Some(folder) = std::env::var_os("SECKILL_TRACES") else { return };
    let verdict = checker::check(Path::new(&folder), checker::Losses::default());
    eprintln!("{}\n{}", verdict.summary(), verdict.cells.table());
    assert!(verdict.is_green(), "{}", verdict.complaints().join("\n"));
}
