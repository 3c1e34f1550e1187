//! The field's vocabulary: the state codes of the six phases, and the table of allowed transitions.
//!
//! The codes appear in logs, metrics, API answers, docs and tests. `docs/states.md` is printed from this module
//! (`states_page`) and a test fails when the two drift apart.

mod codes;
mod machine;

pub(crate) use codes::{P1Entry, P4Persist, Phase};
pub use codes::{P2Reserve, P3Relay, P5Reconcile, P6Fulfil};
pub use machine::{RequestEvent, State, Transition, next};

/// Every state of every phase, in the order of the pipeline; metrics export each from the start.
pub fn all() -> impl Iterator<Item = State> {
    P1Entry::ALL
        .into_iter()
        .map(State::P1)
        .chain(P2Reserve::ALL.into_iter().map(State::P2))
        .chain(P3Relay::ALL.into_iter().map(State::P3))
        .chain(P4Persist::ALL.into_iter().map(State::P4))
        .chain(P5Reconcile::ALL.into_iter().map(State::P5))
        .chain(P6Fulfil::ALL.into_iter().map(State::P6))
}

/// The place of a state in [`all`].
pub(crate) const fn place(state: State) -> usize {
    const P2: usize = P1Entry::ALL.len();
    const P3: usize = P2 + P2Reserve::ALL.len();
    const P4: usize = P3 + P3Relay::ALL.len();
    const P5: usize = P4 + P4Persist::ALL.len();
    const P6: usize = P5 + P5Reconcile::ALL.len();
    // The states of a phase are in the order of their declaration.
    match state {
        State::P1(state) => state as usize,
        State::P2(state) => P2 + state as usize,
        State::P3(state) => P3 + state as usize,
        State::P4(state) => P4 + state as usize,
        State::P5(state) => P5 + state as usize,
        State::P6(state) => P6 + state as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn each_state_has_the_place_that_it_has_among_all() {
        assert!(all().enumerate().all(|(at, state)| place(state) == at));
    }

    fn has_final_outcome(state: State) -> bool {
        matches!(
            state,
            State::P4(P4Persist::DbOk | P4Persist::BizErrorAck | P4Persist::Idempotent)
                | State::P5(P5Reconcile::Compensated | P5Reconcile::FailedFinal | P5Reconcile::Match)
        )
    }

    #[test]
    fn codes_are_unique_and_carry_their_phase() {
        let codes: HashSet<_> = all().map(State::code).collect();
        assert_eq!(codes.len(), all().count());
        assert!(all().all(|s| s.code()[..2].eq_ignore_ascii_case(&s.phase().name()[..2])));
    }

    #[test]
    fn a_final_outcome_is_never_overturned() {
        for state in all().filter(|s| has_final_outcome(*s)) {
            for event in RequestEvent::ALL {
                assert!(!matches!(next(state, event), Transition::To(_)), "{} leaves on {event:?}", state.code());
            }
        }
    }

    proptest! {
        /// Whatever happens to an accepted request, in whatever order: it can still reach its one outcome.
        #[test]
        fn an_accepted_request_can_always_still_end(events in prop::collection::vec(0..RequestEvent::ALL.len(), 0..40)) {
            let mut state = State::P2(P2Reserve::Reserved);
            for event in events {
                if let Transition::To(to) = next(state, RequestEvent::ALL[event]) { state = to; }
            }
            let ends = [RequestEvent::OrderCommitted, RequestEvent::RefusalCommitted, RequestEvent::OutcomeFound];
            prop_assert!(has_final_outcome(state) || ends.iter().all(|e| matches!(next(state, *e), Transition::To(to) if has_final_outcome(to))));
        }
    }
}
