//! The cells of the transition tables: which of them lines have used, and why the others have none.

use super::request::Cell;
use seckill::domain::order_life::{OrderEvent, OrderState, OrderTransition};
use seckill::domain::states::{self, P2Reserve, P3Relay, P5Reconcile, RequestEvent, State, Transition, next};
use std::collections::BTreeMap;

/// How often each cell was used, by its name.
#[derive(Debug, Clone, Default)]
pub struct Cells(BTreeMap<String, u64>);

fn name(cell: Cell) -> String {
    match cell {
        Cell::Request(state, event) => format!("{} {event:?}", state.code()),
        Cell::Order(state, event) => format!("{} {event:?}", state.state_code()),
    }
}

trait StateCode {
    fn state_code(self) -> &'static str;
}

impl StateCode for OrderState {
    fn state_code(self) -> &'static str {
        State::P6(self.state()).code()
    }
}

/// Every cell that does not forbid its event, with why no line can use it, if none can.
pub fn all() -> Vec<(String, Option<&'static str>)> {
    let mut found = Vec::new();
    for state in states::all() {
        for event in RequestEvent::ALL {
            if next(state, event) != Transition::Illegal {
                found.push((name(Cell::Request(state, event)), never(state, event)));
            }
        }
    }
    for state in OrderState::ALL {
        for event in OrderEvent::ALL {
            if matches!(state.after(event), OrderTransition::To(_)) {
                found.push((name(Cell::Order(state, event)), never_of_an_order(event)));
            }
        }
    }
    found
}

const SENT: State = State::P3(P3Relay::SentOk);
const REFUSED: &str = "what Redis accepted has its unit, so that nothing refuses it";

/// Why no line of a chaos run uses a cell. No server loses data there, and no operator gives a request up.
fn never(state: State, event: RequestEvent) -> Option<&'static str> {
    match (state, event) {
        (State::P2(P2Reserve::Reserved | P2Reserve::Replayed), _) => {
            Some("counted as P3-N0: the script writes the entry")
        }
        (State::P5(P5Reconcile::OverSell | P5Reconcile::Orphan | P5Reconcile::Gap), _) => {
            Some("a finding about a sale")
        }
        (_, RequestEvent::RefusalCommitted) => Some(REFUSED),
        // P4-C2 and P5-COMP1: what a refusal leads to.
        (state, _) if next(SENT, RequestEvent::RefusalCommitted) == Transition::To(state) => Some(REFUSED),
        (State::P5(P5Reconcile::FailedFinal), _) => Some(REFUSED),
        (State::P3(P3Relay::New), RequestEvent::OrderCommitted | RequestEvent::OutcomeFound) => {
            Some("only P5 lands what no relay has read, and reports it missing first")
        }
        (State::P3(P3Relay::SentOk | P3Relay::RelayDlq), RequestEvent::Read) => {
            Some("its entry is gone, and rule T3 finds a relay that reads it")
        }
        (State::P3(P3Relay::SentOk | P3Relay::RelayDlq), RequestEvent::PublishFailed | RequestEvent::PublishSpent) => {
            Some("its entry is gone, and no try of it is counted")
        }
        _ => None,
    }
}

fn never_of_an_order(event: OrderEvent) -> Option<&'static str> {
    (event == OrderEvent::PaymentStarted).then_some("the shop of a chaos run reports money, and starts no payment")
}

impl Cells {
    pub fn add(&mut self, cells: &[Cell]) {
        for cell in cells {
            *self.0.entry(name(*cell)).or_default() += 1;
        }
    }

    pub fn seen(&self) -> usize {
        all().iter().filter(|(cell, _)| self.0.contains_key(cell)).count()
    }

    /// Takes in what another run has used.
    #[allow(dead_code, reason = "each binary uses a part of it")]
    pub fn merge(&mut self, other: &Self) {
        for (cell, lines) in &other.0 {
            *self.0.entry(cell.clone()).or_default() += lines;
        }
    }

    /// Cells with lines although it is said why they have none.
    #[allow(dead_code, reason = "each binary uses a part of it")]
    pub fn surprises(&self) -> Vec<String> {
        let used = all().into_iter().filter(|(cell, never)| never.is_some() && self.0.contains_key(cell));
        used.map(|(cell, never)| format!("{cell}: {}", never.unwrap_or_default())).collect()
    }

    /// As a table, for the report.
    pub fn table(&self) -> String {
        let mut text = "| cell | lines |\n|---|---|\n".to_owned();
        for (cell, never) in all() {
            let times = self
                .0
                .get(&cell)
                .map_or_else(|| never.map_or("**none**".to_owned(), |why| format!("– ({why})")), u64::to_string);
            text.push_str(&format!("| {cell} | {times} |\n"));
        }
        text
    }

    /// Cells without a line that could have had one.
    pub fn unseen(&self) -> Vec<String> {
        let open = all().into_iter().filter(|(cell, never)| never.is_none() && !self.0.contains_key(cell));
        open.map(|(cell, _)| cell).collect()
    }
}
