//! Is what the lines say of a request a run of the protocol's own model (`tests/model`)? Each line is one step of it, or shows
//! something that the model's world must have; between two lines the model may take steps that leave no line.
//!
//! Input: the lines of each request. Output: how many the model explains, and a finding for each that it does not. One request at a
//! time: what others have in the same entry, message or transaction is their own, so the sale of the model has one unit and one buyer.

mod consumers;
mod money;
mod player;
mod relays;
mod silent;

use super::journey::{Explained, NoPath, Step, next};
use crate::setup::{Kind, Setup};
use money::Shopping;
use player::{Place, Player};
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::path::Path;

/// Places of the search for one request. A request with more is reported, not passed.
const PLACES_MAX: usize = 200_000;
/// Requests that are not explained, after which no more are asked about: such a search goes everywhere, and a run with one is red.
const UNEXPLAINED_MAX: usize = 20;
/// Faults that the model may use for one step; what it has used does not count.
const FAULTS: u8 = 9;
/// What may go wrong on the way of a request without a line that says so. Redis keeps what it has (`appendfsync always`), and a
/// message that the broker lost is one that is never delivered.
const KINDS: &[Kind] = &[
    Kind::LoseCall,
    Kind::RelayCrash,
    Kind::PublishLost,
    Kind::Returned,
    Kind::ConfirmLost,
    Kind::DoubleClaim,
    Kind::ConsumerCrash,
    Kind::ConsumerCutOff,
    Kind::SystemError,
    Kind::UnknownCommit,
    Kind::GiveUp,
];

/// Tries of an entry and of a message before it is parked, as the run was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tries {
    pub entry: u8,
    pub message: u8,
}

impl Tries {
    /// The file in the folder of the lines that says them.
    const FILE: &'static str = "tries";

    /// Reads what [`Tries::write`] has left.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(dir.join(Self::FILE)).ok()?;
        let (entry, message) = text.trim().split_once(' ')?;
        Some(Self { entry: entry.parse().ok()?, message: message.parse().ok()? })
    }

    /// For a later check of the lines.
    #[allow(dead_code, reason = "each binary uses a part of it")]
    pub fn write(self, dir: &Path) -> std::io::Result<()> {
        std::fs::write(dir.join(Self::FILE), format!("{} {}\n", self.entry, self.message))
    }

    /// The search that a request is held against.
    fn setup(self) -> Setup {
        let mut setup = Setup::new(1, 1, FAULTS, KINDS);
        setup.trims = true;
        (setup.entry_tries, setup.message_tries) = (self.entry, self.message);
        setup
    }
}

/// How many requests a run of the model explains, and those that none does.
pub fn ask(requests: &BTreeMap<u64, Vec<Step<'_>>>, tries: Tries) -> (usize, Vec<(u64, NoPath)>) {
    let (mut explained, mut unexplained) = (0, Vec::new());
    for (rid, steps) in requests {
        if unexplained.len() == UNEXPLAINED_MAX {
            break;
        }
        match explain(steps, tries) {
            Ok(()) => explained += 1,
            Err(no_path) => unexplained.push((*rid, no_path)),
        }
    }
    (explained, unexplained)
}

/// A model that lines are held against.
pub trait Plays {
    /// Where a search is.
    type Place: Clone + Eq + Hash;

    fn start(&self) -> Self::Place;

    /// Where the line with this number may lead, when these are explained before it.
    fn after(&self, explained: &Explained, place: &Self::Place, at: usize) -> Vec<Self::Place>;

    /// Where the model may go without a line.
    fn silent(&self, explained: &Explained, place: &Self::Place) -> Vec<Self::Place>;

    /// For people.
    fn shown(&self, place: &Self::Place) -> String;
}

impl Plays for Player<'_> {
    type Place = Place;

    fn start(&self) -> Place {
        Place::start(self.setup)
    }

    fn after(&self, explained: &Explained, place: &Place, at: usize) -> Vec<Place> {
        self.canonical(&explained.with(at), self.after_line(place, at))
    }

    fn silent(&self, explained: &Explained, place: &Place) -> Vec<Place> {
        self.canonical(explained, silent::steps(self, explained, place))
    }

    fn shown(&self, place: &Place) -> String {
        place.shown()
    }
}

/// Whether the lines are a run of the protocol's model, and what is said of an order one of the orders' model.
pub fn explain(steps: &[Step<'_>], tries: Tries) -> Result<(), NoPath> {
    // What a consumer has received is in its hand before it says so.
    let is_early = |step: &Step<'_>| step.line.point() == "delivered";
    let steps: Vec<_> =
        steps.iter().map(|step| Step { from: if is_early(step) { 0 } else { step.from }, ..*step }).collect();
    let setup = tries.setup();
    search(&Player::new(&setup, &steps), &steps)?;
    if money::has_lines(&steps) { search(&Shopping::new(&steps), &steps) } else { Ok(()) }
}

/// Searches for a run of a model with these lines, in any order that they leave. The order as written comes first, and steps
/// without a line last: nearly always none is needed.
fn search<P: Plays>(player: &P, steps: &[Step<'_>]) -> Result<(), NoPath> {
    let mut best = NoPath { at: 0, explained: 0, why: "no first step".to_owned() };
    let mut seen = HashSet::new();
    let mut open = vec![(Explained::default(), player.start(), false)];
    while let Some((explained, place, is_silent)) = open.pop() {
        if is_silent {
            let later = player.silent(&explained, &place).into_iter();
            open.extend(later.map(|later| (explained.clone(), later, false)));
            continue;
        }
        if explained.base == steps.len() {
            return Ok(());
        }
        if seen.len() > PLACES_MAX {
            return Err(NoPath { why: format!("too many places: {}", best.why), ..best });
        }
        if !seen.insert((explained.clone(), place.clone())) {
            continue;
        }
        open.push((explained.clone(), place.clone(), true));
        for at in next(steps, &explained).into_iter().rev() {
            let places = player.after(&explained, &place, at);
            if places.is_empty() && at == explained.base && explained.count() >= best.explained {
                best = NoPath { at, explained: explained.count(), why: player.shown(&place) };
            }
            open.extend(places.into_iter().rev().map(|later| (explained.with(at), later, false)));
        }
    }
    Err(best)
}
