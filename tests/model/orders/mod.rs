//! The life of orders after CONFIRMED as a model of its own (`src/p6_fulfil`, `src/sales/grants.rs`): buyers and units of one sale,
//! payments, deadlines, cancellations, the sweep in its steps, grants on their way to Redis, a rebuild. Each order moves by the
//! product's table (`domain/order_life`), each payment by `domain/payment`.

mod laws;
mod money;
mod report;
mod rows;
pub mod setup;
pub mod state;
pub mod steps;
mod units;

pub use report::{HEAD, REACHED};
pub use rows::{bigger, configurations, without};
pub use setup::{OrdersSetup, Skipped};

use crate::search::Searched;
use seckill::domain::order_life::{OrderEvent, OrderState};
use state::Shop;
use stateright::{Model, Property};
use std::collections::HashSet;
use std::sync::Mutex;
use steps::OrderStep;

/// Cells of the product's table that a search without a mutation came to.
pub static CELLS: Mutex<Option<HashSet<(OrderState, OrderEvent)>>> = Mutex::new(None);

fn remember(state: OrderState, event: OrderEvent) {
    CELLS.lock().unwrap().get_or_insert_default().insert((state, event));
}

impl OrdersSetup {
    /// What comes of a step, with every buyer, payment and process in its place.
    pub fn step(&self, shop: &Shop, step: OrderStep) -> Shop {
        let mut next = *shop;
        steps::apply(self, &mut next, step);
        next
    }
}

impl Model for OrdersSetup {
    type State = Shop;
    type Action = OrderStep;

    fn init_states(&self) -> Vec<Shop> {
        vec![Shop::start(self)]
    }

    fn actions(&self, shop: &Shop, out: &mut Vec<OrderStep>) {
        steps::by_itself(self, shop, out);
        steps::by_people(self, shop, out);
        steps::faults(self, shop, out);
    }

    fn next_state(&self, shop: &Shop, step: OrderStep) -> Option<Shop> {
        Some(self.step(shop, step).in_order())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

impl Searched for OrdersSetup {
    const LAWS: &'static [(&'static str, &'static str)] = &laws::LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &laws::SIGHTS;

    fn name(step: &OrderStep) -> String {
        if let OrderStep::Fault(kind, ..) = step {
            return format!("**{kind:?}**");
        }
        format!("{step:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
