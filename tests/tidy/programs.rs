//! How tests start the program: by one function, which gives it neither the settings nor the local stack of this checkout.

use super::{code, files, no_complaints};

#[test]
fn only_one_place_of_the_tests_starts_the_program() {
    const PLACE: &str = "tests/support/basics/files.rs";
    let mut complaints = Vec::new();
    for (file, text) in files("tests", "rs").iter().filter(|(file, _)| file != PLACE) {
        let starts = code(text).filter(|(_, line)| line.contains("Command::new(env!(\"CARGO_BIN_EXE_"));
        complaints.extend(starts.map(|(at, _)| format!("{file}:{at}: use seckill() of {PLACE}")));
    }
    no_complaints(&complaints);
}
