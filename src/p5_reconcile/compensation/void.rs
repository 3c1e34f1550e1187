//! Closes numbers that a request was given although it is decided under another one: Redis forgot that it had accepted the request,
//! and the buyer repeated it before the database had it.
//!
//! Input: the audit's void numbers. Output: each is closed, and its units are offered again: the request has its own, and no message
//! with the second number can become an order, because the request's id has its outcome. A crash leaves each number closed or not,
//! and the next round goes on.
//!
//! Whether Redis lacks these units shows the balance. Before a rebuild nothing balances, and nothing has to: it counts the units from
//! the database, those that are offered among them. Kept back, they were missing for good, in a sale that balances again.

use crate::p5_reconcile::audit::SaleAudit;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::rows::books::Series;
use crate::p5_reconcile::rows::books::void::{VoidNumber, Voided};

/// Numbers closed in one round, each a transaction of its own.
const CLOSED_MAX: usize = 1_000;

/// Closes what the audit found void; `offer`: its units are given again. Returns how many numbers. Repeating is safe.
pub(super) async fn close_void_numbers(
    context: &ReconcileContext,
    audit: &SaleAudit,
    offer: bool,
) -> Result<usize, ReconcileError> {
    let mut closed = 0;
    for open in audit.void.iter().take(CLOSED_MAX) {
        let number = open.record.number;
        let reason = format!("request {} was decided under another number: redis had forgotten it", open.request_id);
        let void = VoidNumber {
            series: Series { epoch: open.record.epoch, shard: open.shard },
            number,
            units: open.record.quantity.get().into(),
            reason: &reason,
            offer,
        };
        let came_to = context.rows.books.close_void(&audit.sale_id, &void).await?;
        if came_to != Voided::Not {
            closed += 1;
            tracing::warn!(
                phase = "p5_reconcile", sale = %audit.sale_id, request_id = %open.request_id, number, ?came_to,
                "the request was decided under another number, this one is closed"
            );
        }
    }
    Ok(closed)
}
