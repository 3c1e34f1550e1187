//! `seckill bench`: what this machine can do, measured on servers of its own with durable settings, and proven correct at
//! the end by an audit. A measurement that is not there is said to be missing; nothing is estimated.
//!
//! By file: `sizes` (what and how much) → `measurement_plan` (in which order, how often) → one file a scenario → `bar` (medians,
//! bars) → `report`, `html`. `environment` and `role_processes` are what everything runs on, `aof_rewrite` keeps Redis' file small; `cpu` says who
//! used the processors.

mod accept;
mod accept_rs256;
mod accept_turns;
mod aof_rewrite;
mod bar;
pub mod baseline;
mod build_cost;
mod cli;
mod closed_loop;
mod cost;
mod cpu;
mod descriptors;
mod drop_cost;
mod environment;
mod expiry;
mod fill;
mod flash_crowd;
mod growth;
mod growth_cost;
mod growth_reconcile;
mod growth_sales_idle;
mod html;
mod index_cost;
mod lags;
mod landing;
mod latency;
mod latency_bare;
mod line;
pub mod loadgen;
mod machine_time;
mod measurement_plan;
mod memory;
mod plain_process;
mod plot;
mod prefault;
mod program;
mod purchases;
mod recovery;
mod recovery_probe;
mod relay;
mod report;
mod request_texts;
mod role_processes;
mod rush;
mod scenarios;
mod shop_crowd;
mod sizes;
mod sold_out;
mod stage;
mod steady_crowd;
mod strategies;
pub mod vanishing_host;
mod waiters;
mod whole_sale;

pub use cli::main;
use environment::{DatabaseSize, Environment};
use measurement_plan::MeasurementPlan;
use report::{BenchReport, LeftOut};
use seckill::cli::{Failure, INCONSISTENT, on_signal, output};
use seckill::config::Layers;
use seckill::p5_reconcile::{SaleAudit, Window, audit_sale};
use seckill::runtime::Stopper;
use seckill::store::mysql::checks;
use seckill::store::rabbit::broker_info;
use sizes::{Scenario, Sizes, Spinner, choose};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Servers that take longer to start leave a quick run less time for measuring.
const SLOW_START: Duration = Duration::from_secs(6);

/// Measure this machine: rates, latencies, and whether every sale added up
///
/// Starts servers of its own (durable settings, data in the system's temporary folder, removed at the end) and each role as
/// a process; load generator, roles and servers share the machine, and the report says which process used the processors. Servers named by
/// SECKILL_REDIS_URL, SECKILL_AMQP_URL and SECKILL_MYSQL_URL are used instead of private ones. Figures are compared with a
/// baseline measured in the same run, and the ratio with a bar; docs/performance.md explains each. At the end every sale is
/// audited.
///
/// Use the build that is shipped, as `make bench` does. Exit code 0: measured, and every sale added up (whether or not the bars are met); 2: something
/// was lost, doubled or oversold; 1: it could not be measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  seckill bench --quick              what fits into half a minute
  seckill bench --runs 5 --html bench.html
  seckill bench --only sale          whole sales, 10,000 buyers each, checked for exactness
  seckill bench --only crowd --users 1000000
  seckill bench --only rush --rush 200000
  seckill bench --only accept --json > accept.json
  seckill bench --only growth --entries 1000000
  seckill bench --only growth_reconcile --orders 10000000
  seckill bench --only growth_sales_idle
  seckill bench --only cost_drop --against PATH
  seckill bench --only line
  seckill bench --only expiry --entries 1000000
  seckill bench --here               against the running seckill dev (adds sales named bench-…, closed afterwards)")]
struct BenchArgs {
    /// Short measurements: done within half a minute, less exact; says what it leaves out
    #[arg(long)]
    quick: bool,
    /// Only this scenario; repeatable
    #[arg(long, value_name = "NAME", value_enum)]
    only: Vec<Scenario>,
    /// Against the local stack that runs in --data-dir instead of servers of its own
    #[arg(long)]
    here: bool,
    /// Measure everything this often and report medians with lowest and highest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Connections of the crowd; `accept`, `latency` and `latency_bare` have four times as many
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Buyers of each sale of the scenario `sale`
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    buyers: u64,
    /// Buyers of the scenario `crowd`
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    users: u64,
    /// Buyers of the scenario `rush`, all due within one second [default: 20,000, quick 2,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=500_000))]
    rush: Option<u64>,
    /// Long polls of the scenario `waiters`
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    waiters: u64,
    /// Entries that `relay`, `landing`, `memory` and `expiry` work on, and the most of `growth` [default: 100,000, for relay and
    /// landing again and again until the relay has worked for 2 s; quick 20,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    entries: Option<u64>,
    /// Orders of the large sale of `growth_reconcile`
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=100_000_000))]
    orders: u64,
    /// Length of each timed measurement, seconds [default: 5, quick 1]
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Another build of `seckill`: what an order costs with it, and how it takes a rush, in the same run
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    #[arg(long)]
    json: bool,
    /// Also write a page with plots, in one file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let read = text.parse::<f64>().ok().filter(|seconds| (0.1..=60.0).contains(seconds));
    read.ok_or_else(|| "expected 0.1 to 60 seconds".to_owned())
}

async fn run(layers: &Layers, data_dir: &Path, args: &BenchArgs) -> Result<u8, Failure> {
    if cfg!(debug_assertions) {
        output::remark("this is a debug build: its figures mean nothing, use make bench");
    }
    let (chosen, left_out) = choose(args);
    if let (true, Some(left)) = (chosen.is_empty(), left_out.first()) {
        return Err(Failure::Usage(format!("--only {}: {}", left.name, left.why)));
    }
    let stop = Stopper::new();
    on_signal(stop.clone())?;
    let spinner = Spinner::start("servers");
    let (begin, mut sizes) = (Instant::now(), Sizes::of(args));
    let mut environment = if args.here {
        Environment::here(layers, data_dir, &stop).await?
    } else {
        let database = if args.quick { DatabaseSize::Quick } else { DatabaseSize::Full };
        Environment::private(program::program()?, layers, database, &stop).await?
    };
    drop(spinner);
    if args.quick && begin.elapsed() > SLOW_START {
        sizes.lasting /= 2;
    }
    let measured = measure(&mut environment, &sizes, chosen, left_out).await;
    let left = environment.leave().await;
    let report = measured?;
    left?;
    if let Some(file) = &args.html {
        std::fs::write(file, html::page(&report))
            .map_err(|error| Failure::Failed(format!("--html: cannot write {}: {error}", file.display())))?;
    }
    if args.json {
        output::json(&report.value());
    } else {
        report.print();
    }
    Ok(if report.correct() { 0 } else { INCONSISTENT })
}

async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    chosen: Vec<Scenario>,
    left_out: Vec<LeftOut>,
) -> Result<BenchReport, Failure> {
    let servers = environment.servers.clone();
    let versions = [
        ("redis", servers.redis.health.version().await?),
        ("rabbitmq", broker_info(&servers.rabbit).await?.version),
        ("mysql", checks::identity(&servers.db).await?.version),
    ];
    let durable = servers.redis.health.settings().await?.iter().all(|setting| setting.ok)
        && checks::checks(&servers.db).await?.iter().all(|check| check.ok);
    let machine = report::machine(&versions);
    let bars = MeasurementPlan::new(environment, sizes, chosen).run().await?;
    environment.go_on()?;
    let audits = audit(environment, sizes).await?;
    Ok(BenchReport { machine, durable, bars, left_out, audits })
}

/// Lets everything land, then audits every sale.
async fn audit(environment: &mut Environment, sizes: &Sizes) -> Result<Vec<SaleAudit>, Failure> {
    let spinner = Spinner::start("audit");
    environment.settle(sizes.patience, &spinner).await?;
    let context = environment.servers.reconcile_context(&environment.settings);
    let mut audits = Vec::new();
    for sale in &environment.sales {
        spinner.say(sale.sale_id.as_str());
        if let Some(sale) = environment.servers.rows.sales.get(&sale.sale_id).await? {
            audits.push(audit_sale(&context, &sale, Window::Now).await?);
        }
    }
    Ok(audits)
}
