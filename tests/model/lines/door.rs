//! The door: the database's, Redis', and who carries it from one to the other.

use super::setup::{LinesSetup, Unlined};
use super::state::{Door, ENTRIES, Keys, Leader, Line, LineMoment, Place, Sells};

/// The database has another door than Redis, or a line that is shut and not opened yet.
pub fn is_to_set(moment: &LineMoment) -> bool {
    let is_half_open = moment.line == Line::Awaited && moment.door.by_line;
    moment.keys.sells == Sells::Open && (moment.door != moment.keys.door || is_half_open)
}

/// One transaction: the waitlist was sold out, and is to be by line.
pub fn shut(setup: &LinesSetup, moment: &mut LineMoment) -> Leader {
    moment.door = Door { by_line: true, no: moment.door.no + 1 };
    if setup.lacks(Unlined::DoorFirst) {
        moment.line = Line::Open;
    }
    Leader::SetsDoor(moment.door)
}

/// Whether somebody waits for whom the door is shut.
pub fn waits(setup: &LinesSetup, moment: &LineMoment) -> bool {
    (0..ENTRIES).any(|at| match moment.entries[at].place {
        Place::Offered => moment.keeps_the_door(at) && !setup.lacks(Unlined::ForgottenWaitsFor),
        Place::Absent | Place::Waiting | Place::Taken | Place::Lapsed | Place::Left => moment.keeps_the_door(at),
    })
}

/// One transaction, under the line's row: nobody waits, clicks may buy.
pub fn reopen(setup: &LinesSetup, moment: &mut LineMoment) -> Option<Leader> {
    let is_served = matches!(moment.line, Line::Open | Line::Drawn) && moment.door.by_line;
    if !is_served || waits(setup, moment) && !setup.lacks(Unlined::ReopenedUnderRow) {
        return None;
    }
    if moment.line == Line::Open {
        moment.line = Line::Awaited;
    }
    moment.door = Door { by_line: false, no: moment.door.no + 1 };
    Some(Leader::SetsDoor(moment.door))
}

/// One script. What follows for the leader.
pub fn set(setup: &LinesSetup, moment: &mut LineMoment, door: Door) -> Option<Leader> {
    let Keys { sells, door: there, .. } = moment.keys;
    let is_done = if sells.has_keys() {
        let is_newer = door.no > there.no || setup.lacks(Unlined::DoorNumbered);
        if is_newer && door != there {
            (moment.keys.door, moment.keys.before) = (door, Some(there));
        }
        is_newer || door.no == there.no
    } else {
        // Frozen keys are there, and a rebuild replaces them.
        setup.lacks(Unlined::DoorInOpenKeys) && !matches!(sells, Sells::Loaded(_))
    };
    (is_done && door.by_line).then_some(Leader::DoorIsShut(door.no))
}

/// One transaction: the door is shut, entries are taken.
pub fn open_line(setup: &LinesSetup, moment: &mut LineMoment, no: u8) {
    let is_its = moment.door.no == no || setup.lacks(Unlined::LineOpenedByNumber);
    if moment.line == Line::Awaited && moment.door.by_line && is_its {
        moment.line = Line::Open;
    }
}

/// The boot fence has compared: the script is loaded.
pub fn pass(setup: &LinesSetup, moment: &mut LineMoment, read: Door) {
    if read.no > moment.keys.door.no && !setup.lacks(Unlined::DoorInFence) {
        moment.keys.door = read;
    }
    moment.keys.sells = Sells::Open;
}

/// The last step of a rebuild.
pub fn open_keys(moment: &mut LineMoment, door: Door) {
    (moment.keys.sells, moment.keys.door, moment.keys.before) = (Sells::Open, door, None);
}
