//! The sending of webhooks, as a model of its own (`src/events/webhooks`): rows that are due, a leader that loads, calls and records,
//! another one beside it for a while, a receiver that takes, refuses, is silent or answers 410, a person who replays, and the deletion
//! of old rows. Each delivery has a state of the product, `domain::webhook::DeliveryState`.

mod laws;
mod report;
mod rows;
mod setup;
mod state;
mod steps;

pub use report::HEAD;
pub use rows::{configurations, without};
pub use setup::{Omitted, WebhooksSetup};

use crate::search::Searched;
use state::Deliveries;
use stateright::{Model, Property};
use steps::SenderStep;

impl Model for WebhooksSetup {
    type State = Deliveries;
    type Action = SenderStep;

    fn init_states(&self) -> Vec<Deliveries> {
        vec![Deliveries::start(self)]
    }

    fn actions(&self, deliveries: &Deliveries, out: &mut Vec<SenderStep>) {
        steps::by_itself(self, deliveries, out);
        steps::by_chance(deliveries, out);
        steps::faults(self, deliveries, out);
    }

    fn next_state(&self, deliveries: &Deliveries, step: SenderStep) -> Option<Deliveries> {
        let mut next = *deliveries;
        steps::apply(self, &mut next, step);
        Some(next.in_order())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

impl Searched for WebhooksSetup {
    const LAWS: &'static [(&'static str, &'static str)] = &laws::LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &laws::SIGHTS;

    fn name(step: &SenderStep) -> String {
        if let SenderStep::Fault(kind, _) = step {
            return format!("**{kind:?}**");
        }
        if let SenderStep::Answers(_, _, answer) = step {
            return format!("{answer:?}");
        }
        format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
