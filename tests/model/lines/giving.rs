//! A pass of the leader: units, who is next, their request ids, their purchases, what P2 said.

use super::door;
use super::script;
use super::setup::{LinesSetup, Unlined};
use super::state::{Answer, Bought, EACH_ID, ENTRIES, IDS, Leader, Line, LineMoment, Place, of_entry};

/// The entries of a set.
pub fn of(set: u8) -> impl Iterator<Item = usize> {
    (0..ENTRIES).filter(move |at| set & (1 << at) != 0)
}

/// Who is next for this many units: by rank, and who wants more than are left is passed over.
pub fn next(setup: &LinesSetup, moment: &LineMoment, units: u8) -> u8 {
    if !matches!(moment.line, Line::Open | Line::Drawn) {
        return 0;
    }
    let (mut left, mut set) = (units, 0);
    let mut add = |at: usize| {
        let may = moment.entries[at].place == Place::Waiting || !setup.lacks(Unlined::ForgottenAskedAgain);
        if may && moment.is_without(at) && setup.wants[at] <= left {
            left -= setup.wants[at];
            set |= 1 << at;
        }
    };
    if setup.lacks(Unlined::RanksObeyed) {
        (0..ENTRIES).rev().for_each(&mut add);
    } else {
        (0..ENTRIES).for_each(add);
    }
    set
}

/// Whether clicks may buy again, as far as the database says.
fn is_to_reopen(setup: &LinesSetup, moment: &LineMoment, units: u8) -> bool {
    let is_served = match moment.line {
        Line::Open => units > 0,
        Line::Drawn => true,
        Line::Entering | Line::Awaited => false,
    };
    is_served && moment.row.by_line && !door::waits(setup, moment)
}

fn is_sold_out(moment: &LineMoment, units: u8) -> bool {
    moment.line == Line::Awaited && !moment.row.by_line && units == 0
}

/// Whether a count would lead to anything.
pub fn is_worth_it(setup: &LinesSetup, moment: &LineMoment) -> bool {
    let units = moment.keys.units;
    is_sold_out(moment, units) || next(setup, moment, units) != 0 || is_to_reopen(setup, moment, units)
}

/// The leader reads the line.
pub fn choose(setup: &LinesSetup, moment: &mut LineMoment, units: u8) -> Option<Leader> {
    if is_sold_out(moment, units) {
        door::shut(setup, moment);
        return None;
    }
    match next(setup, moment, units) {
        0 => is_to_reopen(setup, moment, units).then_some(Leader::Reopens),
        set => Some(Leader::Chosen(set)),
    }
}

/// One transaction: request ids. Who left meanwhile is not there any more, who was blocked gets nothing.
pub fn write(setup: &LinesSetup, moment: &mut LineMoment, set: u8) -> u8 {
    let mut asking = 0;
    for at in of(set) {
        let entry = &mut moment.entries[at];
        let is_there = matches!(entry.place, Place::Waiting | Place::Offered)
            || entry.place == Place::Left && setup.lacks(Unlined::LeftNotOffered);
        if entry.place == Place::Waiting && entry.is_blocked {
            entry.place = Place::Lapsed;
        } else if is_there {
            asking |= 1 << at;
            if !setup.lacks(Unlined::IdWritten) {
                entry.id = entry.id.or((usize::from(entry.cleared) < IDS).then_some(entry.cleared));
            }
        }
    }
    asking
}

/// The id that a leader buys with.
pub fn id(setup: &LinesSetup, moment: &LineMoment, at: usize) -> Option<u8> {
    if !setup.lacks(Unlined::IdWritten) {
        return moment.entries[at].id;
    }
    // A new one for each try.
    let is_new = |request: usize| moment.requests[request] == Bought::Nowhere && !moment.late[request];
    EACH_ID.into_iter().find(|id| is_new(of_entry(at, *id)))
}

/// A purchase. Without an answer the pass ends there, unless all are called at once; what it was about stays in hand.
pub fn call(setup: &LinesSetup, moment: &mut LineMoment, set: u8, at: usize) -> Option<Leader> {
    let rest = set & !(1 << at);
    let answered = id(setup, moment, at).and_then(|id| Some((id, script::buy(setup, moment, at, id)?)));
    match answered {
        Some((_, Answer::Short)) if !setup.lacks(Unlined::IdKept) => unanswered(setup, rest),
        Some((id, answer)) => Some(Leader::Answered { rest, at, id, answer }),
        None => unanswered(setup, rest),
    }
}

pub fn unanswered(setup: &LinesSetup, rest: u8) -> Option<Leader> {
    (setup.at_once && rest != 0).then_some(Leader::Asking(rest))
}

/// One transaction: what P2 said, if the entry still waits.
pub fn record(setup: &LinesSetup, moment: &mut LineMoment, (at, id): (usize, u8), answer: Answer) {
    let entry = &mut moment.entries[at];
    let waits = entry.place == Place::Waiting || entry.place == Place::Left && setup.lacks(Unlined::LeftNotOffered);
    match answer {
        Answer::Accepted if waits => {
            entry.place = Place::Offered;
            if setup.lacks(Unlined::IdWritten) {
                entry.id = Some(id);
            }
        }
        Answer::Limit if waits => entry.place = Place::Lapsed,
        Answer::Short if waits && entry.id.is_some() => (entry.id, entry.cleared) = (None, id + 1),
        Answer::Accepted | Answer::Limit | Answer::Short => {}
    }
}

/// What an entry becomes when it is compared with its outcome and its order.
pub fn compared(setup: &LinesSetup, moment: &LineMoment, at: usize) -> Option<Place> {
    let request = moment.request(at);
    let ended = request.is_decided() && !request.is_alive();
    match moment.entries[at].place {
        Place::Waiting if request.is_decided() && !setup.lacks(Unlined::InHandCompared) => Some(Place::Offered),
        Place::Offered if request == Bought::Paid => Some(Place::Taken),
        Place::Offered if ended => Some(Place::Lapsed),
        Place::Lapsed if request.is_decided() && !ended && !setup.lacks(Unlined::LapsedCompared) => {
            Some(Place::Offered)
        }
        Place::Absent | Place::Waiting | Place::Offered | Place::Taken | Place::Lapsed | Place::Left => None,
    }
}
