//! Which searches about a line are made, and what each is expected to find.

use super::setup::{Kind, LineFault, LinesSetup, Unlined};
use crate::search::{Complete, Lacking};

const DIES: &[LineFault] = &[LineFault::LeaderDies, LineFault::CallGivenUp, LineFault::OrderFails];
const SLEEPS: &[LineFault] = &[LineFault::LeaderSleeps, LineFault::CallGivenUp];
const CALLS: &[LineFault] = &[LineFault::LeaderDies, LineFault::CallGivenUp];
const DOORS: &[LineFault] = &[LineFault::LeaderSleeps, LineFault::DoorForgotten, LineFault::CallGivenUp];
const FORGETS: &[LineFault] = &[LineFault::RedisForgets, LineFault::LeaderSleeps, LineFault::CallGivenUp];

const EVERY: &[LineFault] = &[
    LineFault::LeaderSleeps,
    LineFault::CallGivenUp,
    LineFault::OrderFails,
    LineFault::RedisForgets,
    LineFault::DoorForgotten,
];

const fn raffle(units: u8, wants: [u8; 3], faults: u8, kinds: &'static [LineFault]) -> LinesSetup {
    LinesSetup {
        kind: Kind::Raffle,
        units,
        wants,
        clicks: 0,
        limited: false,
        leaves: false,
        blocks: false,
        followers: 0,
        at_once: false,
        faults,
        kinds,
        absent: None,
    }
}

const fn waitlist(units: u8, wants: [u8; 3], clicks: usize, faults: u8, kinds: &'static [LineFault]) -> LinesSetup {
    LinesSetup { kind: Kind::Waitlist, clicks, ..raffle(units, wants, faults, kinds) }
}

const fn followed(setup: LinesSetup) -> LinesSetup {
    LinesSetup { followers: 2, ..setup }
}

const fn at_once(setup: LinesSetup) -> LinesSetup {
    LinesSetup { at_once: true, ..setup }
}

const fn limited(setup: LinesSetup) -> LinesSetup {
    LinesSetup { limited: true, ..setup }
}

const fn clicked(setup: LinesSetup) -> LinesSetup {
    LinesSetup { clicks: 1, ..setup }
}

const fn moving(setup: LinesSetup) -> LinesSetup {
    LinesSetup { leaves: true, blocks: true, ..setup }
}

/// What every test run searches.
pub fn configurations() -> Vec<Complete<LinesSetup>> {
    let row = |name, setup, states_min, breaks| Complete { name, setup, states_min, breaks };
    vec![
        row("raffle: leaders die, calls run late", moving(raffle(2, [1, 2, 1], 2, DIES)), 1_000, &[]),
        row("raffle: a leader sleeps", clicked(raffle(2, [1, 1, 1], 2, SLEEPS)), 1_000, &[]),
        row("raffle: a leader sleeps, buyers leave", clicked(moving(raffle(1, [1, 1, 0], 3, SLEEPS))), 1_000, &[]),
        row("raffle: purchases of a pass at once", at_once(raffle(2, [1, 2, 1], 2, CALLS)), 500, &["L5"]),
        row("raffle: the same, and the leader sleeps", at_once(raffle(2, [1, 1, 1], 1, SLEEPS)), 500, &["L5", "L6"]),
        row("raffle: Redis forgets", clicked(raffle(2, [1, 1, 0], 2, FORGETS)), 500, &[]),
        row("waitlist: a leader sleeps, the door is forgotten", waitlist(1, [1, 1, 0], 2, 3, DOORS), 1_000, &[]),
        row("waitlist: other processes set the door", followed(waitlist(1, [1, 0, 0], 3, 0, DOORS)), 1_000, &[]),
        row("waitlist: the same, and faults of the door", followed(waitlist(1, [1, 0, 0], 2, 1, DOORS)), 1_000, &[]),
        row("waitlist: the same, and Redis forgets", followed(waitlist(1, [1, 0, 0], 2, 1, FORGETS)), 1_000, &[]),
        row("waitlist: buyers leave", moving(waitlist(1, [1, 1, 0], 2, 2, SLEEPS)), 1_000, &[]),
        row("waitlist: who has clicked enters the line", limited(waitlist(2, [1, 1, 0], 2, 2, SLEEPS)), 1_000, &[]),
        row("waitlist: a pair and a single one", moving(waitlist(2, [2, 1, 0], 2, 1, SLEEPS)), 1_000, &[]),
        row("waitlist: who has clicked, and Redis forgets", limited(waitlist(2, [1, 1, 0], 2, 2, FORGETS)), 1_000, &[]),
        row("waitlist: Redis forgets", waitlist(1, [1, 1, 0], 2, 2, FORGETS), 1_000, &[]),
        row("waitlist: everything happens to one entry", moving(waitlist(1, [1, 0, 0], 2, 3, EVERY)), 1_000, &[]),
    ]
}

fn lacking(
    name: &'static str,
    absent: Unlined,
    setup: LinesSetup,
    breaks: &'static [&'static str],
) -> Lacking<LinesSetup> {
    Lacking { name, setup: LinesSetup { absent: Some(absent), ..setup }, breaks }
}

pub fn without() -> Vec<Lacking<LinesSetup>> {
    let mut rows = without_of_giving();
    rows.extend(without_of_doors());
    rows
}

fn without_of_doors() -> Vec<Lacking<LinesSetup>> {
    let doors = waitlist(1, [1, 0, 0], 2, 1, DOORS);
    let forgets = waitlist(1, [1, 0, 0], 2, 1, FORGETS);
    vec![
        lacking("the script does not read the door", Unlined::DoorInScript, doors, &["L4"]),
        lacking("entries are taken before the door is shut", Unlined::DoorFirst, doors, &["L4"]),
        lacking("a line is left without its row", Unlined::ReopenedUnderRow, doors, &["L4"]),
        lacking("the last writer of the door is obeyed", Unlined::LaterReadingStays, followed(doors), &["L4"]),
        lacking(
            "a leader that has shut a door opens the line later",
            Unlined::LineOpenedByVersion,
            waitlist(1, [1, 0, 0], 3, 1, DOORS),
            &["L4"],
        ),
        lacking(
            "a line is opened when Redis' door is shut, by a clock from before the row",
            Unlined::ClockAfterRow,
            followed(waitlist(1, [1, 0, 0], 3, 0, CALLS)),
            &["L4"],
        ),
        lacking("a rebuild has an older door", Unlined::DoorOfRebuild, forgets, &["L4"]),
        lacking("the boot fence does not read the door", Unlined::DoorInFence, doors, &["L4"]),
        lacking(
            "a line is left while an offer has no outcome",
            Unlined::ForgottenWaitsFor,
            clicked(raffle(1, [1, 0, 0], 1, FORGETS)),
            &["L4"],
        ),
    ]
}

fn without_of_giving() -> Vec<Lacking<LinesSetup>> {
    let calm = raffle(1, [1, 1, 0], 1, CALLS);
    vec![
        lacking(
            "the request id is not written before the purchase",
            Unlined::IdWritten,
            raffle(2, [1, 0, 0], 1, CALLS),
            &["L2", "L3"],
        ),
        lacking(
            "the request id is cleared when units are too few",
            Unlined::IdKept,
            LinesSetup { leaves: true, ..raffle(2, [1, 2, 1], 2, CALLS) },
            &["L2", "L3"],
        ),
        lacking("an entry in hand may leave", Unlined::InHandStays, LinesSetup { leaves: true, ..calm }, &["L3"]),
        lacking("who left is offered", Unlined::LeftNotOffered, LinesSetup { leaves: true, ..calm }, &["L3"]),
        lacking("a lapsed unit is offered twice", Unlined::GivenBackOnce, raffle(1, [1, 1, 1], 0, CALLS), &["L1"]),
        lacking("units are given to the highest rank", Unlined::RanksObeyed, calm, &["L5"]),
        lacking("only OFFERED entries are compared", Unlined::InHandCompared, calm, &["L7"]),
        lacking(
            "a LAPSED entry is not compared",
            Unlined::LapsedCompared,
            limited(waitlist(2, [1, 0, 0], 2, 2, SLEEPS)),
            &["L7"],
        ),
        lacking(
            "a forgotten offer is not asked again",
            Unlined::ForgottenAskedAgain,
            raffle(1, [1, 0, 0], 1, FORGETS),
            &["L7"],
        ),
    ]
}
