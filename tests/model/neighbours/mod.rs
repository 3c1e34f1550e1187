//! Two sales that share an order queue and a retry queue, as a model of its own: the rebuild of one (`src/p5_reconcile/rebuild`) beside
//! the messages of the other, whose row another session holds (`src/orders/persist/locked.rs`, `src/p4_persist/send_back.rs`).

mod laws;
mod report;
mod rows;
mod setup;
mod state;
mod steps;

pub use report::HEAD;
pub use rows::{configurations, without};
pub use setup::{NeighboursSetup, Unshared};

use crate::search::Searched;
use state::Shared;
use stateright::{Model, Property};
use steps::SharedStep;

impl Model for NeighboursSetup {
    type State = Shared;
    type Action = SharedStep;

    fn init_states(&self) -> Vec<Shared> {
        vec![Shared::start(self)]
    }

    fn actions(&self, shared: &Shared, out: &mut Vec<SharedStep>) {
        steps::by_itself(self, shared, out);
        steps::by_chance(shared, out);
        steps::faults(self, shared, out);
    }

    fn next_state(&self, shared: &Shared, step: SharedStep) -> Option<Shared> {
        let mut next = *shared;
        steps::apply(self, &mut next, step);
        Some(next.in_order())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

impl Searched for NeighboursSetup {
    const LAWS: &'static [(&'static str, &'static str)] = &laws::LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &laws::SIGHTS;

    fn name(step: &SharedStep) -> String {
        if let SharedStep::Fault(kind, _) = step {
            return format!("**{kind:?}**");
        }
        format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
