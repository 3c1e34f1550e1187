//! The cells of the transition tables: which of them lines have used, and why the others have none.

use super::request::Cell;
use seckill::domain::order_life::{OrderEvent, OrderState, OrderTransition};
use seckill::domain::states::{self, P2Reserve, P5Reconcile, RequestEvent, State, Transition, next};
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
                found.push((name(Cell::Request(state, event)), never(state)));
            }
        }
    }
    for state in OrderState::ALL {
        for event in OrderEvent::ALL {
            if matches!(state.after(event), OrderTransition::To(_)) {
                found.push((name(Cell::Order(state, event)), None));
            }
        }
    }
    found
}

/// Why no line of a request uses a cell.
fn never(state: State) -> Option<&'static str> {
    match state {
        State::P2(P2Reserve::Reserved | P2Reserve::Replayed) => Some("counted as P3-N0: the script writes the entry"),
        State::P5(P5Reconcile::OverSell | P5Reconcile::Orphan | P5Reconcile::Gap) => Some("a finding about a sale"),
        State::P1(_) | State::P2(_) | State::P3(_) | State::P4(_) | State::P5(_) | State::P6(_) => None,
    }
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
