//! `seckill bench`: what this machine can do, measured on servers of its own with durable settings, and proven correct at
//! the end by the auditor. A measurement that is not there is said to be missing; nothing is estimated.

mod baseline;
mod exact;
mod ground;
mod hammer;
mod report;
mod scenarios;

use super::{Failure, INCONSISTENT, context, output, run};
use crate::config::Layers;
use crate::p5_reconcile::Window;
use crate::runtime::Stopper;
use crate::store::mysql::checks;
use crate::store::rabbit::broker_info;
use ground::Ground;
use indicatif::{ProgressBar, ProgressStyle};
use report::{Bar, Report};
use std::path::Path;
use std::time::{Duration, Instant};

/// Servers that take longer to start leave a quick run less time for measuring.
const SLOW_START: Duration = Duration::from_secs(6);

/// `seckill bench`
///
/// Starts servers of its own (durable settings, data in the system's temporary folder, removed at the end) and the roles in
/// this process; load generator, roles and servers share the machine. Figures are compared with a baseline measured in the
/// same run, and the ratio with a bar. At the end every sale is audited.
///
/// Use the release build. Exit code 0: measured, and every sale added up (whether or not the bars are met); 2: something
/// was lost, doubled or oversold; 1: it could not be measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  seckill bench --quick              everything, within 20 seconds
  seckill bench --only sale          three whole sales, 10,000 buyers each, checked for exactness
  seckill bench --only accept --json > accept.json
  seckill bench --here               against the running seckill dev (adds sales named bench-…, closed afterwards)")]
pub(super) struct Args {
    /// Short measurements: done within 20 seconds, less exact
    #[arg(long)]
    quick: bool,
    /// Only this scenario; repeatable
    #[arg(long, value_name = "NAME", value_enum)]
    only: Vec<Scenario>,
    /// Against the local stack that runs in --data-dir instead of servers of its own
    #[arg(long)]
    here: bool,
    /// Connections of the crowd
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Buyers of each sale of the scenario `sale`
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    buyers: u64,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// Accepted purchases a second, against a bare script under redis-benchmark
    Accept,
    /// Refusals a second on a sold-out sale
    #[value(name = "sold_out")]
    SoldOut,
    /// Repeated requests of winners a second
    Replay,
    /// Status answers a second
    Poll,
    /// Orders landed a second while buyers keep buying
    #[value(name = "end_to_end")]
    EndToEnd,
    /// Whole sales under the three policies, checked for exactness
    Sale,
}

/// How much is done.
#[derive(Debug)]
struct Scale {
    connections: u32,
    /// Each measurement takes this long.
    lasting: Duration,
    /// Different buyers of the rate scenarios.
    buyers: u64,
    sale_buyers: u64,
    baseline_requests: u64,
    /// Longest wait until everything has landed.
    patience: Duration,
}

impl Scale {
    fn of(args: &Args) -> Self {
        let (ms, buyers, baseline_requests, patience_s) =
            if args.quick { (1_000, 10_000, 50_000, 30) } else { (5_000, 100_000, 300_000, 180) };
        Self {
            connections: args.connections,
            lasting: Duration::from_millis(ms),
            buyers,
            sale_buyers: args.buyers,
            baseline_requests,
            patience: Duration::from_secs(patience_s),
        }
    }
}

/// Says on standard error what is going on; silent when that is not a terminal.
#[derive(Clone)]
struct Spinner(ProgressBar);

impl Spinner {
    fn start(name: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_prefix(name);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    fn tell(&self, words: &str) {
        self.0.set_message(words.to_owned());
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        // Clones share the bar; whoever ends first clears it.
        self.0.finish_and_clear();
    }
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, args: &Args) -> Result<u8, Failure> {
    if cfg!(debug_assertions) {
        output::remark("this is a debug build: its figures mean nothing, use cargo run --release");
    }
    let stop = Stopper::new();
    run::on_signal(stop.clone())?;
    let spinner = Spinner::start("servers");
    let ground = async {
        if args.here { Ground::here(layers, data_dir, &stop).await } else { Ground::private(layers, &stop).await }
    };
    let (begin, mut scale) = (Instant::now(), Scale::of(args));
    let mut ground = ground.await?;
    drop(spinner);
    if args.quick && begin.elapsed() > SLOW_START {
        scale.lasting /= 2;
    }
    let measured = measure(&mut ground, &scale, args).await;
    let left = ground.leave().await;
    let report = measured?;
    left?;
    if args.json {
        report.json();
    } else {
        report.print();
    }
    Ok(if report.correct() { 0 } else { INCONSISTENT })
}

async fn measure(ground: &mut Ground, scale: &Scale, args: &Args) -> Result<Report, Failure> {
    let servers = ground.servers.clone();
    let versions = [
        ("redis", servers.redis.version().await?),
        ("rabbitmq", broker_info(&servers.rabbit).await.map_err(|error| Failure::Failed(error.to_string()))?.version),
        ("mysql", checks::identity(&servers.db).await?.version),
    ];
    let durable = servers.redis.settings().await?.iter().all(|setting| setting.ok)
        && checks::checks(&servers.db).await?.iter().all(|check| check.ok);
    let machine = report::machine(&versions);
    let bars = bars(ground, scale, args).await?;
    ground.go_on()?;
    let spinner = Spinner::start("audit");
    let mut audits = Vec::new();
    ground.start_landing()?;
    for sale in &ground.sales {
        spinner.tell(sale.sale_id.as_str());
        ground.drained(&sale.sale_id, scale.patience, &|_landed, _sold| {}).await?;
        if let Some(sale) = crate::store::mysql::sales::get(&servers.db, &sale.sale_id).await? {
            audits.push(context::auditor(&ground.settings, &servers).audit(&sale, Window::Now).await?);
        }
    }
    Ok(Report { machine, durable, bars, audits })
}

/// The scenarios that were asked for. First those for which the api role runs alone.
async fn bars(ground: &mut Ground, scale: &Scale, args: &Args) -> Result<Vec<Bar>, Failure> {
    let wanted = |scenario: Scenario| args.only.is_empty() || args.only.contains(&scenario);
    let mut bars = Vec::new();
    ground.go_on()?;
    // end_to_end is compared with it.
    if wanted(Scenario::Accept) || wanted(Scenario::EndToEnd) {
        bars.push(scenarios::accept(ground, scale, &Spinner::start("accept")).await?);
    }
    let accept = bars.first().map(|bar| bar.value);
    if wanted(Scenario::SoldOut) || wanted(Scenario::Replay) || wanted(Scenario::Poll) {
        let spinner = Spinner::start("sold_out, replay, poll");
        let sold_out = scenarios::SoldOut::prepare(ground).await?;
        for (scenario, name) in
            [(Scenario::SoldOut, "sold_out"), (Scenario::Replay, "replay"), (Scenario::Poll, "poll")]
        {
            if !wanted(scenario) {
                continue;
            }
            ground.go_on()?;
            spinner.tell(name);
            bars.push(match scenario {
                Scenario::SoldOut => sold_out.sold_out(ground, scale).await?,
                Scenario::Replay => sold_out.replay(ground, scale).await?,
                Scenario::Poll | Scenario::Accept | Scenario::EndToEnd | Scenario::Sale => {
                    sold_out.poll(ground, scale).await?
                }
            });
        }
    }
    if wanted(Scenario::EndToEnd) {
        let spinner = Spinner::start("end_to_end");
        settle(ground, scale, &spinner).await?;
        bars.push(scenarios::end_to_end(ground, scale, accept, &spinner).await?);
    }
    if wanted(Scenario::Sale) {
        let spinner = Spinner::start("sale");
        settle(ground, scale, &spinner).await?;
        bars.extend(exact::sales(ground, scale, &spinner).await?);
    }
    Ok(bars)
}

/// Lets everything land that was accepted so far, so that the next measurement starts from rest.
async fn settle(ground: &mut Ground, scale: &Scale, spinner: &Spinner) -> Result<(), Failure> {
    ground.go_on()?;
    ground.start_landing()?;
    for sale in &ground.sales {
        let told = |landed, sold| spinner.tell(&format!("first {landed} of {sold} earlier ones land"));
        ground.drained(&sale.sale_id, scale.patience, &told).await?;
    }
    Ok(())
}
