//! Numbers that are nobody's: Redis forgot that it had accepted a request, and accepted it again under another number before the
//! database had it. The request is decided once; the number that it is not decided under is closed by P5.
//!
//! Input: the closed numbers of the books; a ledger record and the outcome of its request. Output: void numbers and marks in the
//! audit. Reads only.

use super::finding::FindingKind;
use super::result::OpenRequest;
use super::run::AuditRun;
use crate::domain::ledger::LedgerState;
use crate::orders::rows::outcomes::RequestOutcome;
use crate::p5_reconcile::rows::books::{Books, Series};
use std::collections::BTreeSet;

/// The numbers that P5 has closed as nobody's.
pub(super) struct VoidNumbers(BTreeSet<(Series, u64)>);

impl VoidNumbers {
    pub(super) fn of(books: &Books) -> Self {
        let void = books.closed.iter().filter(|closed| closed.is_void);
        Self(
            void.filter_map(|closed| {
                let series = Series { epoch: closed.epoch?, shard: closed.shard? };
                Some((series, closed.first?))
            })
            .collect(),
        )
    }

    pub(super) fn has(&self, series: Series, number: u64) -> bool {
        self.0.contains(&(series, number))
    }

    /// How many void numbers of the series are among these.
    pub(super) fn count(&self, series: Series, is_among: impl Fn(u64) -> bool) -> u64 {
        self.0.range((series, 0)..=(series, u64::MAX)).filter(|(_, number)| is_among(*number)).count() as u64
    }
}

/// Notes that the ledger record of a decided request has to be marked, that its number is void, or finds a decision that is not about
/// what the ledger accepted. `lacking`: its number has no outcome.
pub(super) fn note_decided(run: &mut AuditRun<'_>, open: OpenRequest, decided: &RequestOutcome, lacking: bool) {
    let (number, shard) = (open.record.number, open.shard);
    let accepted = open.record.order_message(open.request_id, &run.sale.sale_id, shard);
    if open.record.state == LedgerState::Queued {
        run.audit.unmarked.entry(shard).or_default().push((open.request_id, decided.outcome));
    }
    if decided.has_number_of(&accepted) || !decided.is_of(&accepted) {
        if decided.number.is_some() && decided.payload_hash != accepted.payload_hash() {
            let units = open.record.quantity.get();
            let detail = format!(
                "shard {shard}: the ledger accepted {units} units as number {number}, the database decided something else under this id"
            );
            run.find(FindingKind::LedgerDamaged, Some(open.request_id), detail);
        }
        return;
    }
    if !lacking {
        return;
    }
    // P5 closes it in the same round. Whoever asks in between, or without P5, reads of it when it is late.
    if open.age_ms > run.options.window.limit_ms() {
        let detail = format!(
            "shard {shard}: redis accepted the request again as number {number}, and it is decided under another number; the reconciler closes this one"
        );
        run.find(FindingKind::LedgerDamaged, Some(open.request_id), detail);
    }
    run.audit.void.push(open);
}
