//! The schedule of faults. One seed decides all of it: kinds, targets, times, lengths and how hard each hits.

use super::kind::{Aim, Kind};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use seckill::dev::ServerKind;
use seckill::roles::Role;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Between two faults, milliseconds.
const GAP_MS: std::ops::RangeInclusive<u64> = 100..=600;
/// One fault of this number comes together with the fault before it.
const TOGETHER: u32 = 10;
/// From this length of a run on, one freeze of this number is a long one.
const LONG_RUN_MS: u64 = 300_000;
const LONG_FREEZE: u32 = 40;
const LONG_FREEZE_MS: u64 = 15_000;
/// A place is left alone this long after a fault: a role needs it to be back, a server even longer.
const REST_MS: u64 = 700;
const SERVER_REST_MS: u64 = 8_000;
/// A draw that hits a place under a fault is drawn again, at most so often.
const DRAWS_MAX: u32 = 50;

/// Which links a process has.
pub const LINKS: [&str; 4] = ["redis", "amqp", "mysql", "clients"];

/// Where a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The n-th process of a role.
    Process(Role, usize),
    /// All processes of a role.
    Role(Role),
    /// A server's process.
    Server(ServerKind),
    /// A link (by its place in [`LINKS`]) of the n-th process of a role.
    Link(Role, usize, usize),
    /// Inside a server; several kinds at once do no harm to each other.
    Inside(ServerKind, Kind),
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(role, index) => write!(out, "{}-{index}", role.name()),
            Self::Role(role) => out.write_str(role.name()),
            Self::Server(kind) | Self::Inside(kind, _) => write!(out, "{kind}"),
            Self::Link(role, index, link) => write!(out, "{}-{index}/{}", role.name(), LINKS[*link]),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One fault of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Since the beginning.
    pub at_ms: u64,
    /// What.
    pub kind: Kind,
    /// Where.
    pub target: Place,
    /// How long.
    pub length_ms: u64,
    /// How hard, where a kind has degrees.
    #[serde(skip)]
    pub dice: u32,
}

/// How many processes each role has.
pub type Counts = [(Role, usize); 4];

/// The schedule that `seed` decides, for a run of `length_ms`.
pub fn plan(seed: u64, length_ms: u64, counts: Counts) -> Vec<Fault> {
    let mut draw = Draw { random: StdRng::seed_from_u64(seed), counts, length_ms, busy_until_ms: BTreeMap::new() };
    let mut faults = Vec::new();
    let mut at_ms = 0;
    loop {
        if draw.random.random_range(0..TOGETHER) > 0 {
            at_ms += draw.random.random_range(GAP_MS);
        }
        if at_ms >= length_ms {
            return faults;
        }
        faults.extend(draw.fault(at_ms));
    }
}

struct Draw {
    random: StdRng,
    counts: Counts,
    length_ms: u64,
    busy_until_ms: BTreeMap<Place, u64>,
}

impl Draw {
    fn fault(&mut self, at_ms: u64) -> Option<Fault> {
        for _ in 0..DRAWS_MAX {
            let kind = self.kind();
            let target = self.target(kind);
            let (shortest, longest) = kind.length_ms();
            let mut length_ms = self.random.random_range(shortest..=longest);
            let freezes = matches!(kind, Kind::FreezeRole | Kind::FreezeServer);
            if freezes && self.length_ms >= LONG_RUN_MS && self.random.random_range(0..LONG_FREEZE) == 0 {
                length_ms = LONG_FREEZE_MS;
            }
            let dice = self.random.random();
            let touched = self.touched(target);
            let busy = touched.iter().any(|place| self.busy_until_ms.get(place).is_some_and(|until| *until > at_ms));
            // Everything is over and healed when the run ends.
            if busy || at_ms + length_ms > self.length_ms {
                continue;
            }
            let rest_ms = if matches!(target, Place::Server(_)) { SERVER_REST_MS } else { REST_MS };
            for place in touched {
                self.busy_until_ms.insert(place, at_ms + length_ms + rest_ms);
            }
            return Some(Fault { at_ms, kind, target, length_ms, dice });
        }
        None
    }

    fn kind(&mut self) -> Kind {
        let total = Kind::ALL.iter().map(|kind| kind.weight()).sum();
        let mut ticket = self.random.random_range(0..total);
        for kind in Kind::ALL {
            match ticket.checked_sub(kind.weight()) {
                None => return *kind,
                Some(rest) => ticket = rest,
            }
        }
        Kind::Reset
    }

    fn target(&mut self, kind: Kind) -> Place {
        let (role, index) = self.process();
        match kind.aim() {
            Aim::Process => Place::Process(role, index),
            Aim::Role => Place::Role(role),
            Aim::Server => Place::Server(ServerKind::ALL[self.random.random_range(0..ServerKind::ALL.len())]),
            Aim::Link => {
                // Only links that carry something: an api has no broker, a relay no database.
                let links: &[usize] = match role {
                    Role::Api => &[0, 2, 3],
                    Role::Relay => &[0, 1],
                    Role::Consumer => &[0, 1, 2],
                    Role::Reconcile => &[0, 1, 2],
                };
                Place::Link(role, index, links[self.random.random_range(0..links.len())])
            }
            Aim::Redis => Place::Inside(ServerKind::Redis, kind),
            Aim::Rabbit => Place::Inside(ServerKind::Rabbitmq, kind),
            Aim::Mysql => Place::Inside(ServerKind::Mysql, kind),
        }
    }

    fn process(&mut self) -> (Role, usize) {
        let all: Vec<(Role, usize)> =
            self.counts.iter().flat_map(|(role, count)| (0..*count).map(|index| (*role, index))).collect();
        all[self.random.random_range(0..all.len())]
    }

    /// What a fault at `target` keeps busy: a role with all its processes, and each process with its role.
    fn touched(&self, target: Place) -> Vec<Place> {
        match target {
            Place::Role(role) => {
                let count = self.counts.iter().find(|(other, _)| *other == role).map_or(0, |(_, count)| *count);
                (0..count).map(|index| Place::Process(role, index)).chain([target]).collect()
            }
            Place::Process(..) | Place::Server(_) | Place::Link(..) | Place::Inside(..) => vec![target],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const COUNTS: Counts = [(Role::Api, 2), (Role::Relay, 2), (Role::Consumer, 2), (Role::Reconcile, 1)];

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(plan(7, 60_000, COUNTS), plan(7, 60_000, COUNTS));
        assert_ne!(plan(7, 60_000, COUNTS), plan(8, 60_000, COUNTS));
    }

    #[test]
    fn ten_minutes_have_a_thousand_faults_of_every_kind_on_every_place_and_none_outlasts_the_run() {
        let faults = plan(1, 600_000, COUNTS);
        assert!(faults.len() >= 1_000, "{}", faults.len());
        let kinds: BTreeSet<Kind> = faults.iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds.len(), Kind::ALL.len(), "{kinds:?}");
        let links: BTreeSet<Place> =
            faults.iter().map(|fault| fault.target).filter(|place| matches!(place, Place::Link(..))).collect();
        assert_eq!(links.len(), 2 * 3 + 2 * 2 + 2 * 3 + 3, "{links:?}");
        assert!(faults.iter().all(|fault| fault.at_ms + fault.length_ms <= 600_000));
        assert!(faults.windows(2).any(|two| two[0].at_ms == two[1].at_ms), "two at once");
    }

    #[test]
    fn a_process_is_under_one_fault_at_a_time() {
        let mut until: BTreeMap<Place, u64> = BTreeMap::new();
        for fault in plan(3, 600_000, COUNTS) {
            if matches!(fault.target, Place::Inside(..)) {
                continue;
            }
            let before = until.insert(fault.target, fault.at_ms + fault.length_ms).unwrap_or(0);
            assert!(before <= fault.at_ms, "{fault:?}");
        }
    }
}
