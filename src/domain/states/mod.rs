//! The field's vocabulary: the state codes of the five phases, and the table of allowed transitions.
//!
//! The codes appear in logs, metrics, API answers, docs and tests. `docs/states.md` is printed from this module and a test
//! fails when the two drift apart.

mod codes;
mod machine;
mod table;

pub(crate) use codes::{P1Entry, P4Persist, Phase};
pub use codes::{P2Reserve, P3Relay, P5Reconcile};
pub use machine::{RequestEvent, State, Transition, next};
pub use table::markdown;

/// Every state of every phase, in the order of the pipeline; metrics export each from the start.
pub fn all() -> impl Iterator<Item = State> {
    P1Entry::ALL
        .into_iter()
        .map(State::P1)
        .chain(P2Reserve::ALL.into_iter().map(State::P2))
        .chain(P3Relay::ALL.into_iter().map(State::P3))
        .chain(P4Persist::ALL.into_iter().map(State::P4))
        .chain(P5Reconcile::ALL.into_iter().map(State::P5))
}
