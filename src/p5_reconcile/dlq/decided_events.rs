//! The events of requests that were decided before their dead letters are removed: the message may be all that was left to publish its
//! event. A consumer whose last commit was not answered has parked it, and published nothing.
//!
//! Input: decided requests. Output: rows of events, which a consumer publishes, once more where they were published before. A crash
//! leaves the dead letters, and the next call stores the same rows.

use crate::domain::message::OrderMessage;
use crate::domain::outcome::Outcome;
use crate::events::published::PublishedEvent;
use crate::faults::left_out;
use crate::p5_reconcile::context::ReconcileRows;
use crate::store::mysql::DbError;

/// Stores their events, unless these wait already. After an error none of the messages may be removed. Repeating is safe.
pub(super) async fn store(rows: &ReconcileRows, decided: &[(OrderMessage, Outcome)]) -> Result<(), DbError> {
    if decided.is_empty() || left_out!(EventOfDeadLetter) {
        return Ok(());
    }
    let mut sale_ids: Vec<_> = decided.iter().map(|(accepted, _)| &accepted.purchase.sale_id).collect();
    sale_ids.sort_unstable();
    sale_ids.dedup();
    let prices = rows.persister.unit_prices(&sale_ids).await?;
    let event = |(accepted, outcome): &(OrderMessage, Outcome)| {
        let price = prices.get(&accepted.purchase.sale_id);
        PublishedEvent::of_outcome(accepted, *outcome, price).encoded()
    };
    rows.outcome_events.store(&decided.iter().map(event).collect::<Vec<_>>()).await
}
