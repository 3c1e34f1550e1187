//! What a leader does next, and how far it is then.

use super::setup::{LinesSetup, Unlined};
use super::state::{Leader, LineMoment, Sells};
use super::steps::LineStep;
use super::{door, giving};

/// The process that leads, and the one that sleeps.
pub const LEADS: usize = 0;
pub const SLEEPS: usize = 1;

/// The steps that one of the two may take.
pub fn next(setup: &LinesSetup, moment: &LineMoment, who: usize, out: &mut Vec<LineStep>) {
    match moment.leaders[who] {
        Leader::Gone => {}
        Leader::Idle => {
            if door::is_to_follow(moment) {
                out.push(LineStep::TakesClock(who));
            }
            if moment.keys.sells == Sells::Open && giving::is_worth_it(setup, moment) {
                out.push(LineStep::Counts(who));
            }
        }
        Leader::Counted(_) => out.push(LineStep::Chooses(who)),
        Leader::Chosen(_) => out.push(LineStep::WritesIds(who)),
        Leader::Asking(set) => {
            let highest = !setup.at_once && setup.lacks(Unlined::RanksObeyed);
            let last = if highest { giving::of(set).last() } else { giving::of(set).next() };
            let called = giving::of(set).filter(|at| setup.at_once || Some(*at) == last);
            out.extend(called.map(|at| LineStep::Buys(who, at)));
        }
        Leader::Answered { .. } => out.push(LineStep::Records(who)),
        Leader::Reopens => out.push(LineStep::Reopens(who)),
        Leader::Clocked { .. } => out.push(LineStep::ReadsRow(who)),
        Leader::SetsDoor { .. } => out.push(LineStep::SetsDoor(who)),
        Leader::DoorIsShut(_) => out.push(LineStep::OpensLine(who)),
    }
}

/// A step of a leader. One that slept ends with its pass, because it notices then.
pub fn apply(setup: &LinesSetup, moment: &mut LineMoment, who: usize, step: LineStep) {
    let next = match (moment.leaders[who], step) {
        (Leader::Idle, LineStep::Counts(_)) => Some(Leader::Counted(moment.keys.units)),
        (Leader::Idle, LineStep::TakesClock(_)) => Some(door::clocked(setup, moment)),
        (Leader::Clocked { at, seen }, LineStep::ReadsRow(_)) => Some(door::read(setup, moment, at, seen)),
        (Leader::Counted(units), LineStep::Chooses(_)) => giving::choose(setup, moment, units),
        (Leader::Chosen(set), LineStep::WritesIds(_)) => {
            Some(giving::write(setup, moment, set)).filter(|set| *set != 0).map(Leader::Asking)
        }
        (Leader::Asking(set), LineStep::Buys(_, at)) => giving::call(setup, moment, set, at),
        (Leader::Answered { rest, at, id, answer }, LineStep::Records(_)) => {
            giving::record(setup, moment, (at, id), answer);
            (rest != 0).then_some(Leader::Asking(rest))
        }
        (Leader::Reopens, LineStep::Reopens(_)) => {
            door::reopen(setup, moment);
            None
        }
        (Leader::SetsDoor { door, version, opens }, LineStep::SetsDoor(_)) => {
            door::set(setup, moment, door);
            (opens && door.by_line && door::is_shut(moment)).then_some(Leader::DoorIsShut(version))
        }
        (Leader::DoorIsShut(version), LineStep::OpensLine(_)) => {
            door::open_line(setup, moment, version);
            None
        }
        (other, _) => Some(other),
    };
    let at_the_end = if who == SLEEPS { Leader::Gone } else { Leader::Idle };
    moment.leaders[who] = next.unwrap_or(at_the_end);
}
