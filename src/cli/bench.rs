//! `seckill bench`: runs `seckill-bench`, a program of its own (`bench/`). This one cannot make load, fill tables or kill.

use super::failure::Failure;
use crate::bench_program::{missing, program};
use crate::config::Layers;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// What `seckill bench-buyers` is called there.
pub(super) const BUYERS: &str = "buyers";

#[derive(Debug, clap::Args)]
pub(super) struct ForwardedArgs {
    /// What seckill-bench takes; --help lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    words: Vec<OsString>,
}

/// Replaces this process, so that signals and the exit code are those of the program. Returns only when it cannot.
pub(super) fn run(
    layers: &Layers,
    data_dir: &Path,
    command: Option<&str>,
    args: &ForwardedArgs,
) -> Result<u8, Failure> {
    let mut bench = Command::new(program());
    if let Ok(seckill) = std::env::current_exe() {
        bench.arg("--seckill").arg(seckill);
    }
    for file in &layers.files {
        bench.arg("--config").arg(file);
    }
    for set in &layers.set {
        bench.arg("--set").arg(set);
    }
    bench.arg("--data-dir").arg(data_dir).args(command).args(&args.words);
    Err(Failure::Failed(missing(&bench.exec())))
}
