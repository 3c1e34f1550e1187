//! The command line of `seckill-bench`. `seckill bench` passes its own on; exit codes are those of `seckill`.

use super::loadgen::LoadError;
use super::loadgen::http::HttpError;
use super::strategies::{BuyersArgs, buyers};
use super::{BenchArgs, plain_process, program, run, rush, shop_crowd};
use clap::{Parser, Subcommand};
use seckill::cli::{Failure, main_of};
use seckill::config::Layers;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(version, bin_name = "seckill bench", max_term_width = 110)]
struct BenchCli {
    /// Configuration file (TOML) on top of the built-in defaults; repeatable, later ones win
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// One setting, on top of everything else; repeatable
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Folder of the local stack, for --here
    #[arg(long, value_name = "DIR", default_value = ".seckill", overrides_with = "data_dir")]
    data_dir: PathBuf,
    /// The `seckill` whose roles are measured [default: beside this program, else in PATH]
    #[arg(long, hide = true)]
    seckill: Option<PathBuf>,
    #[command(flatten)]
    args: BenchArgs,
    #[command(subcommand)]
    command: Option<BenchCommand>,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Buyers in a process of their own, for the benchmark to kill
    #[command(hide = true)]
    Buyers(BuyersArgs),
    /// The plain handler that a purchase is compared with
    #[command(hide = true)]
    Plain {
        /// ip:port
        #[arg(long)]
        listen: String,
        /// Sells by one bare script call a purchase in this Redis, instead of refusing
        #[arg(long, value_name = "URL")]
        redis: Option<String>,
    },
    /// The crowd of the demo shop: its plan on standard input, how far it is on standard output
    #[command(hide = true)]
    Crowd,
    /// Buyers of a rush: their plan on standard input, what they saw on standard output
    #[command(hide = true)]
    Rush,
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    main_of(dispatch)
}

async fn dispatch(cli: BenchCli) -> Result<u8, Failure> {
    let BenchCli { config, set, data_dir, seckill, args, command } = cli;
    let layers = Layers { files: config, set };
    seckill.into_iter().for_each(program::give);
    match command {
        None => run(&layers, &data_dir, &args).await,
        Some(BenchCommand::Buyers(args)) => buyers(&layers, &args).await,
        Some(BenchCommand::Plain { listen, redis }) => plain_process::serve(&layers, &listen, redis.as_deref()).await,
        Some(BenchCommand::Rush) => rush::serve().await,
        Some(BenchCommand::Crowd) => shop_crowd::run().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        BenchCli::command().debug_assert();
    }
}
