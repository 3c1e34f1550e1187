//! `seckill order …`: where a request is and everything the servers know about it; orders listed, paid, cancelled, exported.

mod list;
mod show;
mod step;

use super::failure::Failure;
use crate::config::Layers;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::instant::instant;
use crate::orders::refunds::{REFUNDS_PAGE, RefundsForm};
use clap::builder::NonEmptyStringValueParser;
use std::path::Path;

/// `seckill order …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum OrderCommand {
    /// Everything known about a request: ledger, outbox, dead-letter queues, outcome, order, payments, register of failures.
    ///
    /// Searches all live places, so it also finds requests that have not reached the database. Exit code 1 when nothing
    /// knows the request.
    Show {
        /// The request id, as the buyer got it
        #[arg(value_name = "RID")]
        id: RequestId,
        #[arg(long)]
        json: bool,
    },
    /// List orders, newest first
    #[command(after_help = "Example:
  seckill order list --sale demo --state UNPAID --limit 20")]
    List {
        #[command(flatten)]
        filter: OrderFilter,
        /// Most orders, 1 to 500
        #[arg(long, default_value_t = 50)]
        limit: u16,
        #[arg(long)]
        json: bool,
    },
    /// Write orders as JSON lines to standard output, newest first, all of them
    Export {
        #[command(flatten)]
        filter: OrderFilter,
    },
    /// Record a payment as the shop's backend does, and try its order
    ///
    /// The money is on record in any case but one: while the request is accepted and its order is still to be written, or that cannot be
    /// read, nothing is recorded; repeat it. Exit code 1 then, and when no order could take the money: it has to go back. Repeating it
    /// with the same payment id changes nothing.
    Paid {
        /// The request id, as the buyer got it
        #[arg(value_name = "RID")]
        id: RequestId,
        /// The provider's id of the payment, 1 to 128 characters; with several providers, PROVIDER:ID
        #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        payment_id: String,
        /// Amount in the currency's smallest unit: 199900 for 1999.00 CNY
        #[arg(long, value_parser = smallest_units, allow_negative_numbers = true)]
        amount: i64,
        /// ISO 4217 code
        #[arg(long)]
        currency: String,
    },
    /// Record that the money of a payment went back
    Refunded {
        /// The request id, as the buyer got it
        #[arg(value_name = "RID")]
        id: RequestId,
        /// The provider's id of the payment
        #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        payment_id: String,
    },
    /// List payments whose money has to go back, oldest first
    Refunds {
        /// Only of this sale
        #[arg(long)]
        sale: Option<SaleId>,
        /// Most payments, 1 to 1000
        #[arg(long, default_value_t = REFUNDS_PAGE, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Those behind the page before: its `next`
        #[arg(long)]
        cursor: Option<String>,
        #[arg(long)]
        json: bool,
    },
    /// Cancel an order: its units are sold again, its row stays; its buyer's quota stays used, but for an unpaid order whose sale returns limits
    ///
    /// The database first, then Redis; what Redis does not get now it gets from P5. Repeating it changes nothing. The
    /// request stays CONFIRMED for its buyer, its order is CANCELLED. Money that was paid for it has to go back: it is listed by
    /// `seckill order refunds`. Exit code 1 when there is no such order, or it has expired; also while its
    /// sale is being rebuilt: repeat it then.
    #[command(after_help = "Example:
  seckill order cancel 7390817262993408 --reason 'never paid'")]
    Cancel {
        /// The request id, as the buyer got it
        #[arg(value_name = "RID")]
        id: RequestId,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
        reason: String,
    },
}

/// Which orders.
#[derive(Debug, clap::Args)]
pub(super) struct OrderFilter {
    /// Only of this sale
    #[arg(long)]
    sale: Option<SaleId>,
    /// Only of this buyer
    #[arg(long)]
    buyer: Option<UserId>,
    /// Only in this state: UNPAID, PAID, EXPIRED or CANCELLED; needs --sale or --buyer
    #[arg(long)]
    state: Option<String>,
    /// Only accepted at this time or later, RFC 3339: when the purchase was accepted, whenever its token was issued
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<chrono::DateTime<chrono::Utc>>,
    /// Only accepted before this time, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = instant)]
    to: Option<chrono::DateTime<chrono::Utc>>,
    /// Only orders before this one: the last one of the page before, or of an export that was cut off
    #[arg(long, value_name = "RID")]
    cursor: Option<RequestId>,
}

/// A whole number of the smallest unit; people write amounts with a point.
fn smallest_units(text: &str) -> Result<i64, String> {
    let expected = "expected a whole number of the currency's smallest unit, e.g. 199900 for 1999.00 CNY";
    text.parse().map_err(|_| expected.to_owned())
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: &OrderCommand) -> Result<u8, Failure> {
    match command {
        OrderCommand::Show { id, json } => show::show(layers, data_dir, *id, *json).await,
        OrderCommand::List { filter, limit, json } => list::list(layers, data_dir, filter, (*limit, *json)).await,
        OrderCommand::Export { filter } => list::export(layers, data_dir, filter).await,
        OrderCommand::Paid { id, payment_id, amount, currency } => {
            step::paid(layers, data_dir, *id, step::PaymentArgs { payment_id, amount_cents: *amount, currency }).await
        }
        OrderCommand::Refunded { id, payment_id } => step::refunded(layers, data_dir, *id, payment_id).await,
        OrderCommand::Refunds { sale, limit, cursor, json } => {
            let form = RefundsForm { sale: sale.clone(), cursor: cursor.clone(), limit: *limit };
            list::refunds(layers, data_dir, form, *json).await
        }
        OrderCommand::Cancel { id, reason } => step::cancel(layers, data_dir, *id, reason).await,
    }
}
