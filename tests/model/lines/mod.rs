//! The line of a sale, as a model of its own: who waits, by rank, is given the units that Redis has by a leader that buys for him through
//! P2, and no click buys meanwhile. The door of the sale in the database and in Redis, leaders that die or sleep, calls that run late,
//! orders that end unpaid, a Redis that forgets.

mod door;
mod giving;
mod laws;
mod leading;
mod report;
mod rows;
mod script;
pub mod setup;
pub mod state;
pub mod steps;
mod times;

pub use report::HEAD;
pub use rows::{configurations, without};
pub use setup::LinesSetup;

use crate::search::Searched;
use state::LineMoment;
use stateright::{Model, Property};
use steps::LineStep;

impl Model for LinesSetup {
    type State = LineMoment;
    type Action = LineStep;

    fn init_states(&self) -> Vec<LineMoment> {
        vec![LineMoment::start(self)]
    }

    fn actions(&self, moment: &LineMoment, out: &mut Vec<LineStep>) {
        steps::by_itself(self, moment, out);
        steps::by_chance(self, moment, out);
        steps::faults(self, moment, out);
    }

    fn next_state(&self, moment: &LineMoment, step: LineStep) -> Option<LineMoment> {
        let mut next = *moment;
        steps::apply(self, &mut next, step);
        Some(next.in_order())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

impl Searched for LinesSetup {
    const LAWS: &'static [(&'static str, &'static str)] = &laws::LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &laws::SIGHTS;

    fn name(step: &LineStep) -> String {
        if let LineStep::Fault(kind, _) = step {
            return format!("**{kind:?}**");
        }
        format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
