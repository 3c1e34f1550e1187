//! Where `seckill` is, whose roles are measured.

use seckill::cli::Failure;
use std::path::PathBuf;
use std::sync::OnceLock;

static GIVEN: OnceLock<PathBuf> = OnceLock::new();

/// Remembers what `--seckill` says.
pub(crate) fn give(program: PathBuf) {
    // Only the first call counts, and there is one.
    drop(GIVEN.set(program));
}

/// The program that `--seckill` names, else `seckill` beside this program, else in PATH.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    if let Some(given) = GIVEN.get() {
        return Ok(given.clone());
    }
    let beside = std::env::current_exe()?.with_file_name("seckill");
    Ok(if beside.exists() { beside } else { "seckill".into() })
}
