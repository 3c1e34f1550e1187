//! The command line: `seckill [--config FILE] [--set KEY=VALUE] [--role ROLE]…` runs roles, subcommands do one thing.
//!
//! The only part of the program that prints to standard output. Exit codes: 0 fine, 1 failed, 2 inconsistent, 64 usage or
//! configuration error.

mod act;
mod audit;
mod bench;
mod block;
mod buyer;
pub mod context;
mod dev;
mod dlq;
mod doctor;
mod drop;
mod failure;
mod finding;
mod input;
mod line;
mod order;
pub mod output;
mod pass;
mod run;
mod sale;
mod token;
mod webhook;

use crate::config::Layers;
use crate::roles::Role;
use crate::telemetry;
use clap::{Parser, Subcommand};
use failure::{FAILED, USAGE};
pub use failure::{Failure, INCONSISTENT};
pub use run::on_signal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Folder of the local stack, unless another is named.
const DATA_DIR: &str = ".seckill";

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

/// A flash-sale (秒杀) order system: admits at Redis speed, lands orders in MySQL, loses nothing on the way.
///
/// Without a subcommand it runs roles until SIGINT or SIGTERM. Subcommands do one thing and end; those that talk to the
/// servers use the local stack that runs in --data-dir, else the servers of the configuration.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, after_long_help = AFTER_HELP)]
struct SeckillCli {
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
    #[arg(long, value_name = "DIR", default_value = DATA_DIR, global = true)]
    data_dir: PathBuf,
    #[arg(long, value_name = "NAME", global = true, help = "Who acts, for the record of acts [default: user@host]")]
    by: Option<String>,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Start private Redis, RabbitMQ and MariaDB, a demo sale and all roles; Ctrl-C stops everything
    ///
    /// Everything is in --data-dir: the servers' data, and dev.json with addresses, secrets and process ids for scripts.
    /// The other subcommands find the running stack by it. SECKILL_REDIS_URL, SECKILL_AMQP_URL and SECKILL_MYSQL_URL point
    /// at existing servers to use instead of private ones. A server or role that dies is started again.
    Dev(dev::DevArgs),
    /// Create or upgrade the database's tables; safe to repeat, and from several machines at once
    Migrate,
    /// Create the broker's exchanges and queues; for accounts of their own, with rabbitmq.declare = false for the roles
    Topology,
    /// Create, show and steer sales
    #[command(subcommand)]
    Sale(sale::SaleCommand),
    /// Create, show and steer drops: sales that belong together, with one limit for each buyer over all of them
    #[command(subcommand)]
    Drop(drop::DropCommand),
    /// Compare Redis, outbox and DLQs with the database; exit code 2 when anything is lost, doubled or oversold
    ///
    /// Reads only; may run while buyers buy. A request is lost when it was accepted, is older than p5_reconcile.window_ms,
    /// has no outcome in the database and is in no dead-letter queue. Parked requests are pending, not lost.
    Audit(audit::AuditArgs),
    /// Orders: show where a request is, list and export them, record payments and refunds, cancel
    #[command(subcommand)]
    Order(order::OrderCommand),
    /// Requests that could not be delivered or persisted: list them, replay them, or give them up
    #[command(subcommand)]
    Dlq(dlq::DlqCommand),
    /// Events of orders that webhooks get: list what waits or is dead, show it, send it again
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Findings of the audit that cannot be repaired: close them, with a reason
    #[command(subcommand)]
    Finding(finding::FindingCommand),
    /// Buyers who may not buy: block them, let them buy again, list them
    #[command(subcommand)]
    Block(block::BlockCommand),
    /// Buyers: forget one, whose id becomes a pseudonym everywhere
    #[command(subcommand)]
    Buyer(buyer::BuyerCommand),
    /// Passes: what a buyer shows to a sale that needs one
    #[command(subcommand)]
    Pass(pass::PassCommand),
    /// Lines of sales: show them, draw them with a text from outside, verify a draw
    #[command(subcommand)]
    Line(line::LineCommand),
    /// What people did to sales, orders and dead-letter queues, and how it ended
    #[command(subcommand)]
    Act(act::ActCommand),
    /// Check the three servers, their settings and their clocks; exit code 2 when something required is wrong
    Doctor(doctor::DoctorArgs),
    /// Measure this machine: rates, latencies, and whether every sale added up (runs seckill-bench)
    #[command(disable_help_flag = true)]
    Bench(bench::ForwardedArgs),
    /// Buyers in a process of their own, for the benchmark to kill
    #[command(hide = true, disable_help_flag = true)]
    BenchBuyers(bench::ForwardedArgs),
    /// Access tokens for trying things out (HS256 with auth.secret only)
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Check or show the configuration
    #[command(subcommand)]
    Config(run::ConfigCommand),
}

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
    crate::trace_points::open();
    let command = Words::command().version(crate::build_info::version());
    let words = match command.try_get_matches().and_then(|matches| Words::from_arg_matches(&matches)) {
        Ok(words) => words,
        Err(error) => {
            // clap's own code for a usage error is 2, which means inconsistent here.
            if error.use_stderr() {
                drop(error.print());
                return ExitCode::from(USAGE);
            }
            output::note(error.print());
            return ExitCode::from(output::ended(0));
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
        Ok(code) => {
            telemetry::last_words(None);
            code
        }
        Err(failure) => {
            // Behind the log's last lines, and like them never waited for.
            if !telemetry::last_words(Some(&format!("error: {failure}"))) {
                output::complain(&failure.to_string());
            }
            match failure {
                Failure::Usage(_) => USAGE,
                Failure::Failed(_) => FAILED,
            }
        }
    };
    let code = output::ended(code);
    // Whatever still runs in the background has had its time.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    ExitCode::from(code)
}

async fn dispatch(cli: SeckillCli) -> Result<u8, Failure> {
    let SeckillCli { config, set, role, demo_shop, data_dir, by, command } = cli;
    context::act_as(by.as_deref());
    let layers = Layers { files: config, set };
    if !role.is_empty() && command.is_some() {
        return Err(Failure::Usage("--role: only without a subcommand; seckill dev runs all roles".to_owned()));
    }
    match command {
        None => run::roles(&layers, &role, demo_shop).await,
        Some(CliCommand::Dev(args)) => dev::run(&layers, &data_dir, &args).await,
        Some(CliCommand::Migrate) => run::migrate(&layers, &data_dir).await,
        Some(CliCommand::Topology) => run::topology(&layers, &data_dir).await,
        Some(CliCommand::Sale(command)) => sale::run(&layers, &data_dir, command).await,
        Some(CliCommand::Drop(command)) => drop::run(&layers, &data_dir, command).await,
        Some(CliCommand::Audit(args)) => audit::run(&layers, &data_dir, &args).await,
        Some(CliCommand::Order(command)) => order::run(&layers, &data_dir, &command).await,
        Some(CliCommand::Dlq(command)) => dlq::run(&layers, &data_dir, command).await,
        Some(CliCommand::Webhook(command)) => webhook::run(&layers, &data_dir, command).await,
        Some(CliCommand::Finding(command)) => finding::run(&layers, &data_dir, command).await,
        Some(CliCommand::Block(command)) => block::run(&layers, &data_dir, command).await,
        Some(CliCommand::Buyer(command)) => buyer::run(&layers, &data_dir, command).await,
        Some(CliCommand::Pass(command)) => pass::run(&layers, &data_dir, command),
        Some(CliCommand::Line(command)) => line::run(&layers, &data_dir, command).await,
        Some(CliCommand::Act(command)) => act::run(&layers, &data_dir, command).await,
        Some(CliCommand::Doctor(args)) => doctor::run(&layers, &data_dir, &args).await,
        Some(CliCommand::Bench(args)) => bench::run(&layers, &data_dir, None, &args),
        Some(CliCommand::BenchBuyers(args)) => bench::run(&layers, &data_dir, Some(bench::BUYERS), &args),
        Some(CliCommand::Token(command)) => token::run(&layers, &data_dir, command),
        Some(CliCommand::Config(command)) => run::config(&layers, command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        SeckillCli::command().debug_assert();
    }
}
