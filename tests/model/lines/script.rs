//! `lua/reserve.lua` at the door of a line, and what becomes of what it accepts.

use super::setup::{LinesSetup, Unlined};
use super::state::{
    Answer, Bought, CLICKS, Door, ENTRIES, IDS, Line, LineMoment, Place, REQUESTS, Sells, of_click, of_entry,
};

/// Units that a request is about.
pub const fn quantity(setup: &LinesSetup, request: usize) -> u8 {
    if request < ENTRIES * IDS { setup.wants[request / IDS] } else { 1 }
}

/// Whose request it is. The first click is of the first entry's buyer, each other one of somebody else.
fn buyer(request: usize) -> usize {
    match request.checked_sub(of_click(0)) {
        None => request / IDS,
        Some(0) => 0,
        Some(click) => ENTRIES + click,
    }
}

/// Whether another request of the buyer counts against his limit.
fn has_limit(setup: &LinesSetup, moment: &LineMoment, request: usize) -> bool {
    let counts = |bought: Bought| bought.is_alive() || bought == Bought::Returning;
    let is_another = |other: usize| other != request && buyer(other) == buyer(request);
    setup.limited && (0..REQUESTS).any(|other| is_another(other) && counts(moment.requests[other]))
}

/// What the script says to a purchase by the line; `None` while the sale is not whole.
pub fn decision(setup: &LinesSetup, moment: &LineMoment, request: usize) -> Option<Answer> {
    if moment.keys.sells != Sells::Open {
        return None;
    }
    if moment.requests[request] != Bought::Nowhere {
        return Some(Answer::Accepted);
    }
    Some(if has_limit(setup, moment, request) {
        Answer::Limit
    } else if moment.keys.units < quantity(setup, request) {
        Answer::Short
    } else {
        Answer::Accepted
    })
}

/// Whether a click would be accepted.
pub fn takes_click(setup: &LinesSetup, moment: &LineMoment, click: usize) -> bool {
    let by_line = if setup.lacks(Unlined::DoorInScript) { moment.remembered } else { moment.keys.door.by_line };
    let request = of_click(click);
    let is_new = moment.requests[request] == Bought::Nowhere;
    is_new && !by_line && decision(setup, moment, request) == Some(Answer::Accepted)
}

/// A click that is accepted.
pub fn click(setup: &LinesSetup, moment: &mut LineMoment, click: usize) {
    moment.jumped |= moment.line == Line::Entering || (0..ENTRIES).any(|at| moment.keeps_the_door(at));
    accept(setup, moment, of_click(click));
}

/// A purchase by the line, whenever it runs.
pub fn buy(setup: &LinesSetup, moment: &mut LineMoment, at: usize, id: u8) -> Option<Answer> {
    let request = of_entry(at, id);
    let answer = decision(setup, moment, request)?;
    if answer == Answer::Accepted && moment.requests[request] == Bought::Nowhere {
        let left = moment.keys.units - quantity(setup, request);
        let before = (0..at).filter(|lower| {
            let has_nothing = moment.request(*lower) == Bought::Nowhere;
            moment.entries[*lower].place == Place::Waiting && has_nothing && setup.wants[*lower] <= setup.wants[at]
        });
        let wanted: u8 = before.map(|lower| setup.wants[lower]).sum();
        // What lapsed and is accepted late has no place in the line any more.
        if moment.entries[at].place != Place::Lapsed {
            moment.out_of_order |= wanted > 0;
            moment.too_few_left |= wanted > left;
        }
        accept(setup, moment, request);
    }
    Some(answer)
}

fn accept(setup: &LinesSetup, moment: &mut LineMoment, request: usize) {
    moment.keys.units -= quantity(setup, request);
    // Something was written after the door: who forgets the door forgets this, and its number shows it.
    moment.keys.before = None;
    moment.requests[request] = Bought::Accepted;
}

/// The units of an order that ended, by a grant that has its name.
pub fn give_back(setup: &LinesSetup, moment: &mut LineMoment, request: usize) {
    moment.requests[request] = Bought::Returned;
    moment.keys.units += quantity(setup, request);
    moment.keys.before = None;
}

/// Units that are orders, or on their way there.
pub fn sold(setup: &LinesSetup, moment: &LineMoment) -> u8 {
    let alive = (0..REQUESTS).filter(|request| moment.requests[*request].is_alive());
    alive.map(|request| quantity(setup, request)).sum()
}

/// The load of a rebuild: what the database has. Units of orders that ended are among those for sale.
pub fn load(setup: &LinesSetup, moment: &mut LineMoment) {
    for bought in &mut moment.requests {
        if *bought == Bought::Returning {
            *bought = Bought::Returned;
        }
    }
    moment.keys.units = setup.units.saturating_sub(sold(setup, moment));
}

/// Redis forgets the sale, and perhaps what it had accepted.
pub fn forget(moment: &mut LineMoment, accepted_too: bool) {
    moment.keys.sells = Sells::Lost;
    (moment.keys.units, moment.keys.before, moment.keys.door) = (0, None, Door::default());
    if accepted_too {
        for bought in moment.requests.iter_mut().filter(|bought| **bought == Bought::Accepted) {
            *bought = Bought::Nowhere;
            moment.forgot = true;
        }
    }
}

/// The clicks that may be made: one after the other.
pub fn clicks(setup: &LinesSetup, moment: &LineMoment) -> impl Iterator<Item = usize> {
    let made = (0..CLICKS).take_while(|click| moment.requests[of_click(*click)] != Bought::Nowhere).count();
    let next = (made < setup.clicks && takes_click(setup, moment, made)).then_some(made);
    next.into_iter()
}
