//! Copies relay-DLQ entries into the failed requests before they leave Redis.
//!
//! A crash between the two leaves the entry in both places; the next round finds its row and removes it (window 46).

use super::entry::PAYLOAD_MAX;
use crate::domain::message::{self, MessageError};
#[cfg(feature = "faults")]
use crate::faults::left_out;
use crate::orders::rows::failed_requests::OpenFailure;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::ledger_lookup;
use crate::p5_reconcile::pages::RelayDlqPages;
use crate::store::mysql::codes::Reporter;
use crate::store::redis::ParkedEntry;

/// Pages of a shard's relay DLQ copied in one round.
const PAGES_MAX: usize = 100;

/// Copies the entries, then removes them from Redis. An entry that cannot be read as a message stays for a person, and so does one
/// that the database refuses; the others are copied all the same. Sets the gauge of what is left.
///
/// # Errors
/// An outage at once, else the first refusal, after all entries were tried.
pub(in crate::p5_reconcile) async fn copy_relay_dlq(context: &ReconcileContext) -> Result<(), ReconcileError> {
    let (mut left, mut refused) = (0, None);
    for shard in 0..context.shards {
        let mut pages = RelayDlqPages::new(&context.redis.relay_dlq, shard);
        for _ in 0..PAGES_MAX {
            let Some(page) = pages.next().await? else { break };
            for entry in &page {
                match copy(context, shard, entry).await {
                    Ok(()) => {}
                    Err(error) if error.is_outage() => return Err(error),
                    Err(error) => {
                        // The first one of a round says enough: a thousand may be refused for the same reason.
                        if refused.is_none() {
                            tracing::warn!(phase = "p5_reconcile", shard, entry = %entry.id, %error, "relay DLQ entry not copied, it stays");
                        }
                        refused = refused.or(Some(error));
                    }
                }
            }
        }
        left += context.redis.relay_dlq.count(shard).await?;
    }
    metrics::gauge!("seckill_p5_reconcile_dlq_count", "source" => "relay").set(left as f64);
    refused.map_or(Ok(()), Err)
}

async fn copy(context: &ReconcileContext, shard: u16, entry: &ParkedEntry) -> Result<(), ReconcileError> {
    let named = (entry.request_id, entry.sale_id.as_ref());
    let accepted = ledger_lookup::order_message_of(context, &entry.payload, named).await?;
    let Some(accepted) = accepted else { return Ok(()) };
    // Other versions can read the message of a later version, and the failed request keeps its bytes.
    let readable = matches!(message::decode(&entry.payload), Ok(_) | Err(MessageError::UnknownVersion(_)));
    let failure = OpenFailure {
        accepted: &accepted,
        reporter: Reporter::RelayDlq,
        reason: if readable { "ATTEMPTS_SPENT" } else { "UNREADABLE" },
        detail: &entry.reason,
        payload: entry.payload.get(..PAYLOAD_MAX).unwrap_or(&entry.payload),
    };
    let new = context.rows.register.open(&failure).await?;
    if !readable {
        // The request is a failed request now; the bytes themselves are for a person.
        return Ok(());
    }
    #[cfg(feature = "faults")]
    if left_out!(NoGiveBack) && new {
        context.redis.stock.give_back(shard, &accepted.purchase).await?;
    }
    context.redis.relay_dlq.remove(shard, &entry.id).await?;
    tracing::warn!(
        phase = "p5_reconcile", request_id = %accepted.purchase.request_id, reason = %entry.reason,
        attempts = entry.attempts, new, "relay DLQ entry copied to the failed requests"
    );
    Ok(())
}
