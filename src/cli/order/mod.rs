//! `seckill order …`: where a request is and everything the servers know about it; orders listed, paid, cancelled, exported.

mod list;
mod show;
mod step;

use super::failure::Failure;
use crate::config::Layers;
use crate::domain::ids::RequestId;
use crate::orders::forms::{CancelForm, ExportForm, OrdersForm, PaymentForm, RefundedForm, RefundsForm};
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
        form: OrdersForm,
        #[arg(long)]
        json: bool,
    },
    /// Write orders as JSON lines to standard output, newest first, all of them
    Export {
        #[command(flatten)]
        form: ExportForm,
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
        #[command(flatten)]
        form: PaymentForm,
    },
    /// Record that the money of a payment went back
    Refunded {
        /// The request id, as the buyer got it
        #[arg(value_name = "RID")]
        id: RequestId,
        #[command(flatten)]
        form: RefundedForm,
    },
    /// List payments whose money has to go back, oldest first
    Refunds {
        #[command(flatten)]
        form: RefundsForm,
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
        #[command(flatten)]
        form: CancelForm,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: &OrderCommand) -> Result<u8, Failure> {
    match command {
        OrderCommand::Show { id, json } => show::show(layers, data_dir, *id, *json).await,
        OrderCommand::List { form, json } => list::list(layers, data_dir, form.clone(), *json).await,
        OrderCommand::Export { form } => list::export(layers, data_dir, form.clone()).await,
        OrderCommand::Paid { id, form } => step::paid(layers, data_dir, *id, form.clone()).await,
        OrderCommand::Refunded { id, form } => step::refunded(layers, data_dir, *id, form.clone()).await,
        OrderCommand::Refunds { form, json } => list::refunds(layers, data_dir, form.clone(), *json).await,
        OrderCommand::Cancel { id, form } => step::cancel(layers, data_dir, *id, form.clone()).await,
    }
}
