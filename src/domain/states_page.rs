//! The states and the transition table as Markdown, for `docs/states.md`.

use super::line::{EntryEvent, EntryState, EntryTransition};
use super::order_life::{OrderEvent, OrderState, OrderTransition};
use super::states::{self, RequestEvent, State, Transition, next};

/// The whole document. `tests/docs` compares the file with it.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "# States\n\nEvery state of a request and of a sale, with its code, and the transitions between the states.\n\
         Printed from `src/domain/states`; a test fails when this file and the code differ\n\
         (`UPDATE_DOCS=1 cargo test --test docs` writes it).\n\n\
         The main success path is `P1-S1 → P2-R0 → P3-N2 → P4-C0 → P5-RC0`.\n\n| phase | code | label | meaning |\n|---|---|---|---|\n",
    );
    for state in states::all() {
        text.push_str(&format!(
            "| {} | `{}` | {} | {} |\n",
            state.phase().name(),
            state.code(),
            state.label(),
            state.meaning()
        ));
    }
    text.push_str(
        "\n## Transitions\n\nA row is a state, a column an event. A cell has the next state, `=` when the event changes nothing\n\
         (it is a repeat, or late), or `✗` when the event must not happen. States of P1 and refusals of P2 have no row:\n\
         no unit was taken, so no event follows.\n\n| state |",
    );
    for event in RequestEvent::ALL {
        text.push_str(&format!(" {event:?} |"));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(RequestEvent::ALL.len()));
    text.push('\n');
    for state in states::all().filter(|state| is_alive(*state)) {
        text.push_str(&format!("| `{}` {} |", state.code(), state.label()));
        for event in RequestEvent::ALL {
            text.push_str(&match next(state, event) {
                Transition::To(to) => format!(" `{}` |", to.code()),
                Transition::Already => " = |".to_owned(),
                Transition::Illegal => " ✗ |".to_owned(),
            });
        }
        text.push('\n');
    }
    text + &orders() + &entries()
}

/// The table of orders after they were confirmed.
fn orders() -> String {
    let mut text = String::from(
        "\n## Orders\n\nAn order of a sale with a payment step, after its request is CONFIRMED. `=`: nothing changes. `✗`: the order\n\
         cannot take it; money is recorded all the same (`P6-F4`).\n\n| state |",
    );
    for event in OrderEvent::ALL {
        text.push_str(&format!(" {event:?} |"));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(OrderEvent::ALL.len()));
    text.push('\n');
    for state in OrderState::ALL {
        text.push_str(&format!("| `{}` {} |", state.state().code(), state.code()));
        for event in OrderEvent::ALL {
            text.push_str(&match state.after(event) {
                OrderTransition::To(to) => format!(" `{}` |", to.state().code()),
                OrderTransition::Already => " = |".to_owned(),
                OrderTransition::Refused => " ✗ |".to_owned(),
            });
        }
        text.push('\n');
    }
    text
}

/// The table of entries of lines.
fn entries() -> String {
    let mut text = String::from(
        "\n## Entries of a line\n\nAn entry of a sale's line. `=`: nothing changes. `✗`: the entry cannot take it. A left entry is entered\n\
         again only while its line is open.\n\n| state |",
    );
    for event in EntryEvent::ALL {
        text.push_str(&format!(" {event:?} |"));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(EntryEvent::ALL.len()));
    text.push('\n');
    for state in EntryState::ALL {
        text.push_str(&format!("| `{}` {} |", state.state().code(), state.code()));
        for event in EntryEvent::ALL {
            text.push_str(&match state.after(event) {
                EntryTransition::To(to) => format!(" `{}` |", to.state().code()),
                EntryTransition::Already => " = |".to_owned(),
                EntryTransition::Refused => " ✗ |".to_owned(),
            });
        }
        text.push('\n');
    }
    text
}

fn is_alive(state: State) -> bool {
    RequestEvent::ALL.iter().any(|event| next(state, *event) != Transition::Illegal)
}
