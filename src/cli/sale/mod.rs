//! `seckill sale …`: creates, shows and changes sales.

pub(super) mod archive;
mod change;
mod import;
pub(super) mod operator;
pub(super) mod show;

use crate::cli::failure::Failure;
use crate::cli::{context, output};
use crate::config::Layers;
use crate::domain::grant_names::NAME_BYTES_MAX;
use crate::domain::ids::SaleId;
use crate::domain::operator::Operation;
use crate::domain::sale::Sale;
use crate::http::times::shown_time;
use crate::runtime::now_ms;
use crate::sales::forms::{CloneForm, NewSaleForm, RescheduleForm, SaleEditForm, name_is_usable};
use operator::SaleOperator;
use std::path::{Path, PathBuf};

/// The name of a grant, as its column takes it.
fn grant_name(name: &str) -> Result<String, String> {
    match name.len() {
        _ if name.trim().is_empty() => Err("expected a name".to_owned()),
        1..=NAME_BYTES_MAX => Ok(name.to_owned()),
        bytes => {
            Err(format!("has {bytes} bytes, expected 1 to {NAME_BYTES_MAX} (of UTF-8, e.g. 21 Chinese characters)"))
        }
    }
}

/// `seckill sale …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum SaleCommand {
    /// Create a sale as a draft
    ///
    /// It is put into Redis by `--warm`, by `sale warm`, or by itself p5_reconcile.warm_ahead_ms before it starts.
    #[command(after_help = "Example:
  seckill sale create --id s1 --product p1 --title 'One phone' --stock 1000 --limit 1 \\
      --price-cents 199900 --starts-at 2026-01-01T10:00:00+08:00 --ends-at 2026-01-01T12:00:00+08:00 --warm")]
    Create(Box<NewSaleForm>),
    /// Create many sales and drops of one file, all or nothing; safe to repeat with the same file
    ///
    /// The file has one JSON object a line, or one list of them: a sale with the fields of `POST /admin/v1/sales`, or a drop as in the
    /// file of `drop create`; 1,000 sales at most. It is checked as a whole first, and every mistake is named. What exists has to be as
    /// the file says.
    #[command(after_help = "Example:
  {\"sale_id\": \"s1\", \"product_id\": \"p1\", \"title\": \"One phone\", \"stock\": 1000, \"limit\": 1, \"price_cents\": 199900,
   \"starts_at\": \"2027-03-01T10:00:00+08:00\", \"ends_at\": \"2027-03-01T12:00:00+08:00\"}   (on one line)")]
    Import {
        /// The file; - is standard input
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        /// Put the stock of all of them into Redis at once, not only of those that say `warm`
        #[arg(long)]
        warm: bool,
    },
    /// List the newest sales
    List {
        #[arg(long)]
        json: bool,
    },
    /// Show one sale, with what Redis holds of it
    Show {
        id: SaleId,
        #[arg(long)]
        json: bool,
    },
    /// Change the terms of a sale, until 30 seconds before its start (units: sale top-up)
    Edit {
        id: SaleId,
        #[command(flatten)]
        form: Box<SaleEditForm>,
        /// The version that you saw (sale show): with another one nothing is changed
        #[arg(long)]
        version: Option<u32>,
    },
    /// Move the start of a sale before it, or its end until it has passed
    Reschedule {
        id: SaleId,
        #[command(flatten)]
        form: RescheduleForm,
        /// The version that you saw (sale show): with another one nothing is changed
        #[arg(long)]
        version: Option<u32>,
    },
    /// Hide a sale from buyers: to them there is no such sale; not while it sells, pause it first
    Hide { id: SaleId },
    /// Show a hidden sale to buyers
    Publish { id: SaleId },
    /// Create a draft with the terms of another sale
    Clone {
        /// The sale whose terms are taken
        of: SaleId,
        #[command(flatten)]
        form: CloneForm,
    },
    /// Put a sale's stock into Redis and open it (its window still decides when it sells); safe to repeat
    Warm { id: SaleId },
    /// Stop selling; buyers get 423, accepted requests are still persisted; can be resumed
    Pause { id: SaleId },
    /// Go on selling after a pause
    Resume { id: SaleId },
    /// Add units, also to a sale that is sold out: it opens again
    TopUp {
        id: SaleId,
        #[arg(value_parser = more_units, allow_negative_numbers = true)]
        units: u32,
        /// Name of this grant; repeating a call with the same name adds nothing. Left out: made up, and printed before it acts
        #[arg(long, value_name = "NAME", value_parser = grant_name)]
        grant: Option<String>,
    },
    /// Take unsold units off sale; what buyers have stays theirs
    ///
    /// Fewer than UNITS leave when fewer are unsold, or when buyers are quicker; the answer says how many did.
    Withdraw {
        id: SaleId,
        #[arg(value_parser = some_units, allow_negative_numbers = true)]
        units: u32,
        /// Name of this withdrawal; repeating a call with the same name takes nothing more. Left out: made up, and printed before it acts
        #[arg(long, value_name = "NAME", value_parser = withdrawal_name)]
        name: Option<String>,
    },
    /// Sell the units of final failures and of written-off gaps again, each once (it never happens by itself)
    Reclaim { id: SaleId },
    /// Rebuild the keys of a sale in Redis from the database (when the audit says UNBALANCED)
    ///
    /// The sale is frozen at once and opens again when nothing of it is on its way any more; buyers get 423 until then.
    Rebuild { id: SaleId },
    /// End a sale for good; what was accepted still lands
    Close { id: SaleId },
    /// Export a closed sale that adds up, and with --remove take its rows out of the database
    ///
    /// Only when P5 has removed the sale from Redis. Safe to repeat: a finished export is compared with the database again, a
    /// removal that was interrupted goes on.
    Archive {
        id: SaleId,
        /// Folder in which the sale gets a folder of its name: JSON lines, one file a table, and manifest.json
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Compare the export with the database once more, then remove the sale's rows; what is kept is one row of sums, and its payments
        #[arg(long)]
        remove: bool,
    },
}

/// Units are only added.
fn more_units(text: &str) -> Result<u32, String> {
    let expected = "expected 1 or more: units are only added; sale withdraw takes unsold ones off sale";
    text.parse().ok().filter(|units| *units > 0).ok_or_else(|| expected.to_owned())
}

/// Units that leave a sale.
pub(super) fn some_units(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|units| *units > 0).ok_or_else(|| "expected a whole number from 1".to_owned())
}

/// The name of a withdrawal or a move.
pub(super) fn withdrawal_name(name: &str) -> Result<String, String> {
    name_is_usable(name).map(|()| name.to_owned()).map_err(|bad| format!("expected {}", bad.expected))
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: SaleCommand) -> Result<u8, Failure> {
    if let SaleCommand::Create(create) = &command {
        // A mistake shows before any server is called.
        NewSaleForm::clone(create).plain()?;
    }
    let mut read = None;
    if let SaleCommand::Import { file, .. } = &command {
        read = Some(import::ImportFile::read(file)?);
    }
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let operator = SaleOperator { actor: context::operator(), control: servers.sale_control(&settings) };
    let control = &operator.control;
    match command {
        SaleCommand::Create(form) => operator.create(*form).await?,
        SaleCommand::Import { warm, .. } => {
            if let Some(read) = &read {
                import::run(&operator, read, warm).await?;
            }
        }
        SaleCommand::List { json } => show::list(&servers, json).await?,
        SaleCommand::Show { id, json } => show::show(control, &id, json).await?,
        SaleCommand::Edit { id, form, version } => operator.edit(&id, *form, version).await?,
        SaleCommand::Reschedule { id, form, version } => operator.reschedule(&id, form, version).await?,
        SaleCommand::Hide { id } => operator.hide(&id).await?,
        SaleCommand::Publish { id } => operator.publish(&id).await?,
        SaleCommand::Clone { of, form } => operator.clone_sale(&of, &form).await?,
        SaleCommand::Warm { id } => {
            operator.change(Operation::SaleWarm, &id, control.warm(&id)).await?;
            output::line(&format!("warmed {id}"));
        }
        SaleCommand::Pause { id } => {
            operator.change(Operation::SalePause, &id, control.pause(&id)).await?;
            output::line(&format!("paused {id}"));
        }
        SaleCommand::Resume { id } => {
            operator.change(Operation::SaleResume, &id, control.resume(&id)).await?;
            output::line(&format!("resumed {id}"));
        }
        SaleCommand::TopUp { id, units, grant } => operator.top_up(&id, units, grant).await?,
        SaleCommand::Withdraw { id, units, name } => operator.withdraw(&id, units, name).await?,
        SaleCommand::Reclaim { id } => operator.reclaim(&id).await?,
        SaleCommand::Rebuild { id } => {
            operator.change(Operation::SaleRebuild, &id, control.freeze(&id)).await?;
            output::line(&format!("{id} is frozen; the reconciler rebuilds and opens it"));
        }
        SaleCommand::Archive { id, to, remove } => {
            let args = archive::ArchiveArgs { id, to, remove };
            archive::run(servers.reconcile_context(&settings), &operator.actor, &args).await?;
        }
        SaleCommand::Close { id } => {
            operator.change(Operation::SaleClose, &id, control.close(&id)).await?;
            output::line(&format!("closed {id}; what was accepted still lands"));
        }
    }
    servers.redis.quit().await;
    Ok(0)
}

/// Times in the past are accepted, and may be a slip: says what they mean.
fn remark_on_times(sale: &Sale) {
    let (id, now) = (&sale.sale_id, now_ms());
    if sale.ends_at_ms <= now {
        let ended = shown_time(sale.ends_at_ms);
        output::remark(&format!(
            "{id} ended at {ended} already: it sells nothing, and its times stay; create another one"
        ));
    } else if sale.starts_at_ms <= now {
        let started = shown_time(sale.starts_at_ms);
        output::remark(&format!("{id} started at {started} already: it sells as soon as it is warmed"));
    }
}
