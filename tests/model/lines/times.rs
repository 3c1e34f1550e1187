//! Times of Redis' clock and versions of the row: only their order matters.

use super::state::{Door, Follower, Leader, LineMoment, Sells};

impl LineMoment {
    /// Redis' clock, later than whatever was read from it.
    pub fn clock(&mut self) -> u8 {
        let mut latest = 0;
        self.clocks(|at| latest = latest.max(*at));
        latest + 1
    }

    /// Only the order of times and of versions matters; and not which follower is which.
    pub fn in_order(mut self) -> Self {
        let mut present = 1_u32;
        self.clocks(|at| present |= 1 << *at);
        self.clocks(|at| *at = rank(present, *at));
        let mut versions = 0_u32;
        self.versions(|version| versions |= 1 << *version);
        self.versions(|version| *version = rank(versions, *version));
        self.followers.sort_unstable();
        self
    }

    fn versions(&mut self, mut each: impl FnMut(&mut u8)) {
        each(&mut self.row.version);
        for leader in &mut self.leaders {
            match leader {
                Leader::Clocked { seen: Some(version), .. }
                | Leader::SetsDoor { version, .. }
                | Leader::DoorIsShut(version) => each(version),
                Leader::Clocked { seen: None, .. }
                | Leader::Gone
                | Leader::Idle
                | Leader::Counted(_)
                | Leader::Chosen(_)
                | Leader::Asking(_)
                | Leader::Answered { .. }
                | Leader::Reopens => {}
            }
        }
    }

    fn clocks(&mut self, mut each: impl FnMut(&mut u8)) {
        each(&mut self.keys.door.at);
        if let Some(before) = &mut self.keys.before {
            each(&mut before.at);
        }
        if let Sells::Compared(door) | Sells::Read(door) = &mut self.keys.sells {
            each(&mut door.at);
        }
        for leader in &mut self.leaders {
            if let Leader::Clocked { at, .. } | Leader::SetsDoor { door: Door { at, .. }, .. } = leader {
                each(at);
            }
        }
        for follower in &mut self.followers {
            if let Follower::Clocked(at) | Follower::SetsDoor(Door { at, .. }) = follower {
                each(at);
            }
        }
    }
}

/// How many of these numbers are below this one.
fn rank(present: u32, number: u8) -> u8 {
    u8::try_from((present & ((1 << number) - 1)).count_ones()).unwrap_or(u8::MAX)
}
