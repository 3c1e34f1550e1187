//! The trace lines of decisions, for the checker of test builds (`trace_points`).
//!
//! Input: requests before the database is asked, and its verdicts. Output: a line for each. A crash between the two leaves the
//! request decided or not; a verdict that is an error says the same.

use crate::domain::message::OrderMessage;
use crate::domain::outcome::{Outcome, Verdict};
use crate::store::mysql::DbError;
use crate::trace_points::trace_point;

/// These are about to be decided by P4, a compensation or an operator.
pub(crate) fn decide(orders: &[OrderMessage], by: &str) {
    for order in orders {
        trace_point!(Decide, order, { by: by });
    }
}

/// What became of one.
pub(crate) fn decided(order: &OrderMessage, by: &str, verdict: &Result<Verdict, DbError>) {
    let failed = |outcome: &Outcome| if *outcome == Outcome::Ordered { "ORDER" } else { "FAILED" };
    trace_point!(Decided, order, {
        by: by,
        verdict: match verdict {
            Ok(Verdict::Ordered) => "ORDERED",
            Ok(Verdict::Already(_)) => "ALREADY",
            Ok(Verdict::Refused(_)) => "REFUSED",
            Ok(Verdict::Conflict) => "CONFLICT",
            Err(_) => "ERROR",
        },
        outcome: verdict.as_ref().ok().and_then(|verdict| verdict.outcome()).as_ref().map(failed),
        reason: match verdict {
            Ok(Verdict::Refused(reason) | Verdict::Already(Outcome::Failed(reason))) => Some(reason.code().to_owned()),
            Ok(Verdict::Ordered | Verdict::Already(Outcome::Ordered) | Verdict::Conflict) => None,
            Err(error) => Some(error.to_string()),
        },
    });
}
