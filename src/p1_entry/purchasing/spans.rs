//! A purchase as spans: the call (P1) and, inside it, the decision (P2).
//!
//! Input: when the call and the question began, and the decision. Output: two spans, if the order is traced.

use crate::domain::ids::RequestId;
use crate::domain::reserve::Reserved;
use crate::domain::states::{P1Entry, P2Reserve, Phase, State};
use crate::domain::trace::TraceStep;
use crate::p2_reserve::Decision;
use crate::telemetry::traces::{self, SpanResult};
use std::time::SystemTime;

/// Records both. `begun` and `asked` are `None` while traces are off.
pub(super) fn record(request_id: RequestId, begun: Option<SystemTime>, asked: Option<SystemTime>, decision: &Decision) {
    let Some((begun, asked)) = begun.zip(asked) else { return };
    let Some(trace) = traces::sampled(request_id) else { return };
    let (state, known) = outcome(decision);
    let reserve = SpanResult { begun: asked, state: state.map(State::P2), attempt: 1, failed: !known };
    let call = SpanResult { begun, state: Some(State::P1(P1Entry::Ready)), attempt: 1, failed: !known };
    // The span of a replay is a child of the first call: an order has one trace.
    let again = state == Some(P2Reserve::Replayed);
    let step = if again { traces::leaf(Phase::P1Entry, begun) } else { TraceStep::main(Phase::P1Entry) };
    trace.record(TraceStep { phase: Phase::P2Reserve, ..step }, reserve);
    trace.record(step, call);
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
