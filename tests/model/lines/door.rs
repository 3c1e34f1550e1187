//! The door: the row's, Redis', and who carries it from one to the other.

use super::setup::{LinesSetup, Unlined};
use super::state::{Door, ENTRIES, Follower, Leader, Line, LineMoment, Place, Row, Sells};

/// Redis' door is not the row's.
pub fn differs(moment: &LineMoment) -> bool {
    moment.keys.sells == Sells::Open && moment.row.by_line != moment.keys.door.by_line
}

/// The door is to be shut, and the line to be opened then.
fn is_half_open(moment: &LineMoment) -> bool {
    moment.keys.sells == Sells::Open && moment.line == Line::Awaited && moment.row.by_line
}

/// Whether a leader has something to do about the door.
pub fn is_to_follow(moment: &LineMoment) -> bool {
    differs(moment) || is_half_open(moment)
}

/// A leader has read the row. It takes Redis' clock, and reads the row again, so that all that was read before another door was written is older.
pub fn clocked(setup: &LinesSetup, moment: &mut LineMoment) -> Leader {
    let version = moment.row.version;
    if setup.lacks(Unlined::ClockAfterRow) && is_half_open(moment) && !differs(moment) {
        return Leader::DoorIsShut(version);
    }
    let is_shut = is_half_open(moment);
    Leader::Clocked { at: moment.clock(), seen: is_shut.then_some(version) }
}

pub fn read(setup: &LinesSetup, moment: &LineMoment, at: u8, seen: Option<u8>) -> Leader {
    let Row { by_line, version } = moment.row;
    let opens = seen == Some(version) || setup.lacks(Unlined::ClockAfterRow);
    Leader::SetsDoor { door: Door { by_line, at }, version, opens }
}

/// One transaction: the waitlist was sold out, and is to be by line.
pub fn shut(setup: &LinesSetup, moment: &mut LineMoment) {
    moment.row = Row { by_line: true, version: moment.row.version + 1 };
    if setup.lacks(Unlined::DoorFirst) {
        moment.line = Line::Open;
    }
}

/// Whether somebody waits for whom the door is shut.
pub fn waits(setup: &LinesSetup, moment: &LineMoment) -> bool {
    (0..ENTRIES).any(|at| match moment.entries[at].place {
        Place::Offered => moment.keeps_the_door(at) && !setup.lacks(Unlined::ForgottenWaitsFor),
        Place::Absent | Place::Waiting | Place::Taken | Place::Lapsed | Place::Left => moment.keeps_the_door(at),
    })
}

/// One transaction, under the line's row: no entry waits, clicks may buy.
pub fn reopen(setup: &LinesSetup, moment: &mut LineMoment) {
    let is_served = matches!(moment.line, Line::Open | Line::Drawn) && moment.row.by_line;
    if !is_served || waits(setup, moment) && !setup.lacks(Unlined::ReopenedUnderRow) {
        return;
    }
    if moment.line == Line::Open {
        moment.line = Line::Awaited;
    }
    moment.row = Row { by_line: false, version: moment.row.version + 1 };
}

/// One script: what was read later than what the keys have.
pub fn set(setup: &LinesSetup, moment: &mut LineMoment, door: Door) {
    let there = moment.keys.door;
    let is_newer = door.at >= there.at || setup.lacks(Unlined::LaterReadingStays);
    if moment.keys.sells.has_keys() && is_newer && door != there {
        moment.keys.before = moment.keys.before.or(Some(there));
        moment.keys.door = door;
    }
}

/// Redis sells, and its door is shut.
pub fn is_shut(moment: &LineMoment) -> bool {
    moment.keys.sells == Sells::Open && moment.keys.door.by_line
}

/// One transaction: the door is shut, entries are taken.
pub fn open_line(setup: &LinesSetup, moment: &mut LineMoment, version: u8) {
    let is_so = moment.row.version == version || setup.lacks(Unlined::LineOpenedByVersion);
    if moment.line == Line::Awaited && moment.row.by_line && is_so {
        moment.line = Line::Open;
    }
}

/// The next step of another process that makes Redis follow.
pub fn follow(setup: &LinesSetup, moment: &mut LineMoment, who: usize) {
    moment.followers[who] = match moment.followers[who] {
        Follower::Idle => Follower::Clocked(moment.clock()),
        Follower::Clocked(at) => Follower::SetsDoor(Door { by_line: moment.row.by_line, at }),
        Follower::SetsDoor(door) => {
            set(setup, moment, door);
            Follower::Idle
        }
    };
}

/// The boot fence has compared: the script is loaded.
pub fn pass(setup: &LinesSetup, moment: &mut LineMoment, read: Door) {
    if read.by_line && !setup.lacks(Unlined::DoorInFence) {
        set(setup, moment, read);
    }
    moment.keys.sells = Sells::Open;
}
