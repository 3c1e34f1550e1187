//! Everything the servers know about a request.

use crate::cli::failure::Failure;
use crate::cli::{context, output};
use crate::config::Layers;
use crate::domain::currency::amount_text;
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerState;
use crate::domain::order_life::OrderState;
use crate::domain::outcome::Outcome;
use crate::http::times::shown_time;
use crate::orders::rows::request_records::RequestRecords;
use crate::p5_reconcile::dlq::code_of;
use crate::p5_reconcile::{RequestHistory, request_history};
use serde_json::{Value, json};
use std::path::Path;

pub(super) async fn show(layers: &Layers, data_dir: &Path, id: RequestId, json: bool) -> Result<u8, Failure> {
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
            "user_id": found.record.user_id, "person": found.record.person, "quantity": found.record.quantity.get(),
            "accepted_at": shown_time(found.record.accepted_at_ms),
        })),
        "outbox_entry": history.outbox_entry,
        "parked": history.parked,
        "outcome": database.decided.as_ref().map(|decided| json!({
            "fate": code_of(decided.outcome), "sale_id": decided.sale_id, "shard": decided.shard, "epoch": decided.epoch,
            "number": decided.number, "decided_at": shown_time(decided.decided_at_ms),
        })),
        "order": database.order.as_ref().map(|order| json!({
            "sale_id": order.sale_id, "user_id": order.user_id, "person": order.person, "quantity": order.quantity,
            "amount_cents": order.amount_cents, "currency": database.currency, "source": order.source,
            "accepted_at": shown_time(order.accepted_at_ms), "created_at": shown_time(order.created_at_ms),
            "cancelled_at": order.cancelled_at_ms.map(shown_time), "cancelled_by": order.cancelled_by,
            "cancel_reason": order.cancel_reason, "state": order.state.map(OrderState::code),
            "state_at": order.state_at_ms.map(shown_time), "pay_by": order.pay_by_ms.map(shown_time),
        })),
        "payments": database.payments,
        "failed_request": database.failure.as_ref().map(|row| json!({
            "sale_id": row.sale_id, "user_id": row.user_id, "quantity": row.quantity, "source": row.reporter.code(),
            "reason": row.reason, "detail": row.detail, "status": row.status.code(),
            "created_at": shown_time(row.created_at_ms), "resolved_at": row.resolved_at_ms.map(shown_time),
            "resolved_by": row.resolved_by,
        })),
        "not_asked": history.not_asked,
    })
}

/// The order, its state and its payments, in words; a dash for what is not there.
fn order_words(database: &RequestRecords) -> (String, String, String) {
    let none = || "-".to_owned();
    let order = database.order.as_ref().map_or_else(none, |order| {
        let at = shown_time(order.created_at_ms);
        let cancelled = order.cancelled_at_ms.map_or_else(String::new, |at_ms| {
            let [by, reason] = [&order.cancelled_by, &order.cancel_reason].map(|text| text.as_deref().unwrap_or("-"));
            format!(", cancelled at {} by {by}: {reason}", shown_time(at_ms))
        });
        // The currency is the sale's: without its row it is unknown.
        let amount = database
            .currency
            .as_ref()
            .map_or_else(|| order.amount_cents.to_string(), |currency| amount_text(order.amount_cents, currency));
        format!("{} bought {} for {amount} via {} at {at}{cancelled}", order.user_id, order.quantity, order.source)
    });
    let state = database.order.as_ref().and_then(|order| {
        let deadline = order.pay_by_ms.map_or_else(String::new, |ms| format!(", to be paid by {}", shown_time(ms)));
        Some(format!("{}{deadline}", order.state?.code()))
    });
    let payments = database.payments.iter().map(|payment| {
        let why = payment.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        let amount = amount_text(payment.amount_cents, &payment.currency);
        format!("{}: {amount}, {}{why}", payment.payment_id, payment.state.code())
    });
    let payments = payments.collect::<Vec<_>>();
    (order, state.unwrap_or_else(none), if payments.is_empty() { none() } else { payments.join("\n") })
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
            shown_time(record.accepted_at_ms)
        )
    });
    let outcome = database.decided.as_ref().map_or_else(none, |decided| {
        let at = shown_time(decided.decided_at_ms);
        let number = decided.number.map_or_else(|| "another request's number".to_owned(), |n| format!("number {n}"));
        format!("{} at {at} ({number} of {})", code_of(decided.outcome), decided.sale_id)
    });
    let (order, state, payments) = order_words(database);
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
            ["state".to_owned(), state],
            ["payments".to_owned(), payments],
            ["register of failures".to_owned(), failure],
        ],
    );
    for problem in &history.not_asked {
        output::remark(&format!("not read: {problem}"));
    }
}
