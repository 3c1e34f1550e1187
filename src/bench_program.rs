//! Where `seckill-bench` is: the program of its own (`bench/`) that makes load and measures.
//! The program that takes orders in production should not be able to fill tables, kill processes and generate load.

use std::path::PathBuf;

const PROGRAM: &str = "seckill-bench";

/// The one beside this program or a folder above (cargo puts its tests into a folder below), else the one that PATH has.
#[must_use]
pub(crate) fn program() -> PathBuf {
    let this = std::env::current_exe().unwrap_or_default();
    let near = this.ancestors().skip(1).take(2).map(|folder| folder.join(PROGRAM));
    near.into_iter().find(|program| program.is_file()).unwrap_or_else(|| PROGRAM.into())
}

/// What to say when [`program`] cannot be started.
#[must_use]
pub(crate) fn missing(error: &std::io::Error) -> String {
    format!(
        "{PROGRAM} cannot be started: {error}. It is a program of its own, which the image does not have; `cargo build` in \
         seckill's sources makes it; put it beside seckill or into a folder of PATH"
    )
}
