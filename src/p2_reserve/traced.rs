//! The trace lines of P2, for the checker of test builds (`trace_points`).
//!
//! Input: a group before its script call, and the reply. Output: a line for each request. A crash between the two leaves the
//! question open, as it leaves the buyer without an answer.

use crate::domain::ids::SaleId;
use crate::domain::ledger::LedgerRecord;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::store::redis::{RedisFault, ReservedGroup};
use crate::trace_points::{is_on, trace_point};

/// The script is about to be called for these.
pub(super) fn asks((sale, shard, epoch): (&SaleId, u16, u32), purchases: &[&Purchase]) {
    if !is_on() {
        return;
    }
    for purchase in purchases {
        let (user, qty) = (purchase.user_id.as_str(), purchase.quantity.get());
        trace_point!(Ask {
            rid: purchase.request_id.to_string(),
            sale: sale.as_str(),
            user: user,
            qty: qty,
            shard: shard,
            epoch: epoch,
        });
    }
}

/// What came of that call.
pub(super) fn answer(purchases: &[&Purchase], answer: &Result<ReservedGroup, RedisFault>) {
    if !is_on() {
        return;
    }
    for (place, purchase) in purchases.iter().enumerate() {
        let rid = purchase.request_id.to_string();
        match answer {
            Ok(group) => {
                let verdict = group.reserved.get(place).map_or("NONE", word);
                trace_point!(Reserved { rid: rid, verdict: verdict, replicated: group.replicated });
            }
            Err(RedisFault::Unknown(_) | RedisFault::Contract(_)) => trace_point!(Unanswered { rid: rid }),
            Err(RedisFault::Refused(_) | RedisFault::NotSent(_) | RedisFault::NoScript) => {
                trace_point!(NotRun { rid: rid });
            }
        }
    }
}

/// What the ledger has of requests that got no reply.
pub(super) fn looked_up(purchases: &[&Purchase], records: &[Option<LedgerRecord>]) {
    if !is_on() {
        return;
    }
    for (purchase, record) in purchases.iter().zip(records) {
        let verdict = match record {
            Some(record) if record.user_id == purchase.user_id => "ACCEPTED",
            Some(_) => "CONFLICT",
            None => "ABSENT",
        };
        trace_point!(LookedUp { rid: purchase.request_id.to_string(), verdict: verdict });
    }
}

/// A decision of the script, in a word.
const fn word(reserved: &Reserved) -> &'static str {
    match reserved {
        Reserved::Accepted => "ACCEPTED",
        Reserved::Replayed => "REPLAYED",
        Reserved::DuplicateBuyer(_) => "DUPLICATE",
        Reserved::LimitExceeded(_) | Reserved::DropLimitExceeded(_) => "LIMIT_EXCEEDED",
        Reserved::Short(_) => "SHORT",
        Reserved::Conflict => "CONFLICT",
        Reserved::Paused
        | Reserved::Closed
        | Reserved::Frozen
        | Reserved::NotLoaded
        | Reserved::StaleEpoch
        | Reserved::Backlog
        | Reserved::Damaged
        | Reserved::OtherShards
        | Reserved::NotStarted(_)
        | Reserved::Ended
        | Reserved::TokenMissing
        | Reserved::OnlyByLine => "REFUSED",
    }
}
