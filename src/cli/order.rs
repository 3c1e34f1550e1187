//! `seckill order …`: where a request is, and everything the servers know about it; cancelling an order.

use super::failure::Failure;
use super::{context, output};
use crate::config::Layers;
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerState;
use crate::domain::outcome::Outcome;
use crate::p5_reconcile::dlq::code_of;
use crate::p5_reconcile::{RequestHistory, cancel_order, request_history};
use crate::store::mysql::cancels::Cancelled;
use serde_json::{Value, json};
use std::path::Path;

/// `seckill order …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum OrderCommand {
    /// Everything known about a request: ledger, outbox, dead-letter queues, outcome, order, register of failures.
    ///
    /// Looks in all live places, so it also finds requests that have not reached the database. Exit code 1 when nothing
    /// knows the request.
    Show {
        /// The request id, as the buyer got it
        #[arg(value_name = "RID")]
        id: RequestId,
        #[arg(long)]
        json: bool,
    },
    /// Cancel an order: its units are sold again, its row stays, its buyer's quota stays used
    ///
    /// The database first, then Redis; what Redis does not get now it gets from P5. Repeating it changes nothing. The
    /// request stays CONFIRMED for its buyer: informing and refunding him are not this program's business. Exit code 1 when
    /// there is no such order.
    #[command(after_help = "Example:
  seckill order cancel 7390817262993408 --reason 'never paid'")]
    Cancel {
        /// The request id, as the buyer got it
        #[arg(value_name = "RID")]
        id: RequestId,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        reason: String,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: &OrderCommand) -> Result<u8, Failure> {
    match command {
        OrderCommand::Show { id, json } => show(layers, data_dir, *id, *json).await,
        OrderCommand::Cancel { id, reason } => cancel(layers, data_dir, *id, reason).await,
    }
}

async fn cancel(layers: &Layers, data_dir: &Path, id: RequestId, reason: &str) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let context = servers.reconcile_context(&settings);
    let (cancelled, in_redis) = cancel_order(&context, id, reason, &context::operator()).await?;
    servers.redis.quit().await;
    let redis = if in_redis { "" } else { "; redis could not be given them yet, p5 does it" };
    match cancelled {
        Cancelled::Now(sale, units) => {
            output::line(&format!("cancelled; {sale} has {units} units more to sell{redis}"));
        }
        Cancelled::Before(_) => output::line(&format!("it was cancelled before, nothing changed{redis}")),
        Cancelled::NoOrder => {
            return Err(Failure::Failed(format!("request {id} is no order; see seckill order show {id}")));
        }
    }
    Ok(0)
}

async fn show(layers: &Layers, data_dir: &Path, id: RequestId, json: bool) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let servers = crate::roles::Servers::new(&settings)?;
    // When Redis does not answer, the other servers still show what they have.
    servers.redis.wait_connected(std::time::Duration::from_secs(3)).await;
    let history = request_history(&servers.reconcile_context(&settings), id).await;
    servers.redis.quit().await;
    if !history.is_known() {
        let unasked = if history.not_asked.is_empty() {
            "is it a request of this system? its ledger record is kept for p5_reconcile.ledger_retention_s".to_owned()
        } else {
            format!("but not everything could be read: {}", history.not_asked.join("; "))
        };
        return Err(Failure::Failed(format!("nothing knows request {id}; {unasked}")));
    }
    if json {
        output::json(&document(id, &history));
    } else {
        print(id, &history);
    }
    Ok(0)
}

/// Status and words, as the buyer and the operator would see them.
fn status(history: &RequestHistory) -> (&'static str, String) {
    if let Some(decided) = &history.database.decided {
        return match decided.outcome {
            Outcome::Ordered => ("CONFIRMED", "the order is in the database".to_owned()),
            Outcome::Failed(reason) => ("FAILED", format!("it will never be an order: {}", reason.code())),
        };
    }
    if let Some(entry) = history.parked.first() {
        return ("QUEUED", format!("parked as {}: {}; see seckill dlq", entry.entry, entry.reason));
    }
    if let Some(entry) = &history.outbox_entry {
        return ("QUEUED", format!("in the outbox as {entry}, the broker has not confirmed it yet"));
    }
    match history.ledger.as_ref().map(|found| found.record.state) {
        Some(LedgerState::Queued) => (
            "QUEUED",
            "handed to the broker: in an order or retry queue, or being landed; P5 lands it from the ledger when it is overdue"
                .to_owned(),
        ),
        Some(LedgerState::Confirmed | LedgerState::Failed(_)) => {
            ("UNKNOWN", "the ledger calls it settled, the database has no outcome; run seckill audit".to_owned())
        }
        None => ("UNKNOWN", "only the register of failures knows it; run seckill audit".to_owned()),
    }
}

fn document(id: RequestId, history: &RequestHistory) -> Value {
    let (status, summary) = status(history);
    let database = &history.database;
    json!({
        "request_id": id,
        "status": status,
        "summary": summary,
        "ledger": history.ledger.as_ref().map(|found| json!({
            "sale_id": found.sale_id, "shard": found.shard, "state": found.record.state.letter().to_string(),
            "reason": found.record.state.reason(), "number": found.record.number, "epoch": found.record.epoch,
            "user_id": found.record.user_id, "quantity": found.record.quantity.get(),
            "accepted_at": output::time(found.record.accepted_at_ms),
        })),
        "outbox_entry": history.outbox_entry,
        "parked": history.parked,
        "outcome": database.decided.as_ref().map(|decided| json!({
            "fate": code_of(decided.outcome), "sale_id": decided.sale_id, "shard": decided.shard, "epoch": decided.epoch,
            "number": decided.number, "decided_at": output::time(decided.decided_at_ms),
        })),
        "order": database.order.as_ref().map(|order| json!({
            "sale_id": order.sale_id, "user_id": order.user_id, "quantity": order.quantity,
            "amount_cents": order.amount_cents, "source": order.source,
            "accepted_at": output::time(order.accepted_at_ms), "created_at": output::time(order.created_at_ms),
            "cancelled_at": order.cancelled_at_ms.map(output::time), "cancelled_by": order.cancelled_by,
            "cancel_reason": order.cancel_reason,
        })),
        "failed_request": database.failure.as_ref().map(|row| json!({
            "sale_id": row.sale_id, "user_id": row.user_id, "quantity": row.quantity, "source": row.reporter.code(),
            "reason": row.reason, "detail": row.detail, "status": row.status.code(),
            "created_at": output::time(row.created_at_ms), "resolved_at": row.resolved_at_ms.map(output::time),
            "resolved_by": row.resolved_by,
        })),
        "not_asked": history.not_asked,
    })
}

fn print(id: RequestId, history: &RequestHistory) {
    let (status, summary) = status(history);
    output::line(&format!("request {id}: {status}, {summary}"));
    let none = || "-".to_owned();
    let database = &history.database;
    let ledger = history.ledger.as_ref().map_or_else(none, |found| {
        let record = &found.record;
        format!(
            "{} number {} of {} (shard {}, epoch {}), {} bought {} at {}",
            record.state.letter(),
            record.number,
            found.sale_id,
            found.shard,
            record.epoch,
            record.user_id,
            record.quantity.get(),
            output::time(record.accepted_at_ms)
        )
    });
    let outcome = database.decided.as_ref().map_or_else(none, |decided| {
        let at = output::time(decided.decided_at_ms);
        let number = decided.number.map_or_else(|| "another request's number".to_owned(), |n| format!("number {n}"));
        format!("{} at {at} ({number} of {})", code_of(decided.outcome), decided.sale_id)
    });
    let order = database.order.as_ref().map_or_else(none, |order| {
        let at = output::time(order.created_at_ms);
        let cancelled = order.cancelled_at_ms.map_or_else(String::new, |at_ms| {
            let [by, reason] = [&order.cancelled_by, &order.cancel_reason].map(|text| text.as_deref().unwrap_or("-"));
            format!(", cancelled at {} by {by}: {reason}", output::time(at_ms))
        });
        format!(
            "{} bought {} for {} via {} at {at}{cancelled}",
            order.user_id, order.quantity, order.amount_cents, order.source
        )
    });
    let failure = database.failure.as_ref().map_or_else(none, |row| {
        let closed = row.resolved_by.as_ref().map_or_else(String::new, |by| format!(", closed by {by}"));
        format!("{} {} ({}): {}{closed}", row.status.code(), row.reason, row.reporter.code(), row.detail)
    });
    let parked = history.parked.iter().map(|entry| format!("{} {}", entry.entry, entry.reason)).collect::<Vec<_>>();
    output::table(
        ["where", "what"],
        [
            ["ledger (redis)".to_owned(), ledger],
            ["outbox (redis)".to_owned(), history.outbox_entry.clone().unwrap_or_else(none)],
            ["parked".to_owned(), if parked.is_empty() { none() } else { parked.join("\n") }],
            ["outcome (database)".to_owned(), outcome],
            ["order (database)".to_owned(), order],
            ["register of failures".to_owned(), failure],
        ],
    );
    for problem in &history.not_asked {
        output::remark(&format!("not read: {problem}"));
    }
}
