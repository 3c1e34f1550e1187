//! A drop, two sales with one limit over both, as a model of its own: what `lua/reserve.lua` counts in the buyers hashes of both, and
//! what the transaction of an order counts in `drop_purchases`, beside losses of Redis, rebuilds, returns and archives.

mod laws;
mod report;
mod rows;
mod setup;
mod state;
mod steps;

pub use report::HEAD;
pub use rows::{configurations, without};
pub use setup::{DropsSetup, Unlimited};

use crate::search::Searched;
use state::DropMoment;
use stateright::{Model, Property};
use steps::DropStep;

impl Model for DropsSetup {
    type State = DropMoment;
    type Action = DropStep;

    fn init_states(&self) -> Vec<DropMoment> {
        vec![DropMoment::start(self)]
    }

    fn actions(&self, moment: &DropMoment, out: &mut Vec<DropStep>) {
        steps::by_itself(self, moment, out);
        steps::by_chance(self, moment, out);
        steps::faults(self, moment, out);
    }

    fn next_state(&self, moment: &DropMoment, step: DropStep) -> Option<DropMoment> {
        let mut next = *moment;
        steps::apply(self, &mut next, step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

impl Searched for DropsSetup {
    const LAWS: &'static [(&'static str, &'static str)] = &laws::LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &laws::SIGHTS;

    fn name(step: &DropStep) -> String {
        if let DropStep::Fault(kind, _) = step {
            return format!("**{kind:?}**");
        }
        format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
