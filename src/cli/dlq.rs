//! `seckill dlq …`: the dead-letter queues on the command line. The work is in `p5_reconcile::dlq`.

use super::failure::Failure;
use super::{context, output};
use crate::config::Layers;
use crate::http::times::shown_time;
use crate::p5_reconcile::ReconcileContext;
use crate::p5_reconcile::dlq::forms::{DlqActionForm, source, sources};
use crate::p5_reconcile::dlq::{
    self, DlqAction, DlqActionResult, DlqEntry, DlqListing, DlqReport, DlqReportLine, DlqService, code_of,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;

/// `seckill dlq …`
///
/// Parked requests lie in the relay DLQ (Redis), in the MQ DLQ (RabbitMQ), or as open rows in the register of failures
/// (database). P5 lands overdue requests from the ledger by itself unless `p5_reconcile.compensate` is "manual", so an
/// entry may be decided already: then acting on it only removes it.
#[derive(Debug, clap::Subcommand)]
pub(super) enum DlqCommand {
    /// What is parked, and why
    List(DlqListArgs),
    /// The same with the messages
    Show(DlqListArgs),
    /// Land parked requests through the normal persist path, or just remove those that are decided already
    ///
    /// The database is asked first, so repeating it is safe. At most 200 requests a second. Exit code 1 when an entry had
    /// to stay.
    #[command(after_help = "Examples:
  seckill dlq replay --all --dry-run       what would happen
  seckill dlq replay --all --source mq     everything in the MQ DLQ
  seckill dlq replay 7390817262993408      one request, wherever it is parked")]
    Replay {
        #[command(flatten)]
        form: DlqActionForm,
        #[arg(long)]
        json: bool,
    },
    /// Record that parked requests will never be orders (FAILED, reason GIVEN_UP) and remove them
    ///
    /// The database is asked first: a request that is an order already stays one. The units are not sold again by this;
    /// `seckill sale reclaim` does that. A message that is no request at all is given up by its entry name.
    #[command(after_help = "Examples:
  seckill dlq give-up 7390817262993408 --reason 'buyer was refunded, ticket 4711'
  seckill dlq give-up mq/9f86d081884c --reason 'test message of another system'")]
    GiveUp {
        #[command(flatten)]
        form: DlqActionForm,
        #[arg(long)]
        json: bool,
        /// Why, for the register and the audit
        #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        reason: String,
    },
}

/// `seckill dlq list` and `seckill dlq show`
#[derive(Debug, clap::Args)]
pub(super) struct DlqListArgs {
    /// Only these: request ids, or entry names as listed
    #[arg(value_name = "RID")]
    named: Vec<String>,
    /// Only this dead-letter queue (and the register's rows from it)
    #[arg(long, value_parser = sources())]
    source: Option<String>,
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: DlqCommand) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let service = DlqService { context: servers.reconcile_context(&settings), actor: context::operator() };
    let code = match command {
        DlqCommand::List(args) => list_entries(&service.context, &args, false).await?,
        DlqCommand::Show(args) => list_entries(&service.context, &args, true).await?,
        DlqCommand::Replay { form, json } => act(&service, &DlqAction::Replay, (form, json)).await?,
        DlqCommand::GiveUp { form, json, reason } => act(&service, &DlqAction::GiveUp(reason), (form, json)).await?,
    };
    servers.redis.quit().await;
    Ok(code)
}

async fn list_entries(context: &ReconcileContext, args: &DlqListArgs, whole: bool) -> Result<u8, Failure> {
    let mut listing = dlq::list(context, source(args.source.as_deref())?).await?;
    if !args.named.is_empty() {
        listing.entries.retain(|entry| args.named.iter().any(|word| entry.is(word)));
        if listing.entries.is_empty() {
            let named = args.named.join(" ");
            return Err(Failure::Failed(format!("{named}: in no dead-letter queue; see seckill order show")));
        }
    }
    if args.json {
        output::json(&listing);
    } else if whole {
        show(&listing);
    } else {
        list(&listing);
    }
    Ok(0)
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn outcome(entry: &DlqEntry) -> String {
    entry.outcome.map_or("undecided", code_of).to_owned()
}

fn list(listing: &DlqListing) {
    if listing.entries.is_empty() {
        output::line("nothing is parked");
        return;
    }
    output::table(
        ["entry", "request", "sale", "buyer", "units", "attempts", "parked", "reason", "database"],
        listing.entries.iter().map(|entry| {
            [
                entry.entry.clone(),
                text(entry.request_id.as_ref()),
                text(entry.sale_id.as_ref()),
                text(entry.user_id.as_ref()),
                text(entry.quantity.as_ref()),
                text(entry.attempts.as_ref()),
                text(entry.parked_at_ms.map(shown_time).as_ref()),
                entry.reason.chars().take(80).collect(),
                outcome(entry),
            ]
        }),
    );
    if listing.more {
        output::line("there is more; these are the first");
    }
    output::line("land them with seckill dlq replay, or give them up with seckill dlq give-up --reason");
}

fn show(listing: &DlqListing) {
    for entry in &listing.entries {
        output::line(&format!("{}  database: {}", entry.entry, outcome(entry)));
        output::line(&format!("  request   {}", text(entry.request_id.as_ref())));
        output::line(&format!("  reason    {}", entry.reason));
        output::line(&format!("  attempts  {}", text(entry.attempts.as_ref())));
        output::line(&format!("  parked    {}", text(entry.parked_at_ms.map(shown_time).as_ref())));
        output::line(&format!("  message   {:?}\n", String::from_utf8_lossy(&entry.payload)));
    }
    if listing.entries.is_empty() {
        output::line("nothing is parked");
    }
}

async fn act(service: &DlqService, action: &DlqAction, (form, json): (DlqActionForm, bool)) -> Result<u8, Failure> {
    let selection = form.selection()?;
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} requests") {
        bar.set_style(style);
    }
    let progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let report = service.apply(action, &selection, &progress).await;
    bar.finish_and_clear();
    let report = report?;
    if json {
        output::json(&report);
    } else {
        print(&report, selection.dry_run);
    }
    Ok(u8::from(report.done.iter().any(|done| done.result.is_trouble())))
}

fn print(report: &DlqReport, dry_run: bool) {
    if report.done.is_empty() {
        output::line("nothing is parked, nothing to do");
        return;
    }
    output::table(
        ["request", "entries", "result", "detail"],
        report.done.iter().map(|DlqReportLine { request_id, entries, result, detail }| {
            [text(request_id.as_ref()), entries.join("\n"), name(result), detail.clone()]
        }),
    );
    if dry_run {
        output::line("dry run: nothing was changed");
    }
    if report.more {
        output::line("there is more; run it again");
    }
}

fn name(result: &DlqActionResult) -> String {
    serde_json::to_value(result).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
