//! What each line does in the model: the steps that it may be, taken by the model's own `actions` and `step`.
//!
//! The model has two relays, and as many deliveries in consumers' hands as [`CONSUMERS`]. What each line of theirs is, is beside this file.

use super::super::journey::{Explained, Step};
use super::super::line::Line;
use crate::actions::Action;
use crate::setup::{Kind, Setup};
use crate::state::{Answered, CONSUMERS, FAILED, Hand, ORDER, PAIR, Request, Stage, World};
use stateright::Model;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};

/// A delivery in a process's hand: the process, and its tag, by their numbers among those of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delivered {
    pub process: usize,
    pub tag: usize,
    /// The database was asked for it.
    pub is_asked: bool,
}

/// Where a search is: the model's world, and who holds what in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub world: World,
    pub relays: [Option<usize>; PAIR],
    pub consumers: [Option<Delivered>; CONSUMERS],
    /// P5 or an operator has begun to decide it, and no answer is known.
    pub decides: u8,
    /// The only request of the world.
    pub at: usize,
}

/// By what differs from place to place: a world has other requests, which nothing happens to here.
impl Hash for Place {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.request(), self.relays, self.consumers).hash(hasher);
    }
}

impl Place {
    pub fn start(setup: &Setup) -> Self {
        let world = setup.start();
        let at = world.requests.iter().position(|request| request.answered == Answered::Nothing).unwrap_or(0);
        Self { world, relays: [None; PAIR], consumers: [None; CONSUMERS], decides: 0, at }
    }

    pub fn request(&self) -> &Request {
        &self.world.requests[self.at]
    }

    /// After this action, which the model allows here.
    fn after(&self, setup: &Setup, action: Action) -> Option<Self> {
        let mut next = Self { world: setup.step(&self.world, action), ..self.clone() };
        if next.world.illegal {
            return None;
        }
        next.world.faults_left = setup.faults;
        for k in 0..PAIR {
            next.relays[k] = next.relays[k].filter(|_| next.request().hand[k] != Hand::None);
        }
        for k in 0..CONSUMERS {
            next.consumers[k] = next.consumers[k].filter(|_| next.request().consumer[k].stage != Stage::None);
        }
        Some(next)
    }

    /// The same place for all places that differ in nothing that can matter: which of the model's hands has a delivery, and
    /// deliveries that the broker has already given to others and of which `is_over` says that nothing follows.
    pub fn canonical(mut self, is_over: impl Fn(Delivered) -> bool) -> Self {
        let is_decided = self.request().outcome > 0;
        let mut hands: Vec<_> = self.request().consumer.into_iter().zip(self.consumers).collect();
        for (delivery, held) in &mut hands {
            if is_decided && delivery.is_cut_off && held.is_some_and(&is_over) {
                (*delivery, *held) = Default::default();
            }
        }
        hands.sort_unstable();
        for (k, (delivery, held)) in hands.into_iter().rev().enumerate() {
            (self.world.requests[self.at].consumer[k], self.consumers[k]) = (delivery, held);
        }
        self
    }

    /// For people.
    pub fn shown(&self) -> String {
        let request = self.request();
        format!(
            "the model has {:?}, {:?}, relays {:?}, queue {:?}, retry {:?}, consumers {:?}, parked {}, outcome {}, {:?}",
            request.answered,
            request.kept,
            request.hand,
            request.queue.iter().sum::<u8>(),
            request.retry.iter().sum::<u8>(),
            request.consumer,
            request.is_parked(),
            request.outcome,
            request.journey,
        )
    }
}

/// What each line of one request may be.
pub struct Player<'a> {
    pub setup: &'a Setup,
    pub steps: &'a [Step<'a>],
    /// The process of each line, and its tag or entry.
    pub processes: Vec<usize>,
    pub tags: Vec<usize>,
    allowed: RefCell<Allowed>,
}

/// What the model allows in a world: a search asks for several actions of each, one after the other.
#[derive(Default)]
struct Allowed {
    world: Option<World>,
    actions: Vec<Action>,
}

fn numbers<'a>(names: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut known = Vec::new();
    let number = |name| {
        let at = known.iter().position(|other| *other == name);
        at.unwrap_or_else(|| {
            known.push(name);
            known.len() - 1
        })
    };
    names.map(number).collect()
}

fn is_of_relay(line: &Line) -> bool {
    matches!(line.point(), "read" | "publish" | "answer" | "done" | "counted" | "park" | "parked")
}

pub fn if_so(holds: bool, place: &Place) -> Vec<Place> {
    if holds { vec![place.clone()] } else { Vec::new() }
}

impl<'a> Player<'a> {
    pub fn new(setup: &'a Setup, steps: &'a [Step<'a>]) -> Self {
        let processes = numbers(steps.iter().map(|step| step.process));
        let tags = numbers(steps.iter().map(|step| step.line.thing.as_deref().unwrap_or_default()));
        Self { setup, steps, processes, tags, allowed: RefCell::default() }
    }

    fn left<'b>(&'b self, explained: &'b Explained) -> impl Iterator<Item = usize> + 'b {
        (explained.base..self.steps.len()).filter(|at| !explained.has(*at))
    }

    /// What a relay says next of the request.
    pub fn next_of_relay(&self, explained: &Explained, process: usize) -> Option<&str> {
        let of_relay = |at: &usize| self.processes[*at] == process && is_of_relay(self.steps[*at].line);
        self.left(explained).find(of_relay).map(|at| self.steps[at].line.point())
    }

    /// Whether a consumer says this of a delivery later.
    pub fn will_say(&self, explained: &Explained, held: Delivered, points: &[&str]) -> bool {
        let of_it = |at: usize| (self.processes[at], self.tags[at]) == (held.process, held.tag);
        self.left(explained).any(|at| of_it(at) && points.contains(&self.steps[at].line.point()))
    }

    /// Whether no consumer says anything of this delivery any more. A verdict, which has no tag, comes before what has one: who was
    /// cut off had still to say how it was handled, so its verdict is known by then.
    fn is_over(&self, explained: &Explained, held: Delivered) -> bool {
        let of_it = |at: usize| (self.processes[at], self.tags[at]) == (held.process, held.tag);
        !self.left(explained).any(of_it)
    }

    /// The places that are not the same ([`Place::canonical`]).
    pub fn canonical(&self, explained: &Explained, places: Vec<Place>) -> Vec<Place> {
        places.into_iter().map(|place| place.canonical(|held| self.is_over(explained, held))).collect()
    }

    /// Whether a message with these attempts is delivered later.
    pub fn is_delivered_later(&self, explained: &Explained, attempts: u8) -> bool {
        let is_it = |line: &Line| line.point() == "delivered" && line.attempts.unwrap_or(0) == u32::from(attempts);
        self.left(explained).any(|at| is_it(self.steps[at].line))
    }

    /// After this action, if the model allows it here.
    pub fn take(&self, place: &Place, action: Action) -> Option<Place> {
        if self.allows(&place.world, action) { place.after(self.setup, action) } else { None }
    }

    fn allows(&self, world: &World, action: Action) -> bool {
        let mut allowed = self.allowed.borrow_mut();
        if allowed.world.as_ref() != Some(world) {
            allowed.actions.clear();
            self.setup.actions(world, &mut allowed.actions);
            allowed.world = Some(*world);
        }
        allowed.actions.contains(&action)
    }

    /// Where this line may lead.
    pub fn after_line(&self, place: &Place, at: usize) -> Vec<Place> {
        let Step { line, said, .. } = self.steps[at];
        let request = place.request();
        match line.point() {
            "ask" if said.answered => if_so(true, place),
            // It runs late or never; what is known already is only repeated.
            "ask" => {
                let late = self.take(place, Action::Fault(Kind::LoseCall, place.at, 0));
                vec![late.unwrap_or_else(|| place.clone())]
            }
            "reserved" => self.reserved(place, line),
            "looked_up" => {
                let known = request.kept.ledger > 0;
                if_so(line.verdict() == "CONFLICT" || known == (line.verdict() == "ACCEPTED"), place)
            }
            _ if is_of_relay(line) => self.relay(place, at),
            "delivered" | "handled" | "copied" | "ack" => self.consumer(place, at),
            "decide" => self.decide(place, at),
            "decided" if line.by.as_deref() == Some("relay") => self.decided(place, at),
            "decided" => self.decided_elsewhere(place, line),
            "missing" if request.audited => if_so(true, place),
            "missing" => self.take(place, Action::Audit(place.at)).into_iter().collect(),
            "settled" => if_so(has(place, line.verdict()), place),
            "unparked" => if_so(request.outcome > 0, place),
            "trimmed" => self.take(place, Action::Trim(place.at)).into_iter().collect(),
            _ => if_so(true, place),
        }
    }

    /// A refusal before it is accepted has its reason in other requests, or in the sale.
    fn reserved(&self, place: &Place, line: &Line) -> Vec<Place> {
        let known = place.request().kept.ledger > 0;
        match line.verdict() {
            "ACCEPTED" if known => Vec::new(),
            "ACCEPTED" => self.take(place, Action::Call(place.at)).into_iter().collect(),
            "REPLAYED" => if_so(known, place),
            "CONFLICT" | "REFUSED" => if_so(true, place),
            _ => if_so(!known, place),
        }
    }

    /// By P5 or an operator.
    fn decided_elsewhere(&self, place: &Place, line: &Line) -> Vec<Place> {
        let mut place = place.clone();
        place.decides = place.decides.saturating_sub(1);
        let give_up = line.by.as_deref() == Some("give_up");
        let decided = if give_up {
            self.take(&place, Action::Fault(Kind::GiveUp, place.at, 0))
        } else {
            self.take(&place, Action::Compensate(place.at))
        };
        let found = decided.into_iter().filter(|next| is_verdict(line, &place, next));
        match line.verdict() {
            // It may be decided all the same; that is a silent step.
            "ERROR" => {
                place.decides = place.decides.saturating_add(1);
                vec![place]
            }
            "CONFLICT" => if_so(true, &place),
            "ALREADY" if give_up => if_so(place.request().outcome > 0, &place),
            _ => found.collect(),
        }
    }
}

/// Whether the model's database has this outcome.
fn has(place: &Place, outcome: &str) -> bool {
    place.request().outcome == if outcome == "ORDER" { ORDER } else { FAILED }
}

/// Whether the step from one place to the next is what a verdict says.
pub fn is_verdict(line: &Line, before: &Place, after: &Place) -> bool {
    let was = before.request().outcome;
    match line.verdict() {
        "ORDERED" => was == 0 && has(after, "ORDER"),
        "REFUSED" => was == 0 && has(after, "FAILED"),
        "ALREADY" => {
            was > 0 && was == after.request().outcome && has(after, line.outcome.as_deref().unwrap_or_default())
        }
        _ => false,
    }
}
