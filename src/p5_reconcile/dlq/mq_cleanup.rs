//! Keeps the MQ DLQ small: removes messages whose request has its outcome, and adds the other requests to the failed requests.
//!
//! Input: messages of the MQ DLQ; meanwhile no other reader gets them. Output: an ack for each message whose outcome was read from
//! the database, with the same fingerprint, and its event (`decided_events`); an open failed request for each message without an
//! outcome. Messages that are not ours, or contradict the recorded outcome, stay for a person. A message of a later version is known
//! by the request id it came with, so that one which met only older consumers does not stay for ever (window 24).
//!
//! A crash at any line gives every message that was not acknowledged back to the queue, in its place; the outcome was there before
//! the ack, so nothing depends on the message any more.

use super::decided_events;
use super::entry::{DlqError, PAYLOAD_MAX};
use super::find::{reason_of, request_id_of};
use super::mq_scan::{MqDlqContents, MqDlqScan};
use crate::domain::ids::RequestId;
use crate::domain::message::{self, MessageError, OrderMessage};
use crate::orders::rows::RegisterRows;
use crate::orders::rows::failed_requests::OpenFailure;
use crate::p5_reconcile::context::ReconcileContext;
use crate::p5_reconcile::ledger_lookup;
use crate::p5_reconcile::rows::books::Series;
use crate::store::mysql::codes::Reporter;
use crate::store::rabbit::{DlqReader, ParkedMessage};
use std::collections::HashSet;

/// Messages whose outcomes are read with one statement.
const PAGE: usize = 500;
/// Messages read in one round, if there is time for them; they are held in memory meanwhile.
const READ_MAX: usize = 10_000;
/// Messages removed in one round, so that a flood of them leaves the broker capacity for the live traffic.
const REMOVED_MAX: usize = 2_000;
/// Failed requests added in one round, each a commit of its own, so that a flood of messages leaves time for the audit and a stop.
const NOTED_MAX: usize = 200;

/// What one cleanup came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MqDlqCleanup {
    /// Messages that were read.
    pub seen_count: usize,
    /// Messages removed because their request has its outcome.
    pub removed_count: usize,
    /// Requests that were added to the failed requests.
    pub noted_count: usize,
    /// Messages for a person: unreadable, or contradicting the recorded outcome.
    pub foreign_count: usize,
    /// Messages that were not reached.
    pub unseen_count: u64,
}

/// Cleans the MQ DLQ once. `noted` remembers which requests are failed requests already, to save statements; `contents` is for the
/// audits of the same round, and right even when this fails. Repeating is safe.
pub async fn clean_mq_dlq(
    context: &ReconcileContext,
    noted: &mut HashSet<RequestId>,
    contents: &mut MqDlqContents,
) -> Result<MqDlqCleanup, DlqError> {
    let mut cleanup = MqDlqCleanup::default();
    let mut scan = MqDlqScan::begin(&context.rabbit, READ_MAX, contents).await?;
    if noted.len() > READ_MAX {
        noted.clear();
    }
    loop {
        let mut page = Vec::with_capacity(PAGE);
        while page.len() < PAGE
            && let Some(parked) = scan.next().await?
        {
            page.push(parked);
        }
        if page.is_empty() {
            break;
        }
        cleanup.seen_count += page.len();
        clean_page(context, &mut scan.reader, &page, noted, &mut cleanup).await?;
    }
    scan.close().await?;
    cleanup.unseen_count = contents.unseen_count.unwrap_or(0);
    let left = (cleanup.seen_count - cleanup.removed_count) as u64 + cleanup.unseen_count;
    metrics::gauge!("seckill_p5_reconcile_dlq_count", "source" => "mq").set(left as f64);
    metrics::gauge!("seckill_p5_reconcile_dlq_foreign_count").set(cleanup.foreign_count as f64);
    metrics::counter!("seckill_p5_reconcile_dlq_removed_total").increment(cleanup.removed_count as u64);
    if cleanup.removed_count > 0 || cleanup.noted_count > 0 {
        tracing::info!(phase = "p5_reconcile", ?cleanup, "MQ DLQ");
    }
    Ok(cleanup)
}

async fn clean_page(
    context: &ReconcileContext,
    reader: &mut DlqReader,
    page: &[ParkedMessage],
    noted: &mut HashSet<RequestId>,
    cleanup: &mut MqDlqCleanup,
) -> Result<(), DlqError> {
    let read = accepted_of(context, page).await?;
    let ids: Vec<RequestId> = read.iter().flatten().map(|accepted| accepted.purchase.request_id).collect();
    let outcomes = context.rows.requests.outcomes_of(&ids).await?;
    let mut finished = Vec::new();
    for (parked, accepted) in page.iter().zip(read) {
        let decided = accepted.as_ref().and_then(|accepted| outcomes.get(&accepted.purchase.request_id));
        match (accepted, decided) {
            (Some(accepted), Some(decided)) if decided.payload_hash == accepted.payload_hash() => {
                // The next round removes the others; they are read for the audits.
                if cleanup.removed_count + finished.len() < REMOVED_MAX {
                    finished.push((parked, (accepted, decided.outcome)));
                }
            }
            // The same purchase, decided under another number: nothing depends on the message once its own number is settled.
            (Some(accepted), Some(decided))
                if decided.is_of(&accepted) && cleanup.removed_count + finished.len() < REMOVED_MAX =>
            {
                let series = Series { epoch: accepted.epoch, shard: accepted.shard };
                if context.rows.books.is_settled(&accepted.purchase.sale_id, series, accepted.number).await? {
                    finished.push((parked, (accepted, decided.outcome)));
                } else {
                    cleanup.foreign_count += 1;
                }
            }
            // It contradicts what was decided; a failed request would be about the decided one.
            (Some(_), Some(_)) => cleanup.foreign_count += 1,
            (Some(_), None) if cleanup.noted_count >= NOTED_MAX => {}
            (Some(accepted), None) => {
                cleanup.noted_count += note(&context.rows.register, parked, &accepted, noted).await?;
            }
            (None, _) => {
                cleanup.foreign_count += 1;
                if let Some(id) = request_id_of(parked).filter(|id| !noted.contains(id))
                    && context.rows.requests.outcome_of(id).await?.is_none()
                    && let Some(accepted) = ledger_lookup::order_message(context, id, None).await?
                {
                    cleanup.noted_count += note(&context.rows.register, parked, &accepted, noted).await?;
                }
            }
        }
    }
    let (messages, decided): (Vec<_>, Vec<_>) = finished.into_iter().unzip();
    decided_events::store(&context.rows, &decided).await?;
    for parked in messages {
        reader.remove(parked).await?;
        cleanup.removed_count += 1;
    }
    Ok(())
}

/// What the messages of a page say. A message of a later version cannot be read; its relay wrote the request id beside it, and
/// the ledger knows what was accepted.
async fn accepted_of(
    context: &ReconcileContext,
    page: &[ParkedMessage],
) -> Result<Vec<Option<OrderMessage>>, DlqError> {
    let read: Vec<_> = page.iter().map(|parked| message::decode(&parked.body)).collect();
    let is_later = |read: &Result<_, _>| matches!(read, Err(MessageError::UnknownVersion(_)));
    let later = page.iter().zip(&read).filter(|(_, read)| is_later(read));
    let ids: Vec<RequestId> = later.filter_map(|(parked, _)| request_id_of(parked)).collect();
    let known = ledger_lookup::order_messages(context, &ids).await?;
    let accepted = page.iter().zip(read).map(|(parked, read)| match read {
        Ok(accepted) => Some(accepted),
        Err(MessageError::UnknownVersion(_)) => request_id_of(parked).and_then(|id| known.get(&id).cloned()),
        Err(MessageError::TooLong(_) | MessageError::Malformed(_)) => None,
    });
    Ok(accepted.collect())
}

/// Adds an undecided request to the failed requests, once; the message stays.
async fn note(
    register: &RegisterRows,
    parked: &ParkedMessage,
    accepted: &OrderMessage,
    noted: &mut HashSet<RequestId>,
) -> Result<usize, DlqError> {
    if noted.contains(&accepted.purchase.request_id) {
        return Ok(0);
    }
    let why = reason_of(parked);
    let (reason, detail) = why.split_once(": ").unwrap_or((&why, ""));
    let payload = parked.body.get(..PAYLOAD_MAX).unwrap_or(&parked.body);
    let failure = OpenFailure { accepted, reporter: Reporter::MqDlq, reason, detail, payload };
    let new = register.open(&failure).await?;
    noted.insert(accepted.purchase.request_id);
    Ok(usize::from(new))
}
