//! What became of a request's order, in the model of orders (`tests/model/orders`): money, cancellations, the deadline.
//!
//! A line that a change is written may be all that is left of it: its process died, and the commit was done or not.

use super::super::journey::{Explained, Step};
use super::super::line::Line;
use super::Plays;
use crate::orders::setup::{OrderFault, OrdersSetup};
use crate::orders::state::{Money, PAYMENTS, Purchase, Shop};
use crate::orders::steps::OrderStep;
use seckill::domain::order_life::{OrderEvent, OrderState};
use seckill::domain::payment::PaymentState;
use stateright::Model;

/// One buyer, and as much of everything as the lines need.
const SETUP: OrdersSetup =
    OrdersSetup { buyers: 1, stock: 1, money: 9, acts: 9, faults: 9, kinds: &[OrderFault::ProcessDies], lacking: None };

/// Where a search is: the model's shop, and which payment is which.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Counter<'a> {
    shop: Shop,
    payments: [Option<&'a str>; PAYMENTS],
    /// The only order of the shop.
    at: usize,
}

impl Counter<'_> {
    fn state(&self) -> Option<OrderState> {
        self.shop.orders[self.at].state
    }

    /// After these steps, if the model allows each of them.
    fn take(&self, steps: &[OrderStep]) -> Option<Self> {
        let mut next = self.clone();
        for step in steps {
            let mut allowed = Vec::new();
            SETUP.actions(&next.shop, &mut allowed);
            if !allowed.contains(step) {
                return None;
            }
            next.shop = SETUP.step(&next.shop, *step);
        }
        let broken = next.shop.illegal || next.shop.early || next.shop.twice;
        (next.shop.money_left, next.shop.acts_left, next.shop.faults_left) = (SETUP.money, SETUP.acts, SETUP.faults);
        (!broken).then_some(next)
    }
}

/// What each line about one order may be.
pub struct Shopping<'a> {
    steps: &'a [Step<'a>],
}

/// Whether the lines are about an order at all.
pub fn has_lines(steps: &[Step<'_>]) -> bool {
    steps.iter().any(|step| matches!(step.line.point(), "order_written" | "order_changed"))
}

impl<'a> Shopping<'a> {
    pub fn new(steps: &'a [Step<'a>]) -> Self {
        Self { steps }
    }

    /// Whether one line is about the same change as another one of its process.
    fn is_of(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.steps[one], &self.steps[other]);
        let same = one.line.verdict() == other.line.verdict() && one.line.about == other.line.about;
        same && one.process == other.process
    }

    fn is_committed(&self, written: usize) -> bool {
        let changed = |at: &usize| self.steps[*at].line.point() == "order_changed";
        (written..self.steps.len()).filter(changed).any(|at| self.is_of(at, written))
    }

    /// The change that a line is about: `at` is where it was written.
    fn change(&self, place: &Counter<'a>, at: usize) -> Option<Counter<'a>> {
        let line = self.steps[at].line;
        let event = OrderEvent::ALL.into_iter().find(|event| format!("{event:?}") == line.verdict())?;
        let own = place.at;
        let cancelled = |next: &Counter<'_>| next.state() == Some(OrderState::Cancelled);
        match event {
            OrderEvent::PaymentReceived => received(place, line),
            OrderEvent::PaymentStarted => place.take(&[OrderStep::StartsPayment(own)]),
            OrderEvent::CancelledByBuyer => place.take(&[OrderStep::BuyerCancels(own)]).filter(cancelled),
            OrderEvent::CancelledByOperator => place.take(&[OrderStep::OperatorCancels(own)]).filter(cancelled),
            OrderEvent::DeadlinePassed => {
                let expired =
                    [OrderStep::DeadlinePasses(own), OrderStep::Choose(1 << own, 0), OrderStep::ExpireBatch(0)];
                let next = place.take(&expired)?;
                // Its units are carried to Redis by another process.
                let next = next.take(&[OrderStep::Fault(OrderFault::ProcessDies, 0, 0)]).unwrap_or(next);
                (next.state() == Some(OrderState::Expired)).then_some(next)
            }
        }
    }
}

/// Money that the order takes, or that goes back for the reason that the line names.
fn received<'a>(place: &Counter<'a>, line: &'a Line) -> Option<Counter<'a>> {
    let (name, reason) = (line.about.as_deref()?, line.reason.as_deref().unwrap_or_default());
    let one = place.payments.iter().position(|known| known.is_none_or(|known| known == name))?;
    if place.payments[one].is_some() {
        // It is on record: reported again, it changes nothing.
        return None;
    }
    let wanted = match reason {
        "EXPIRED" => Some(OrderState::Expired),
        "CANCELLED" => Some(OrderState::Cancelled),
        "ALREADY_PAID" => Some(OrderState::Paid),
        "APPLIED" | "OTHER_AMOUNT" => Some(OrderState::Unpaid),
        _ => None,
    };
    if place.state() != wanted {
        return None;
    }
    let money = if reason == "OTHER_AMOUNT" { Money::Other } else { Money::Exact };
    let mut next = place.take(&[OrderStep::Pays(place.at, one, money), OrderStep::ReportsPayment(place.at, one)])?;
    next.payments[one] = Some(name);
    let row = if reason == "APPLIED" { PaymentState::Applied } else { PaymentState::RefundNeeded };
    (next.shop.orders[place.at].payments[one].row == Some(row)).then_some(next)
}

impl<'a> Plays for Shopping<'a> {
    type Place = Counter<'a>;

    fn start(&self) -> Counter<'a> {
        let shop = Shop::start(&SETUP);
        let at = shop.orders.iter().position(|order| order.purchase == Purchase::Waits).unwrap_or(0);
        let place = Counter { shop, payments: [None; PAYMENTS], at };
        place.take(&[OrderStep::Buy(at)]).unwrap_or(place)
    }

    fn after(&self, _: &Explained, place: &Counter<'a>, at: usize) -> Vec<Counter<'a>> {
        let Step { line, .. } = self.steps[at];
        let landed = |place: &Counter<'a>| place.take(&[OrderStep::Land(place.at)]);
        let changed = match line.point() {
            "decided" if line.verdict() == "ORDERED" => return landed(place).into_iter().collect(),
            "decided" if line.outcome.as_deref() == Some("ORDER") && place.state().is_none() => {
                return landed(place).into_iter().collect();
            }
            // Whether it was committed is not known.
            "order_written" if !self.is_committed(at) => self.change(place, at),
            "order_changed" => {
                let is_it =
                    |other: &usize| self.steps[*other].line.point() == "order_written" && self.is_of(*other, at);
                let written = (0..self.steps.len()).rfind(is_it);
                // A repeat of a payment's start writes nothing.
                let Some(written) = written else { return vec![place.clone()] };
                return self.change(place, written).into_iter().collect();
            }
            _ => None,
        };
        std::iter::once(place.clone()).chain(changed).collect()
    }

    fn silent(&self, _: &Explained, place: &Counter<'a>) -> Vec<Counter<'a>> {
        // An order whose commit was not answered.
        place.take(&[OrderStep::Land(place.at)]).into_iter().collect()
    }

    fn shown(&self, place: &Counter<'a>) -> String {
        format!("the model has an order that is {:?}, with {:?}", place.state(), place.shop.orders[place.at].payments)
    }
}
