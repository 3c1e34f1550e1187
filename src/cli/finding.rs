//! `seckill finding …`: a person closes a finding that cannot be repaired, with a reason.

use super::failure::Failure;
use super::{context, output};
use crate::config::Layers;
use crate::domain::ids::SaleId;
use crate::domain::operator::{ActTarget, Operation, OperatorAct};
use crate::p5_reconcile::rows::books::Series;
use crate::p5_reconcile::rows::books::closing::{Closing, ClosingResult};
use crate::p5_reconcile::{AuditOptions, SaleAudit, Window, audit_sale};
use std::path::Path;
use std::str::FromStr;

/// `seckill finding …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum FindingCommand {
    /// Close a finding of `seckill audit` that no repair can end
    ///
    /// Buyers that the audit names come first: land them with `dlq replay`, or give them up with `dlq give-up`. What is closed
    /// here keeps its units back; `sale reclaim` sells them again.
    #[command(after_help = "Examples:
  seckill finding close s1 --gap 1:0:97-99 --units 3 --reason 'restored from the backup of 10:00, buyers refunded'
  seckill finding close s1 --refused --reason 'refunded by the shop, ticket 4711'
  seckill finding close s1 --unbalanced --reason 'stock edited by hand on 3 May, counted in the warehouse'")]
    Close(FindingCloseArgs),
}

/// `seckill finding close`
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(super) struct FindingCloseArgs {
    sale: SaleId,
    /// Acceptance numbers without an outcome (P5-RC4): EPOCH:SHARD:FIRST-LAST, or EPOCH:SHARD:NUMBER
    #[arg(long, group = "what", value_name = "NUMBERS")]
    gap: Option<GapNumbers>,
    /// Units behind the numbers; one for each number when left out
    #[arg(long, requires = "gap", value_parser = clap::value_parser!(i64).range(0..))]
    units: Option<i64>,
    /// All accepted units so far that ended SOLD_OUT (REFUSED)
    #[arg(long, group = "what")]
    refused: bool,
    /// The difference between Redis and the database, as it is now; a rebuild ends it, too (UNBALANCED)
    #[arg(long, group = "what")]
    unbalanced: bool,
    /// Why; it is kept for good
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
}

/// Numbers of one series.
#[derive(Debug, Clone, Copy)]
struct GapNumbers {
    series: Series,
    first: u64,
    last: u64,
}

impl FromStr for GapNumbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let mut parts = text.split(':');
            let epoch = parts.next()?.parse().ok()?;
            let shard = parts.next()?.parse().ok()?;
            let numbers = parts.next().filter(|_| parts.next().is_none())?;
            let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (1 <= first && first <= last).then_some(Self { series: Series { epoch, shard }, first, last })
        };
        read().ok_or_else(|| "expected EPOCH:SHARD:FIRST-LAST, such as 1:0:97-99".to_owned())
    }
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: FindingCommand) -> Result<u8, Failure> {
    let FindingCommand::Close(close) = command;
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let none = || Failure::Failed(format!("there is no sale {}; see seckill sale list", close.sale));
    let sale = servers.rows.sales.get(&close.sale).await?.ok_or_else(none)?;
    let confirmed = AuditOptions::from(Window::Now).confirmed();
    let audit = audit_sale(&servers.reconcile_context(&settings), &sale, confirmed).await?;
    let actor = context::operator();
    let by = actor.label();
    let closing = close.closing(&audit, sale.epoch, &by)?;
    let refused = match servers.rows.books.close(&close.sale, &closing).await? {
        ClosingResult::Closed => None,
        ClosingResult::Before => Some("these numbers were closed before; see seckill act list"),
        ClosingResult::HasOutcome => Some("a request of these numbers has its outcome by now; audit again"),
    };
    if let Some(why) = refused {
        return Err(Failure::Failed(why.to_owned()));
    }
    let mut act = OperatorAct::new(&actor, Operation::FindingClose, ActTarget::Sale(close.sale.clone()));
    act.reason = Some(close.reason.clone());
    act.after = Some(serde_json::json!({ "code": closing.code, "units": closing.units,
        "numbers": closing.numbers.map(|(series, first, last)| [u64::from(series.epoch), u64::from(series.shard), first, last]) }));
    servers.rows.acts.record(&[act]).await?;
    servers.redis.quit().await;
    output::line(&format!("closed {} of {} with {} units", closing.code, close.sale, closing.units));
    Ok(0)
}

impl FindingCloseArgs {
    /// What is to be written, if the audit has such a finding.
    fn closing<'a>(&'a self, audit: &SaleAudit, epoch: u32, by: &'a str) -> Result<Closing<'a>, Failure> {
        let closing = Closing { code: "", numbers: None, epoch: Some(epoch), units: 0, reason: &self.reason, by };
        let nothing =
            |what: &str| Failure::Failed(format!("the audit of {} finds no {what}; nothing was closed", self.sale));
        if let Some(GapNumbers { series, first, last }) = self.gap {
            let of = audit.series.iter().find(|of| (of.epoch, of.shard) == (series.epoch, series.shard));
            let is_gap = of.is_some_and(|of| of.gaps.iter().any(|gap| gap.0 <= first && last <= gap.1));
            if !is_gap {
                return Err(nothing(&format!("gap that has the numbers {first} to {last}")));
            }
            let units = self.units.unwrap_or(i64::try_from(last - first + 1).unwrap_or(i64::MAX));
            return Ok(Closing { code: "P5-RC4", numbers: Some((series, first, last)), units, ..closing });
        }
        if self.refused {
            let units = audit.counted.refused;
            return if units > 0 {
                Ok(Closing { code: "REFUSED", units, ..closing })
            } else {
                Err(nothing("refused units"))
            };
        }
        let bridge = audit.equations.iter().find(|equation| equation.name.starts_with("database stock + landed since"));
        match bridge.map(|bridge| bridge.left - bridge.right) {
            Some(units) if units != 0 => Ok(Closing { code: "UNBALANCED", units, ..closing }),
            Some(_) | None => Err(nothing("difference between Redis and the database")),
        }
    }
}
