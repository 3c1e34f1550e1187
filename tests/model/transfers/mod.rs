//! Two buckets on two servers, and the transfers between them, as a model of its own (`src/p2_reserve/rebalance.rs`,
//! `lua/transfer_*.lua`): servers that are replaced by a replica that is behind, processes that die between take, give and forget,
//! calls that come late, the fence, the audit. What the pairs say is the product's own `domain::transfer_marks::rewound`.

mod laws;
mod report;
mod rows;
pub mod setup;
pub mod state;
pub mod steps;

pub use report::HEAD;
pub use rows::{configurations, without};
pub use setup::{Absent, TransfersSetup};

use crate::search::Searched;
use setup::TransferFault;
use state::TwoBuckets;
use stateright::{Model, Property};
use steps::TransferStep;

impl TransfersSetup {
    /// What comes of a step, with every process and shard in its place.
    pub fn step(&self, buckets: &TwoBuckets, step: TransferStep) -> TwoBuckets {
        let mut next = *buckets;
        steps::apply(self, &mut next, step);
        if next.faults_left == 0 || !self.may(TransferFault::FailsOver) {
            // What no replica takes over any more makes no difference.
            next.replicas = next.keys;
        }
        next
    }
}

impl Model for TransfersSetup {
    type State = TwoBuckets;
    type Action = TransferStep;

    fn init_states(&self) -> Vec<TwoBuckets> {
        vec![TwoBuckets::start(self)]
    }

    fn actions(&self, buckets: &TwoBuckets, out: &mut Vec<TransferStep>) {
        steps::by_itself(self, buckets, out);
        steps::by_chance(self, buckets, out);
        steps::faults(self, buckets, out);
    }

    fn next_state(&self, buckets: &TwoBuckets, step: TransferStep) -> Option<TwoBuckets> {
        Some(self.step(buckets, step).in_order())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

impl Searched for TransfersSetup {
    const LAWS: &'static [(&'static str, &'static str)] = &laws::LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &laws::SIGHTS;

    fn name(step: &TransferStep) -> String {
        if let TransferStep::Fault(kind, ..) = step {
            return format!("**{kind:?}**");
        }
        format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
