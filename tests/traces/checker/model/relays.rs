//! What a relay's lines do in the model. A hand of it is the process that has the entry.

use super::super::journey::Step;
use super::player::{Place, Player, if_so};
use crate::actions::Action;
use crate::setup::Kind;
use crate::state::{Entry, Hand, PAIR};

impl Player<'_> {
    pub fn relay(&self, place: &Place, at: usize) -> Vec<Place> {
        let Step { line, .. } = self.steps[at];
        let process = self.processes[at];
        let own = place.relays.iter().position(|relay| *relay == Some(process));
        let Some(k) = own else {
            return if line.point() == "read" { self.read(place, process) } else { Vec::new() };
        };
        let (request, hand) = (place.request(), place.request().hand[k]);
        let goes_on = || self.take(place, Action::Relay(place.at, k)).into_iter();
        let forgets = || self.take(place, Action::Fault(Kind::RelayCrash, 0, k)).into_iter();
        let fault = |kind| Action::Fault(kind, place.at, k);
        match line.point() {
            "publish" => [Action::Publish(place.at, k), fault(Kind::PublishLost), fault(Kind::Returned)]
                .into_iter()
                .filter_map(|sent| self.take(place, sent))
                .collect(),
            "answer" if line.verdict() == "CONFIRMED" => {
                self.take(place, Action::Confirm(place.at, k)).into_iter().collect()
            }
            "answer" => match hand {
                Hand::Sent => self.take(place, fault(Kind::ConfirmLost)).into_iter().collect(),
                Hand::Unsent => goes_on().collect(),
                // It was given up before it was sent.
                Hand::Ready => {
                    let unsent = self.take(place, fault(Kind::PublishLost)).into_iter();
                    unsent.filter_map(|unsent| self.take(&unsent, Action::Relay(place.at, k))).collect()
                }
                Hand::Failed => if_so(true, place),
                Hand::None | Hand::Confirmed | Hand::Spent | Hand::Deleted => Vec::new(),
            },
            "done" if hand == Hand::Confirmed => goes_on().collect(),
            "counted" if line.attempts == Some(0) => forgets().collect(),
            // Its call to park it failed: it counts once more, and tries that again.
            "counted" if hand == Hand::Spent => if_so(line.attempts > Some(self.setup.entry_tries.into()), place),
            "counted" if hand == Hand::Failed => {
                // The model counts no further: an entry that no relay lived to park is counted once more by the next one.
                let attempts = line.attempts.unwrap_or(0).min(self.setup.entry_tries.into());
                let counted = |next: &Place| u32::from(next.request().kept.attempts) == attempts;
                goes_on().filter(counted).collect()
            }
            "park" => if_so(hand == Hand::Spent, place),
            "parked" if hand == Hand::Spent => {
                let moves = matches!(request.kept.entry, Entry::Pending(owner) if usize::from(owner) == k);
                match (line.verdict(), moves) {
                    ("MOVED", true) | ("NOT_OURS", false) => goes_on().collect(),
                    // Its entry, or its name with all that it had, was deleted from outside.
                    ("GONE", _) | ("NOT_OURS", true) => forgets().collect(),
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Into a free hand. Where another relay still has the entry, that is a fault of the model.
    fn read(&self, place: &Place, process: usize) -> Vec<Place> {
        let Some(k) = (0..PAIR).find(|k| place.relays[*k].is_none()) else { return Vec::new() };
        let reads = [Action::Read(place.at, k), Action::Fault(Kind::DoubleClaim, place.at, k)];
        let taken = reads.into_iter().filter_map(|read| self.take(place, read));
        taken
            .map(|mut next| {
                next.relays[k] = Some(process);
                next
            })
            .collect()
    }
}
