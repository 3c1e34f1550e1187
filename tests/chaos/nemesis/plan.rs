//! The schedule of faults. One seed decides all of it: kinds, targets, times, lengths and how hard each hits.

use super::kind::{Aim, Kind};
use super::steps::STEPS;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
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
/// One fault of this number is the next card of a pack that has every kind once, so that no kind stays away from a run.
const OF_PACK: u32 = 3;
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
    /// A step (by its place in [`STEPS`]) of the n-th process of its role, with its server.
    Step(usize, usize),
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
            Self::Step(step, index) => write!(out, "{}-{index} and {}", STEPS[*step].role.name(), STEPS[*step].server),
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
    let mut draw = Draw::new(seed, length_ms, counts);
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

/// A fault of each of these kinds, all at once, as far as their places allow: what a schedule missed is tried again.
pub fn once_more(seed: u64, kinds: &[Kind], counts: Counts) -> Vec<Fault> {
    let mut draw = Draw::new(seed, u64::MAX, counts);
    kinds.iter().filter_map(|kind| draw.of_kind(*kind, 0)).collect()
}

struct Draw {
    random: StdRng,
    counts: Counts,
    length_ms: u64,
    busy_until_ms: BTreeMap<Place, u64>,
    /// The cards that are left, of kinds and of steps.
    pack: Vec<Kind>,
    steps: Vec<usize>,
}

impl Draw {
    fn new(seed: u64, length_ms: u64, counts: Counts) -> Self {
        let (random, busy_until_ms) = (StdRng::seed_from_u64(seed), BTreeMap::new());
        Self { random, counts, length_ms, busy_until_ms, pack: Vec::new(), steps: Vec::new() }
    }

    fn fault(&mut self, at_ms: u64) -> Option<Fault> {
        if self.random.random_range(0..OF_PACK) == 0 {
            let card = next_card(&mut self.pack, Kind::ALL.iter().copied(), &mut self.random);
            let fault = self.of_kind(card, at_ms);
            if fault.is_some() {
                return fault;
            }
            // Its places are busy: it stays the next one.
            self.pack.push(card);
        }
        (0..DRAWS_MAX).find_map(|_| {
            let kind = self.kind();
            self.try_kind(kind, at_ms)
        })
    }

    /// A fault of this kind, if one of several draws hits a place that is free.
    fn of_kind(&mut self, kind: Kind, at_ms: u64) -> Option<Fault> {
        (0..DRAWS_MAX).find_map(|_| self.try_kind(kind, at_ms))
    }

    fn try_kind(&mut self, kind: Kind, at_ms: u64) -> Option<Fault> {
        let target = self.target(kind);
        let (shortest, longest) = kind.length_ms();
        let mut length_ms = self.random.random_range(shortest..=longest);
        let freezes = matches!(kind, Kind::FreezeRole | Kind::FreezeServer);
        let is_long_run = (LONG_RUN_MS..u64::MAX).contains(&self.length_ms);
        if freezes && is_long_run && self.random.random_range(0..LONG_FREEZE) == 0 {
            length_ms = LONG_FREEZE_MS;
        }
        let dice = self.random.random();
        let touched = self.touched(target);
        let busy = touched.iter().any(|place| self.busy_until_ms.get(place).is_some_and(|until| *until > at_ms));
        // Everything is over and healed when the run ends.
        if busy || at_ms + length_ms > self.length_ms {
            // A step whose place is busy comes later.
            if let Place::Step(step, _) = target {
                self.steps.insert(0, step);
            }
            return None;
        }
        for place in touched {
            let rest_ms = if matches!(place, Place::Server(_)) { SERVER_REST_MS } else { REST_MS };
            self.busy_until_ms.insert(place, at_ms + length_ms + rest_ms);
        }
        Some(Fault { at_ms, kind, target, length_ms, dice })
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
            Aim::Step => {
                let step = next_card(&mut self.steps, 0..STEPS.len(), &mut self.random);
                Place::Step(step, self.random.random_range(0..self.count(STEPS[step].role)))
            }
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

    fn count(&self, role: Role) -> usize {
        self.counts.iter().find(|(other, _)| *other == role).map_or(0, |(_, count)| *count)
    }

    /// What a fault at `target` keeps busy: a role with all its processes, and each process with its role.
    fn touched(&self, target: Place) -> Vec<Place> {
        match target {
            Place::Role(role) => {
                (0..self.count(role)).map(|index| Place::Process(role, index)).chain([target]).collect()
            }
            Place::Step(step, index) => {
                vec![Place::Process(STEPS[step].role, index), Place::Server(STEPS[step].server)]
            }
            Place::Process(..) | Place::Server(_) | Place::Link(..) | Place::Inside(..) => vec![target],
        }
    }
}

/// The next card of a pack, which is shuffled anew when it is empty.
fn next_card<T>(pack: &mut Vec<T>, all: impl Iterator<Item = T>, random: &mut StdRng) -> T {
    if pack.is_empty() {
        pack.extend(all);
        pack.shuffle(random);
    }
    pack.pop().expect("every pack has cards")
}
