//! Processes whose time of day is wrong, by libfaketime. Their waiting goes on as before.

use std::process::Command;

/// Variables under which a process reads the time with this offset, as libfaketime writes it ("+2h", "-20s").
pub fn offset_by(offset: &str) -> [(&'static str, String); 3] {
    [("LD_PRELOAD", library()), ("FAKETIME", offset.to_owned()), ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned())]
}

/// The library that the command `faketime` would preload.
fn library() -> String {
    let output = Command::new("faketime").args(["-f", "+0s", "env"]).output().expect("the program faketime");
    let env = String::from_utf8(output.stdout).expect("text");
    let preload = env.lines().find_map(|line| line.strip_prefix("LD_PRELOAD="));
    preload.expect("faketime preloads something").to_owned()
}
