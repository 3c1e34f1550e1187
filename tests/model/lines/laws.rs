//! What must always hold of a line, and what its searches must have seen to be worth anything.

use super::leading::{LEADS, SLEEPS};
use super::script;
use super::setup::LinesSetup;
use super::state::{Bought, ENTRIES, IDS, Leader, Line, LineMoment, Place, Sells, of_click, of_entry};
use super::steps::is_quiet;
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 7] = [
    ("L1", "never are more units orders, or on their way there, than the sale has"),
    ("L2", "an entry never has two requests that were accepted"),
    (
        "L3",
        "a request of the line that was accepted has the id of one entry, which has not left; an entry is OFFERED or TAKEN only \
         if its request was accepted, and Redis may have forgotten it since",
    ),
    (
        "L4",
        "the script accepts a click only if at that moment the database has no entry WAITING, none OFFERED without an outcome, and no \
         draw to come",
    ),
    (
        "L5",
        "the script accepts the purchase of an entry that is not LAPSED only if no entry of a lower rank is WAITING without units \
         that wants no more",
    ),
    ("L6", "or only if units for all such entries are left after it"),
    (
        "L7",
        "when nothing happens any more, each unit is paid or in Redis; no entry waits that wants no more units than are there; \
         each offer is decided, but one that Redis forgot and whose units another one has; an entry with an order is TAKEN; where \
         no entry waits, units are sold by click; a sold-out waitlist takes entries",
    ),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 10] = [
    ("two leaders", "two leaders are about to buy for one entry"),
    ("accepted, and not known", "an entry is WAITING whose request was accepted, and no leader is about to record it"),
    ("in hand, and nothing there", "an entry waits with a request id for which P2 has too few units"),
    ("lapsed, and an order", "an entry is LAPSED, and its request was accepted late: its order waits to be paid"),
    ("forgotten", "an entry is OFFERED, and Redis has forgotten that"),
    ("an old door", "a leader is about to set a door that is older than Redis'"),
    ("a line behind an old door", "Redis restarts with an open door, and entries wait"),
    ("awaited again", "the waitlist had entries, none waits any more, and units are sold by click"),
    ("left meanwhile", "an entry leaves after a leader has chosen it"),
    ("a pair keeps a unit", "the line waits for a second unit, and one is there that no entry gets"),
];

/// Each request that was accepted is known to its entry, and each offer was accepted.
fn ids_agree(moment: &LineMoment) -> bool {
    (0..ENTRIES).all(|at| {
        let entry = moment.entries[at];
        let is_its = |id: u8| entry.id == Some(id) && !matches!(entry.place, Place::Absent | Place::Left);
        let requests = (0..2_u8).all(|id| moment.requests[of_entry(at, id)] == Bought::Nowhere || is_its(id));
        let is_given = matches!(entry.place, Place::Offered | Place::Taken);
        requests && (!is_given || moment.forgot || moment.request(at) != Bought::Nowhere)
    })
}

/// What L7 says.
fn is_done(setup: &LinesSetup, moment: &LineMoment) -> bool {
    let units = moment.keys.units;
    let each = (0..ENTRIES).all(|at| match moment.entries[at].place {
        Place::Waiting => setup.wants[at] > units && !moment.request(at).is_decided(),
        Place::Offered => moment.is_without(at) && moment.forgot && setup.wants[at] > units,
        Place::Taken => moment.request(at) == Bought::Paid,
        Place::Absent | Place::Lapsed | Place::Left => !moment.request(at).is_alive(),
    });
    let waits = moment.entries.iter().any(|entry| entry.place == Place::Waiting);
    let door = waits || units == 0 || !moment.row.by_line;
    let line = moment.line != Line::Awaited || units > 0;
    let agree = moment.keys.door.by_line == moment.row.by_line && moment.keys.sells == Sells::Open;
    each && door && line && agree && units + script::sold(setup, moment) == setup.units
}

pub fn all() -> Vec<Property<LinesSetup>> {
    let [l1, l2, l3, l4, l5, l6, l7] = LAWS.map(|(name, _)| name);
    let mut all = vec![
        Property::always(l1, |setup: &LinesSetup, moment: &LineMoment| script::sold(setup, moment) <= setup.units),
        Property::always(l2, |_, moment: &LineMoment| {
            let accepted = |request: &Bought| *request != Bought::Nowhere;
            let requests = moment.requests.chunks(IDS).take(ENTRIES);
            requests.map(|ids| ids.iter().filter(|request| accepted(request)).count()).all(|count| count <= 1)
        }),
        Property::always(l3, |_, moment: &LineMoment| ids_agree(moment)),
        Property::always(l4, |_, moment: &LineMoment| !moment.jumped),
        Property::always(l5, |_, moment: &LineMoment| !moment.out_of_order),
        Property::always(l6, |_, moment: &LineMoment| !moment.too_few_left),
        Property::always(l7, |setup, moment: &LineMoment| is_done(setup, moment) || !is_quiet(setup, moment)),
    ];
    all.extend(sights());
    all
}

fn sights() -> [Property<LinesSetup>; 10] {
    let [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10] = SIGHTS.map(|(name, _)| name);
    [
        Property::sometimes(s1, |_, moment: &LineMoment| match moment.leaders {
            [Leader::Asking(one), Leader::Asking(other)] => one & other != 0,
            _ => false,
        }),
        Property::sometimes(s2, |_, moment: &LineMoment| {
            let is_unknown = |at| is_waiting(moment, at) && moment.request(at) != Bought::Nowhere;
            moment.leaders == [Leader::Idle, Leader::Gone] && (0..ENTRIES).any(is_unknown)
        }),
        Property::sometimes(s3, |setup: &LinesSetup, moment: &LineMoment| {
            let is_short = |at: usize| {
                let has_id = is_waiting(moment, at) && moment.entries[at].id.is_some();
                has_id && moment.request(at) == Bought::Nowhere && moment.keys.units < setup.wants[at]
            };
            moment.leaders[LEADS] == Leader::Idle && moment.keys.sells == Sells::Open && (0..ENTRIES).any(is_short)
        }),
        Property::sometimes(s4, |_, moment: &LineMoment| {
            (0..ENTRIES).any(|at| moment.entries[at].place == Place::Lapsed && moment.request(at) == Bought::Unpaid)
        }),
        Property::sometimes(s5, |_, moment: &LineMoment| {
            (0..ENTRIES).any(|at| moment.entries[at].place == Place::Offered && moment.request(at) == Bought::Nowhere)
        }),
        Property::sometimes(s6, |_, moment: &LineMoment| {
            moment
                .leaders
                .iter()
                .any(|leader| matches!(leader, Leader::SetsDoor { door, .. } if door.at < moment.keys.door.at))
        }),
        Property::sometimes(s7, |_, moment: &LineMoment| {
            let is_open = moment.keys.sells == Sells::Restarted && !moment.keys.door.by_line;
            is_open && (0..ENTRIES).any(|at| is_waiting(moment, at))
        }),
        Property::sometimes(s8, |_, moment: &LineMoment| {
            moment.line == Line::Awaited
                && moment.requests[of_click(1)] != Bought::Nowhere
                && moment.entries[0].place == Place::Lapsed
        }),
        Property::sometimes(s9, |_, moment: &LineMoment| {
            let is_chosen = |leader: &Leader, at: usize| matches!(leader, Leader::Chosen(set) if set & (1 << at) != 0);
            let left = |at: usize| moment.entries[at].place == Place::Left;
            let who = [LEADS, SLEEPS].map(|who| moment.leaders[who]);
            (0..ENTRIES).any(|at| left(at) && who.iter().any(|who| is_chosen(who, at)))
        }),
        Property::sometimes(s10, |setup, moment: &LineMoment| {
            let units = moment.keys.units;
            let is_pair = |at: usize| is_waiting(moment, at) && setup.wants[at] > units;
            units > 0 && (0..ENTRIES).any(is_pair) && is_quiet(setup, moment)
        }),
    ]
}

fn is_waiting(moment: &LineMoment, at: usize) -> bool {
    moment.entries[at].place == Place::Waiting
}
