//! `seckill sale …`: creates, shows and changes sales.

mod archive;
mod change;
mod operator;
mod show;

use crate::cli::failure::Failure;
use crate::cli::{context, output};
use crate::config::Layers;
use crate::domain::ids::SaleId;
use crate::domain::instant::instant;
use crate::domain::new_sale::{NewSale, PAY_GRACE_S};
use crate::domain::operator::Operation;
use crate::domain::sale::Sale;
use crate::http::times::shown_time;
use crate::runtime::now_ms;
use crate::sales::rows::grants::NAME_BYTES_MAX;
use chrono::{DateTime, Utc};
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
    Create(Box<SaleCreateArgs>),
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
    Edit(Box<change::SaleEditArgs>),
    /// Move the start of a sale before it, or its end until it has passed
    Reschedule(change::RescheduleArgs),
    /// Hide a sale from buyers: to them there is no such sale; not while it sells, pause it first
    Hide { id: SaleId },
    /// Show a hidden sale to buyers
    Publish { id: SaleId },
    /// Create a draft with the terms of another sale
    Clone(change::CloneArgs),
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

/// `seckill sale create`
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SaleCreateArgs {
    /// 1 to 64 characters of A-Z a-z 0-9 _ -
    #[arg(long)]
    id: SaleId,
    /// What is sold
    #[arg(long)]
    product: String,
    /// What a buyer reads
    #[arg(long)]
    title: String,
    #[arg(long, allow_negative_numbers = true)]
    stock: i64,
    /// Most units a buyer may have; 1: one per user; left out: no limit
    #[arg(long)]
    limit: Option<u32>,
    /// Price of one unit in the currency's smallest unit; from 1 with --pay-within-s
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    price_cents: i64,
    /// ISO 4217 code
    #[arg(long, default_value = "CNY")]
    currency: String,
    /// Start, RFC 3339, e.g. 2026-01-01T10:00:00Z or …+08:00
    #[arg(long, value_parser = instant)]
    starts_at: DateTime<Utc>,
    /// End, RFC 3339, after the start
    #[arg(long, value_parser = instant)]
    ends_at: DateTime<Utc>,
    /// Buyers need a purchase token
    #[arg(long)]
    token_required: bool,
    /// Buyers pass a waiting room: drawn places for who comes before the start, released at p1_entry.room_release_per_s
    #[arg(long)]
    waiting_room: bool,
    /// Seconds that a buyer has to pay after the order is written; left out: there is no payment step
    #[arg(long, value_name = "SECONDS")]
    pay_within_s: Option<u32>,
    /// Seconds between the deadline that buyers see and the one that is enforced
    #[arg(long, value_name = "SECONDS", default_value_t = PAY_GRACE_S)]
    pay_grace_s: u32,
    /// An order that ends unpaid no longer counts against its buyer's limit
    #[arg(long, requires = "pay_within_s")]
    limit_returns: bool,
    /// Buyers do not see it until it is published
    #[arg(long)]
    hidden: bool,
    /// Warm it up at once
    #[arg(long)]
    warm: bool,
}

/// Units are only added.
fn more_units(text: &str) -> Result<u32, String> {
    let expected =
        "expected 1 or more: units are only added. To sell fewer, pause the sale, or close it and clone it with fewer";
    text.parse().ok().filter(|units| *units > 0).ok_or_else(|| expected.to_owned())
}

impl SaleCreateArgs {
    fn sale(self) -> Result<Sale, Failure> {
        let new = NewSale {
            id: self.id,
            product: self.product,
            title: self.title,
            stock: self.stock,
            limit: self.limit,
            price_cents: self.price_cents,
            currency: self.currency,
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            token_required: self.token_required,
            waiting_room: self.waiting_room,
            pay_within_s: self.pay_within_s,
            pay_grace_s: self.pay_grace_s,
            limit_returns: self.limit_returns,
            hidden: self.hidden,
        };
        Ok(new.draft()?)
    }
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: SaleCommand) -> Result<u8, Failure> {
    if let SaleCommand::Create(create) = &command {
        // A mistake shows before any server is called.
        create.clone().sale()?;
    }
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let operator = SaleOperator { actor: context::operator(), control: servers.sale_control(&settings) };
    let control = &operator.control;
    match command {
        SaleCommand::Create(create) => operator.create(*create, &servers).await?,
        SaleCommand::List { json } => show::list(&servers, json).await?,
        SaleCommand::Show { id, json } => show::show(control, &id, json).await?,
        SaleCommand::Edit(args) => operator.edit(*args).await?,
        SaleCommand::Reschedule(args) => operator.reschedule(args).await?,
        SaleCommand::Hide { id } => operator.hide(&id).await?,
        SaleCommand::Publish { id } => operator.publish(&id).await?,
        SaleCommand::Clone(args) => operator.clone_sale(args).await?,
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
