//! The command line: `seckill [--config FILE] [--set KEY=VALUE] [--role ROLE]…` runs roles, subcommands do one thing.
//!
//! The only part of the program that prints to standard output. Exit codes: 0 fine, 1 failed, 2 inconsistent, 64 usage or
//! configuration error.

mod act;
mod audit;
mod bench;
pub mod context;
mod dev;
mod dlq;
mod doctor;
mod finding;
mod order;
pub mod output;
mod run;
mod sale;
mod token;

use crate::config::{ConfigError, Layers};
use crate::roles::{Role, RoleError};
use clap::{Parser, Subcommand};
pub use run::on_signal;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Start here:
  seckill dev                                  everything on this machine, with a demo sale
  seckill sale create --id s1 --product p1 --title 'One phone' --stock 1000 --limit 1 \\
      --starts-at 2026-01-01T10:00:00Z --ends-at 2026-01-01T12:00:00Z --warm
  seckill audit                                is anything lost, doubled or oversold?

In production, one or more processes of each role on the same servers:
  seckill migrate                              once, before the first start and after an upgrade
  seckill --config prod.toml --role api
  seckill --config prod.toml --role relay --role consumer --role reconcile
  seckill --config prod.toml doctor            are the servers set the way the guarantees need it?

Settings, later ones win: built-in defaults, --config files, environment (SECKILL__SECTION__KEY,
SECKILL_REDIS_URL, SECKILL_AMQP_URL, SECKILL_MYSQL_URL), --set. These flags stand before the
subcommand; `seckill config show` prints the result.

Exit codes: 0 fine, 1 failed, 2 inconsistent or a required setting is wrong, 64 usage or
configuration error.";
/// Exit code of a usage or configuration error (`EX_USAGE`).
const USAGE: u8 = 64;
/// Exit code of an inconsistent system.
pub const INCONSISTENT: u8 = 2;

/// A flash-sale (秒杀) order system: admits at Redis speed, lands orders in MySQL, loses nothing on the way.
///
/// Without a subcommand it runs roles until SIGINT or SIGTERM. Subcommands do one thing and end; those that talk to the
/// servers use the local stack that runs in --data-dir, else the servers of the configuration.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, after_long_help = AFTER_HELP)]
struct Cli {
    /// Configuration file (TOML) on top of the built-in defaults; repeatable, later ones win
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// One setting, on top of everything else; repeatable
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// What this process does; repeatable, all when none is named
    #[arg(long, value_enum)]
    role: Vec<Role>,
    /// Serve the demo shop too; only on a loopback address (seckill dev --split starts its api role with it)
    #[arg(long, hide = true)]
    demo_shop: bool,
    /// Folder of the local stack: data of the private servers and dev.json
    #[arg(long, value_name = "DIR", default_value = ".seckill", global = true)]
    data_dir: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start private Redis, RabbitMQ and MariaDB, a demo sale and all roles; Ctrl-C stops everything
    ///
    /// Everything lies in --data-dir: the servers' data, and dev.json with addresses, secrets and process ids for scripts.
    /// The other subcommands find the running stack by it. SECKILL_REDIS_URL, SECKILL_AMQP_URL and SECKILL_MYSQL_URL point
    /// at existing servers to use instead of private ones. A server or role that dies is started again.
    Dev(dev::Args),
    /// Create or upgrade the database's tables; safe to repeat, and from several machines at once
    Migrate,
    /// Create the broker's exchanges and queues; for accounts of their own, with rabbitmq.declare = false for the roles
    Topology,
    /// Create, show and steer sales
    #[command(subcommand)]
    Sale(sale::Command),
    /// Compare Redis, outbox and DLQs with the database; exit code 2 when anything is lost, doubled or oversold
    ///
    /// Reads only; may run while buyers buy. A request is lost when it was accepted, is older than p5_reconcile.window_ms,
    /// has no outcome in the database and lies in no dead-letter queue. Parked requests are pending, not lost.
    Audit(audit::Args),
    /// What is known about a single order request
    #[command(subcommand)]
    Order(order::Command),
    /// What could not be delivered or landed by itself: look at it, land it, or give it up
    #[command(subcommand)]
    Dlq(dlq::Command),
    /// What the audit found and nobody can repair: close it, with a reason
    #[command(subcommand)]
    Finding(finding::Command),
    /// What people did to sales, orders and dead-letter queues, and how it ended
    #[command(subcommand)]
    Act(act::Command),
    /// Check the three servers, their settings and their clocks; exit code 2 when something required is wrong
    Doctor(doctor::Args),
    /// Measure this machine: rates, latencies, and whether every sale added up (runs seckill-bench)
    #[command(disable_help_flag = true)]
    Bench(bench::Args),
    /// Buyers in a process of their own, for the benchmark to kill
    #[command(hide = true, disable_help_flag = true)]
    BenchBuyers(bench::Args),
    /// Access tokens for trying things out (HS256 with auth.secret only)
    #[command(subcommand)]
    Token(token::Command),
    /// Check or show the configuration
    #[command(subcommand)]
    Config(run::ConfigCommand),
}

/// Why a command failed, by exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Exit code 64.
    #[error("{0}")]
    Usage(String),
    /// Exit code 1.
    #[error("{0}")]
    Failed(String),
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<RoleError> for Failure {
    fn from(error: RoleError) -> Self {
        match error {
            RoleError::Config(_) | RoleError::Listen { .. } => Self::Usage(error.to_string()),
            RoleError::Ended(_) => Self::Failed(error.to_string()),
        }
    }
}

macro_rules! failed {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        }
    )*};
}
failed!(
    crate::store::mysql::DbError,
    crate::store::mysql::sales::SaleError,
    crate::store::redis::RedisFault,
    crate::dev::DevError,
    crate::sales::SaleControlError,
    crate::p5_reconcile::ReconcileError,
    crate::p5_reconcile::dlq::DlqError,
    crate::token_issuer::IssueError,
    crate::domain::fault::Fault,
    crate::store::rabbit::RabbitError,
    std::io::Error
);

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    main_of(dispatch)
}

/// Parses the command line of this process as `Words` and runs `work` with it. `seckill-bench` begins and ends like this, too.
#[must_use]
pub fn main_of<Words: Parser, Work: Future<Output = Result<u8, Failure>>>(
    work: impl FnOnce(Words) -> Work,
) -> ExitCode {
    crate::faults::arm();
    let words = match Words::try_parse() {
        Ok(words) => words,
        Err(error) => {
            // clap's own code for a usage error is 2, which means inconsistent here.
            let code = if error.use_stderr() { USAGE } else { 0 };
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("cannot start the async runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = match runtime.block_on(work(words)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::complain(&failure.to_string());
            match failure {
                Failure::Usage(_) => ExitCode::from(USAGE),
                Failure::Failed(_) => ExitCode::FAILURE,
            }
        }
    };
    // Whatever still runs in the background has had its time.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    code
}

async fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let Cli { config, set, role, demo_shop, data_dir, command } = cli;
    let layers = Layers { files: config, set };
    if !role.is_empty() && command.is_some() {
        return Err(Failure::Usage("--role: only without a subcommand; seckill dev runs all roles".to_owned()));
    }
    match command {
        None => run::roles(&layers, &role, demo_shop).await,
        Some(Command::Dev(args)) => dev::run(&layers, &data_dir, &args).await,
        Some(Command::Migrate) => run::migrate(&layers, &data_dir).await,
        Some(Command::Topology) => run::topology(&layers, &data_dir).await,
        Some(Command::Sale(command)) => sale::run(&layers, &data_dir, command).await,
        Some(Command::Audit(args)) => audit::run(&layers, &data_dir, &args).await,
        Some(Command::Order(command)) => order::run(&layers, &data_dir, &command).await,
        Some(Command::Dlq(command)) => dlq::run(&layers, &data_dir, command).await,
        Some(Command::Finding(command)) => finding::run(&layers, &data_dir, command).await,
        Some(Command::Act(command)) => act::run(&layers, &data_dir, command).await,
        Some(Command::Doctor(args)) => doctor::run(&layers, &data_dir, &args).await,
        Some(Command::Bench(args)) => bench::run(&layers, &data_dir, None, &args),
        Some(Command::BenchBuyers(args)) => bench::run(&layers, &data_dir, Some(bench::BUYERS), &args),
        Some(Command::Token(command)) => token::run(&layers, &data_dir, command),
        Some(Command::Config(command)) => run::config(&layers, command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
