//! A purchase as spans: the call (P1) and, inside it, the decision (P2).
//!
//! Input: when the call and the question began, and the decision. Output: two spans, if the order is traced.

use crate::domain::ids::RequestId;
use crate::domain::reserve::Reserved;
use crate::domain::states::{P1Entry, P2Reserve, Phase, State};
use crate::domain::trace::TraceStep;
use crate::p2_reserve::Decision;
use crate::telemetry::traces::{self, Done, further};
use std::time::SystemTime;

/// Tells both. `begun` and `asked` are `None` while traces are off.
pub(super) fn tell(id: RequestId, begun: Option<SystemTime>, asked: Option<SystemTime>, decision: &Decision) {
    let Some((begun, asked)) = begun.zip(asked) else { return };
    let Some(told) = traces::of(id) else { return };
    let (state, known) = outcome(decision);
    let reserve = Done { begun: asked, state: state.map(State::P2), attempt: 1, failed: !known };
    let call = Done { begun, state: Some(State::P1(P1Entry::Ready)), attempt: 1, failed: !known };
    // A replay is a call of its own under the first one: orders hang under what first decided them.
    let again = state == Some(P2Reserve::Replayed);
    let step = if again { further(Phase::P1Entry, begun) } else { TraceStep::joint(Phase::P1Entry) };
    told.tell(TraceStep { phase: Phase::P2Reserve, ..step }, reserve);
    told.tell(step, call);
}

/// The state, where there is one, and whether it is known that the purchase was accepted or was not.
fn outcome(decision: &Decision) -> (Option<P2Reserve>, bool) {
    match decision {
        Decision::Decided(reserved) => (Reserved::state(reserved), true),
        Decision::AllEmpty => (Some(P2Reserve::BucketAllEmpty), true),
        Decision::BucketEmpty => (Some(P2Reserve::BucketEmpty), true),
        Decision::Unavailable | Decision::Overloaded => (None, true),
        Decision::Unknown => (None, false),
    }
}
