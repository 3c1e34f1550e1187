//! What a consumer's lines do in the model. A hand of it is one delivery, whichever process has it.

use super::super::line::Line;
use super::player::{Delivered, Place, Player, if_so, is_verdict};
use crate::actions::Action;
use crate::setup::Kind;
use crate::state::{CONSUMERS, Stage};

impl Player<'_> {
    pub fn consumer(&self, place: &Place, at: usize) -> Vec<Place> {
        let line = self.steps[at].line;
        let (process, tag) = (self.processes[at], self.tags[at]);
        let is_it = |held: &Option<Delivered>| held.is_some_and(|held| (held.process, held.tag) == (process, tag));
        let Some(k) = place.consumers.iter().position(is_it) else {
            return match line.point() {
                "delivered" => self.deliver(place, line, Delivered { process, tag, is_asked: false }),
                // It was sent back without a try, so the model has put it down already.
                "ack" => if_so(true, place),
                _ => Vec::new(),
            };
        };
        let held = place.request().consumer[k];
        let attempts = line.attempts.unwrap_or(0);
        let goes_on = || self.take(place, Action::Consumer(place.at, k)).into_iter();
        let dies = || self.take(place, Action::Fault(Kind::ConsumerCrash, place.at, k)).into_iter();
        match (line.point(), held.stage) {
            ("delivered", Stage::Received) => if_so(true, place),
            ("handled", Stage::Decided) => if_so(matches!(line.verdict(), "P4-C0" | "P4-C1" | "P4-C2"), place),
            ("handled", Stage::Retry) => {
                if_so(line.verdict() == "P4-C3" && attempts == u32::from(held.attempts) + 1, place)
            }
            // It has waited, for no fault of its own: its attempts stay.
            ("handled", Stage::Received) => {
                if_so(line.verdict() == "P4-C3" && attempts == u32::from(held.attempts), place)
            }
            ("handled", Stage::Park) => if_so(line.verdict() == "P4-C4", place),
            ("copied", Stage::Retry | Stage::Park) => goes_on().collect(),
            ("copied", Stage::Copied) => if_so(true, place),
            // The copy with the same attempts is what a consumer that died leaves.
            ("copied", Stage::Received) => dies().collect(),
            // The ack is on its way; a connection that breaks takes it along.
            ("ack", Stage::Decided | Stage::Copied) => goes_on().chain(dies()).collect(),
            _ => Vec::new(),
        }
    }

    fn deliver(&self, place: &Place, line: &Line, to: Delivered) -> Vec<Place> {
        let Some(k) = place.consumers.iter().position(Option::is_none) else { return Vec::new() };
        let attempts = usize::try_from(line.attempts.unwrap_or(0)).unwrap_or(usize::MAX);
        let next = self.take(place, Action::Deliver(place.at, attempts, k));
        next.into_iter()
            .map(|mut next| {
                next.consumers[k] = Some(to);
                next
            })
            .collect()
    }

    pub fn decide(&self, place: &Place, at: usize) -> Vec<Place> {
        let mut next = place.clone();
        if self.steps[at].line.by.as_deref() != Some("relay") {
            next.decides = next.decides.saturating_add(1);
            return vec![next];
        }
        let process = self.processes[at];
        let mut is_held = false;
        for held in next.consumers.iter_mut().flatten().filter(|held| held.process == process) {
            (held.is_asked, is_held) = (true, true);
        }
        if is_held { vec![next] } else { Vec::new() }
    }

    /// The verdict about a delivery, whichever of this process it is.
    pub fn decided(&self, place: &Place, at: usize) -> Vec<Place> {
        let line = self.steps[at].line;
        let process = self.processes[at];
        let of_process = |k: &usize| place.consumers[*k].is_some_and(|held| held.process == process && held.is_asked);
        let received =
            (0..CONSUMERS).filter(of_process).filter(|k| place.request().consumer[*k].stage == Stage::Received);
        let mut found = Vec::new();
        for k in received {
            let decided = self.take(place, Action::Consumer(place.at, k));
            match line.verdict() {
                "ERROR" => {
                    let errors = [Kind::SystemError, Kind::UnknownCommit].map(|kind| Action::Fault(kind, place.at, k));
                    found.push(place.clone());
                    found.extend(errors.into_iter().filter_map(|error| self.take(place, error)));
                    found.extend(self.committed_and_held(place, k));
                }
                "CONFLICT" => found.extend(decided.filter(|next| next.request().consumer[k].stage == Stage::Park)),
                _ => found.extend(decided.filter(|next| is_verdict(line, place, next))),
            }
        }
        found
    }

    /// The commit had no answer, and the delivery waits for the database. To the model that is a consumer that dies after it, and gets
    /// the message again.
    fn committed_and_held(&self, place: &Place, k: usize) -> Option<Place> {
        let attempts = place.request().consumer[k].attempts.into();
        let faults = [Kind::UnknownCommit, Kind::ConsumerCrash].map(|kind| Action::Fault(kind, place.at, k));
        let mut actions = faults.into_iter().chain([Action::Deliver(place.at, attempts, k)]);
        let mut next = actions.try_fold(place.clone(), |place, action| self.take(&place, action))?;
        next.consumers[k] = place.consumers[k];
        Some(next)
    }
}
