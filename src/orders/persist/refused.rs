//! How often the database refused for good what Redis had admitted, by reason. Each one is a buyer who got 202 and ends as
//! FAILED, and a sign that Redis and the database did not agree: about the stock, the buyer, or the limit.

use crate::domain::outcome::FailReason;

/// The reasons that persisting can find.
const REASONS: [FailReason; 3] = [FailReason::SoldOut, FailReason::DuplicateBuyer, FailReason::LimitExceeded];

/// Counts refusals that were recorded now, on every path that persists. A closed number is none: a person decided that, or P5.
pub(crate) fn count(reason: FailReason, refused: u64) {
    if !REASONS.contains(&reason) {
        return;
    }
    metrics::counter!("seckill_p4_persist_refused_total", "reason" => reason.code()).increment(refused);
}

/// Exports the counter with 0: the first refusal of a process has to count as an increase.
pub(crate) fn refused_from_zero() {
    for reason in REASONS {
        count(reason, 0);
    }
}
