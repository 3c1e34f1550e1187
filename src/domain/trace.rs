//! Traces that nothing carries: an order's trace id, whether it is traced, and the ids of its steps all follow from its request
//! id, so every process comes to the same by itself and no byte is added to Redis or to a message.
//!
//! Pinned by test vectors: two builds side by side must put an order into one trace.

use super::ids::RequestId;
use super::states::Phase;
use xxhash_rust::xxh64::xxh64;

/// All requests, in the unit of [`Trace::of`].
pub const MILLION: u32 = 1_000_000;

/// One order's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// The request that the trace follows.
    pub request_id: RequestId,
    high: u64,
    low: u64,
}

impl Trace {
    /// The trace of a request, if it is among the `per_million` that are traced. A higher share traces the same ones and more.
    #[must_use]
    pub fn of(request_id: RequestId, per_million: u32) -> Option<Self> {
        let bytes = request_id.get().to_be_bytes();
        let high = xxh64(&bytes, 1);
        let sampled = high % u64::from(MILLION) < u64::from(per_million);
        // All zeros would be no trace id.
        sampled.then(|| Self { request_id, high, low: xxh64(&bytes, 2).max(1) })
    }

    /// The trace id, 16 bytes.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        ((u128::from(self.high) << 64) | u128::from(self.low)).to_be_bytes()
    }

    /// The id of a step, 8 bytes.
    #[must_use]
    pub(crate) fn span_id(&self, step: TraceStep) -> [u8; 8] {
        let mut bytes = [0; 17];
        bytes[0] = match step.phase {
            Phase::P1Entry => 1,
            Phase::P2Reserve => 2,
            Phase::P3Relay => 3,
            Phase::P4Persist => 4,
            Phase::P5Reconcile => 5,
            Phase::P6Fulfil => 6,
        };
        bytes[1..9].copy_from_slice(&step.number.to_be_bytes());
        bytes[9..].copy_from_slice(&self.low.to_be_bytes());
        xxh64(&bytes, self.high).max(1).to_be_bytes()
    }
}

/// One step of an order's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceStep {
    pub phase: Phase,
    /// 0: the main step, the parent of the next phase's steps; a repeat has the same id. Any other number is the time at which
    /// the step began. Such a step has no children: a replay, or a failed attempt.
    pub number: u64,
}

impl TraceStep {
    /// The main step of `phase`: the parent of the next phase's steps.
    #[must_use]
    pub(crate) const fn main(phase: Phase) -> Self {
        Self { phase, number: 0 }
    }

    /// The parent of this step. P4 follows from the broker's confirm (P3), P5 from the ledger record that P2 wrote.
    #[must_use]
    pub(crate) const fn parent(self) -> Option<Self> {
        match self.phase {
            // A replay is the same order again: under the first call.
            Phase::P1Entry if self.number == 0 => None,
            Phase::P1Entry => Some(Self::main(Phase::P1Entry)),
            // The call that waited for P2 records both, so they share its number.
            Phase::P2Reserve => Some(Self { phase: Phase::P1Entry, number: self.number }),
            Phase::P3Relay | Phase::P5Reconcile => Some(Self::main(Phase::P2Reserve)),
            Phase::P4Persist => Some(Self::main(Phase::P3Relay)),
            Phase::P6Fulfil => Some(Self::main(Phase::P4Persist)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(id: u64, per_million: u32) -> Option<Trace> {
        Trace::of(RequestId::new(id).unwrap(), per_million)
    }

    #[test]
    fn ids_are_what_every_other_build_makes_of_them() {
        let trace = of(254_385_310_867_492_864, MILLION).unwrap();
        assert_eq!(format!("{:032x}", u128::from_be_bytes(trace.id())), "49e0c2d0f08fe66246d5e226d49383fb");
        let spans = [Phase::P1Entry, Phase::P2Reserve, Phase::P3Relay]
            .map(|phase| format!("{:016x}", u64::from_be_bytes(trace.span_id(TraceStep::main(phase)))));
        assert_eq!(spans, ["39cdc1fdc9ad2cfe", "f1fec1fcf171534f", "2a2add263dd55835"]);
    }

    proptest! {
        #[test]
        fn a_higher_share_traces_the_same_orders_and_more(id in 1u64..1 << 62, low in 0u32..=MILLION, more in 0u32..=MILLION) {
            let high = (low + more).min(MILLION);
            if let Some(trace) = of(id, low) {
                prop_assert_eq!(of(id, high), Some(trace));
            }
            prop_assert!(of(id, 0).is_none() && of(id, MILLION).is_some());
        }
    }

    #[test]
    fn the_share_is_about_what_was_asked_for() {
        // Ids as they are made: consecutive ones differ in few bits.
        let traced = (0..100_000u64).filter(|n| of((1 << 50) + (n << 12), 10_000).is_some()).count();
        assert!((800..1_200).contains(&traced), "{traced} of 100,000 at one in a hundred");
    }
}
