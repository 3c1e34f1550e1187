//! The life of orders as a model to be walked through, and the kinds of its steps.

use super::Walked;
use super::kinds::{Changes, StepKind, word_of};
use crate::orders::OrdersSetup;
use crate::orders::setup::OrderFault;
use crate::orders::state::{BUYERS, Chosen, Giving, Order, PROCESSES, Rebuild, Return, Shop};
use crate::orders::steps::OrderStep;
use stateright::Model;
use std::collections::BTreeSet;

impl Walked for OrdersSetup {
    type World = Shop;
    type Step = OrderStep;

    fn start(&self) -> Shop {
        Shop::start(self)
    }

    fn possible(&self, shop: &Shop) -> Vec<OrderStep> {
        let mut all = Vec::new();
        self.actions(shop, &mut all);
        // Money that came before its order and is reported again: the product judges it again, the model does not know that.
        let is_early = |step: &OrderStep| matches!(step, OrderStep::Fault(OrderFault::AnswerLost, at, _) if shop.orders[*at].state.is_none());
        all.retain(|step| !is_early(step));
        all
    }

    fn step(&self, shop: &Shop, step: OrderStep) -> Shop {
        Self::step(self, shop, step)
    }

    fn in_order(shop: &Shop) -> Shop {
        (*shop).in_order()
    }

    fn kinds(before: &Shop, step: OrderStep, after: &Shop) -> Vec<StepKind> {
        let name = if let OrderStep::Fault(kind, ..) = step { word_of(&kind) } else { word_of(&step) };
        let mut changes = BTreeSet::new();
        for at in 0..BUYERS {
            if before.orders[at] != after.orders[at] {
                changes.insert(of_order(&before.orders[at], &after.orders[at]));
            }
        }
        let mut of_shop = Changes::default();
        of_shop.note("keys", before.keys, after.keys);
        of_shop.note("rebuild", rebuilt(before), rebuilt(after));
        changes.insert(of_shop.said());
        let changes: Vec<String> = changes.into_iter().collect();
        let mut kinds = vec![StepKind::Transition(format!("{name}: {}", changes.join(", ")))];
        if matches!(step, OrderStep::Fault(..)) {
            kinds.extend(under_way(before).into_iter().map(|what| StepKind::FaultDuring(name.clone(), what)));
        }
        kinds
    }
}

const fn rebuilt(shop: &Shop) -> &'static str {
    match shop.rebuild {
        Rebuild::None => "none",
        Rebuild::Begun => "begun",
        Rebuild::Snapped(_) => "snapped",
    }
}

fn of_order(before: &Order, after: &Order) -> String {
    let mut changes = Changes::default();
    changes.note("purchase", before.purchase, after.purchase);
    changes.note("state", before.state, after.state);
    changes.note("due", before.due, after.due);
    let payments = |order: &Order| {
        let mut all = order.payments.map(|one| (one.money, one.reporting, one.row));
        all.sort_unstable();
        all
    };
    changes.note("payments", payments(before), payments(after));
    changes.note("chosen", sorted(before.chosen), sorted(after.chosen));
    changes.note("batch", of_grant(&before.batch), of_grant(&after.batch));
    changes.note("cancel", of_grant(&before.cancel), of_grant(&after.cancel));
    changes.said()
}

fn of_grant(grant: &Return) -> (bool, bool, bool, [u8; PROCESSES]) {
    (grant.units > 0, grant.marked, grant.named, sorted(grant.giving.map(place)))
}

const fn place(giving: Giving) -> u8 {
    match giving {
        Giving::No => 0,
        Giving::Read(_) => 1,
        Giving::Given => 2,
    }
}

fn sorted<T: Ord>(mut pair: [T; PROCESSES]) -> [T; PROCESSES] {
    pair.sort();
    pair
}

fn under_way(shop: &Shop) -> BTreeSet<String> {
    let mut steps = BTreeSet::new();
    for order in &shop.orders {
        steps.extend(order.chosen.iter().filter(|one| **one != Chosen::No).map(|one| format!("sweep: {one:?}")));
        let giving = [order.batch, order.cancel].map(|grant| grant.giving).concat();
        steps.extend(giving.iter().filter(|one| place(**one) > 0).map(|one| format!("giver: {}", place(*one))));
        steps.extend(order.payments.iter().filter(|one| one.reporting).map(|_| "payment".to_owned()));
    }
    if shop.rebuild != Rebuild::None {
        steps.insert(format!("rebuild: {}", rebuilt(shop)));
    }
    steps
}
