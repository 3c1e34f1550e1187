//! `seckill dev`: the whole system on this machine, for trying out and for developing.

use super::failure::Failure;
use super::{DATA_DIR, output, run};
use crate::config::{Layers, Settings};
use crate::dev::stack::{Stack, StackError, StackPlan};
use crate::dev::{self, DEMO_SALE, ServerProgress};
use crate::runtime::Stopper;
use crate::telemetry;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(super) struct DevArgs {
    /// Every role as its own process; one that dies is started again
    #[arg(long)]
    split: bool,
    /// Go on with the data of the last time
    #[arg(long, conflicts_with = "fresh")]
    keep: bool,
    /// Forget the data of the last time (the default)
    #[arg(long)]
    fresh: bool,
    /// Create no demo sale
    #[arg(long)]
    no_demo: bool,
}

impl From<StackError> for Failure {
    fn from(error: StackError) -> Self {
        match error {
            StackError::Config(error) => error.into(),
            StackError::Role(error) => error.into(),
            StackError::Dev(_)
            | StackError::Database(_)
            | StackError::Sale(_)
            | StackError::Warm(_)
            | StackError::NotReady(_) => Self::Failed(error.to_string()),
        }
    }
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, args: &DevArgs) -> Result<u8, Failure> {
    let settings = Settings::load(layers)?;
    telemetry::init_logs(&settings.log).map_err(Failure::Usage)?;
    telemetry::log_panics();
    telemetry::init_metrics();
    let stopper = Stopper::new();
    run::on_signal(stopper.clone())?;
    if !args.keep {
        dev::clear(data_dir)?;
    }
    let plan = StackPlan { dir: data_dir.to_owned(), layers: layers.clone(), split: args.split, demo: !args.no_demo };
    let spinners = Spinners::default();
    let show = |progress| spinners.show(progress);
    let started = tokio::select! {
        started = Stack::start(&plan, &show) => started,
        // Dropping what was started so far kills it.
        () = stopper.stopped() => return Ok(0),
    };
    spinners.clear();
    let stack = started?;
    greet(&stack, data_dir, plan.demo);
    stack.until_stopped(&plan, &stopper).await?;
    let again = if data_dir == Path::new(DATA_DIR) {
        "make run ARGS=--keep (seckill dev --keep)"
    } else {
        &hint("dev --keep", data_dir)
    };
    output::remark(&format!("stopped; the data are kept: {again} goes on with them"));
    Ok(0)
}

/// This program with a subcommand on the stack in `data_dir`, fit for a shell.
fn hint(command: &str, data_dir: &Path) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "seckill".to_owned());
    let program = quoted(&program);
    if data_dir == Path::new(DATA_DIR) {
        return format!("{program} {command}");
    }
    format!("{program} --data-dir {} {command}", quoted(&data_dir.to_string_lossy()))
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn greet(stack: &Stack, data_dir: &Path, demo: bool) {
    let state = stack.state();
    output::line("\nseckill is running; Ctrl-C stops everything.\n");
    if stack.has_shop() {
        output::line(&format!("  shop       {}/shop/", state.api));
    }
    output::line(&format!("  console    {}/console/   (token: {})", state.admin, state.admin_token));
    output::line(&format!("  buyers     {}   (contract: {}/docs/)", state.api, state.api));
    output::line(&format!("  operators  {}   (metrics: {}/metrics)", state.admin, state.admin));
    output::line(&format!("  redis      {}", state.redis_url));
    output::line(&format!("  rabbitmq   {}", state.amqp_url));
    output::line(&format!("  mysql      {}", state.mysql_url));
    output::line(&format!("  all of it  {}", crate::dev::DevState::path(data_dir).display()));
    if !demo {
        return;
    }
    output::line("\nBuy something, in another terminal in this folder:\n");
    output::line(&format!("  TOKEN=$({})", hint("token mint --sub alice", data_dir)));
    output::line(&format!(
        "  curl -si {}/v1/sales/{DEMO_SALE}/orders -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' -d '{{\"quantity\":1}}'",
        state.api
    ));
    output::line(&format!("  {}\n", hint("audit", data_dir)));
}

/// One spinner a server while it starts.
#[derive(Default)]
struct Spinners {
    all: MultiProgress,
    one: Mutex<HashMap<&'static str, ProgressBar>>,
}

impl Spinners {
    fn show(&self, progress: ServerProgress) {
        let mut one = self.one.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match progress {
            ServerProgress::Starting(kind) => {
                let spinner =
                    self.all.add(ProgressBar::new_spinner().with_message(format!("starting {}", kind.name())));
                if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                    spinner.set_style(style);
                }
                spinner.enable_steady_tick(Duration::from_millis(100));
                one.insert(kind.name(), spinner);
            }
            ServerProgress::Ready { kind, took } => {
                if let Some(spinner) = one.remove(kind.name()) {
                    spinner.finish_with_message(format!("{} is ready after {:.1} s", kind.name(), took.as_secs_f64()));
                }
            }
        }
    }

    fn clear(&self) {
        // The lines are of no interest any more once everything runs.
        drop(self.all.clear());
    }
}
