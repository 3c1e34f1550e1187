//! The sending of events, as a model of its own (`src/events`, `src/p4_persist/events.rs`): an outcome by a consumer, who publishes it
//! before the ack, or by P5, who writes a row; later changes of the order with their rows; two publishers who read, publish and
//! delete; a receiver that goes by the rule of `docs/asyncapi.yaml`. The order moves by the product's own table, `domain::order_life`.

mod laws;
mod report;
mod rows;
mod setup;
mod state;
mod steps;

pub use report::HEAD;
pub use rows::{configurations, without};
pub use setup::{EventsSetup, Unsent};

use crate::search::Searched;
use state::Publishing;
use stateright::{Model, Property};
use steps::EventStep;

impl Model for EventsSetup {
    type State = Publishing;
    type Action = EventStep;

    fn init_states(&self) -> Vec<Publishing> {
        vec![Publishing::start(self)]
    }

    fn actions(&self, publishing: &Publishing, out: &mut Vec<EventStep>) {
        steps::by_itself(publishing, out);
        steps::by_chance(publishing, out);
        steps::faults(self, publishing, out);
    }

    fn next_state(&self, publishing: &Publishing, step: EventStep) -> Option<Publishing> {
        let mut next = *publishing;
        steps::apply(self, &mut next, step);
        Some(next.in_order())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

impl Searched for EventsSetup {
    const LAWS: &'static [(&'static str, &'static str)] = &laws::LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &laws::SIGHTS;

    fn name(step: &EventStep) -> String {
        if let EventStep::Fault(kind, _) = step {
            return format!("**{kind:?}**");
        }
        if let EventStep::Changes(event) = step {
            return format!("{event:?}");
        }
        format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
