//! Who waits for a decision on one thread, and until when. Pure: the caller brings time and wakers.
//!
//! Input: purchases that enter, decisions, the time. Output: decisions, and wakers of those who wait for them. The deadlines lie
//! in the order in which they come, so that one timer is enough. A crash leaves nothing.

use super::Decision;
use std::collections::VecDeque;
use std::task::{Poll, Waker};
use tokio::time::Instant;

/// The place of one purchase. A place is used again, its number is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    index: usize,
    number: u64,
}

/// The places of one thread.
#[derive(Default)]
pub(super) struct Places {
    slots: Vec<PlaceSlot>,
    free: Vec<usize>,
    entered: u64,
    /// By deadline. Of purchases that are decided, too, until they are the first.
    deadlines: VecDeque<(Instant, Place)>,
}

struct PlaceSlot {
    number: u64,
    state: PlaceState,
}

enum PlaceState {
    Free,
    /// No caller asks yet.
    Entered,
    Asked(Waker),
    Decided(Decision),
}

impl Places {
    /// A place for a purchase that is to be decided by `deadline`.
    pub(super) fn enter(&mut self, deadline: Instant) -> Place {
        self.entered += 1;
        let slot = PlaceSlot { number: self.entered, state: PlaceState::Entered };
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.slots.len(),
        };
        match self.slots.get_mut(index) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        let place = Place { index, number: self.entered };
        // Nearly always the last one. One that is tried again keeps its deadline, and others have entered since.
        let at = match self.deadlines.back() {
            Some((last, _)) if *last > deadline => self.deadlines.partition_point(|(other, _)| *other <= deadline),
            Some(_) | None => self.deadlines.len(),
        };
        self.deadlines.insert(at, (deadline, place));
        place
    }

    fn slot(&mut self, place: Place) -> Option<&mut PlaceSlot> {
        self.slots.get_mut(place.index).filter(|slot| slot.number == place.number)
    }

    /// The decision, which frees the place; without one `waker` is remembered. The waker before is for the caller to drop.
    pub(super) fn poll(&mut self, place: Place, waker: &Waker) -> (Poll<Decision>, Option<Waker>) {
        let Some(slot) = self.slot(place) else { return (Poll::Ready(Decision::Unknown), None) };
        match &slot.state {
            PlaceState::Asked(same) if same.will_wake(waker) => return (Poll::Pending, None),
            PlaceState::Decided(_) => {}
            PlaceState::Free | PlaceState::Entered | PlaceState::Asked(_) => {
                let before = std::mem::replace(&mut slot.state, PlaceState::Asked(waker.clone()));
                return (Poll::Pending, waker_of(before));
            }
        }
        match self.leave(place) {
            PlaceState::Decided(decision) => (Poll::Ready(decision), None),
            PlaceState::Free | PlaceState::Entered | PlaceState::Asked(_) => (Poll::Ready(Decision::Unknown), None),
        }
    }

    /// Puts a decision in its place; returns who asks for it. No caller does where the caller has gone.
    pub(super) fn decide(&mut self, place: Place, decision: Decision) -> Option<Waker> {
        let slot = self.slot(place)?;
        waker_of(std::mem::replace(&mut slot.state, PlaceState::Decided(decision)))
    }

    /// Frees a place; what was in it is for the caller to drop.
    fn leave(&mut self, place: Place) -> PlaceState {
        let Some(slot) = self.slot(place) else { return PlaceState::Free };
        slot.number = 0;
        let state = std::mem::replace(&mut slot.state, PlaceState::Free);
        self.free.push(place.index);
        state
    }

    /// Frees the place of a caller that has gone; the waker is for the caller of this to drop.
    pub(super) fn forget(&mut self, place: Place) -> Option<Waker> {
        waker_of(self.leave(place))
    }

    /// The first deadline of a purchase that is not decided.
    pub(super) fn next_deadline(&mut self) -> Option<Instant> {
        loop {
            let (deadline, place) = *self.deadlines.front()?;
            match self.slot(place).map(|slot| &slot.state) {
                Some(PlaceState::Entered | PlaceState::Asked(_)) => return Some(deadline),
                Some(PlaceState::Free | PlaceState::Decided(_)) | None => self.deadlines.pop_front(),
            };
        }
    }

    /// Decides that it is unknown what became of the first one whose deadline is over; who asks for it, if anybody does. `None`
    /// when no deadline is over.
    pub(super) fn expire_one(&mut self, now: Instant) -> Option<Option<Waker>> {
        self.next_deadline().filter(|deadline| *deadline <= now)?;
        let (_, place) = self.deadlines.pop_front()?;
        Some(self.decide(place, Decision::Unknown))
    }
}

fn waker_of(state: PlaceState) -> Option<Waker> {
    match state {
        PlaceState::Asked(waker) => Some(waker),
        PlaceState::Free | PlaceState::Entered | PlaceState::Decided(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ask(places: &mut Places, place: Place) -> Poll<Decision> {
        places.poll(place, Waker::noop()).0
    }

    #[test]
    fn a_decision_is_for_its_own_purchase_even_where_a_place_is_used_again() {
        let (mut places, soon) = (Places::default(), Instant::now());
        let first = places.enter(soon);
        assert!(places.decide(first, Decision::AllEmpty).is_none(), "no caller asks yet");
        assert_eq!(ask(&mut places, first), Poll::Ready(Decision::AllEmpty));
        let second = places.enter(soon);
        assert_eq!((second.index, places.slots.len()), (first.index, 1));
        assert_eq!(ask(&mut places, second), Poll::Pending);
        assert!(places.decide(first, Decision::Overloaded).is_none(), "too late");
        assert!(places.decide(second, Decision::Unavailable).is_some());
        assert_eq!(ask(&mut places, second), Poll::Ready(Decision::Unavailable));
        let gone = places.enter(soon);
        places.forget(gone);
        assert!(places.decide(gone, Decision::AllEmpty).is_none() && places.enter(soon).index == gone.index);
    }

    #[test]
    fn deadlines_end_in_their_order_and_only_of_what_is_not_decided() {
        let (mut places, begun) = (Places::default(), Instant::now());
        let at = |ms| begun + Duration::from_millis(ms);
        let [late, decided, later] = [2, 3, 4].map(|ms| places.enter(at(ms)));
        let tried_again = places.enter(at(1));
        places.decide(decided, Decision::AllEmpty);
        assert!(places.expire_one(at(0)).is_none());
        assert_eq!(places.next_deadline(), Some(at(1)));
        assert!(places.expire_one(at(1)).is_some() && places.expire_one(at(1)).is_none());
        assert_eq!(ask(&mut places, tried_again), Poll::Ready(Decision::Unknown));
        assert!(places.expire_one(at(3)).is_some() && places.expire_one(at(3)).is_none());
        assert_eq!(ask(&mut places, late), Poll::Ready(Decision::Unknown));
        assert_eq!(ask(&mut places, decided), Poll::Ready(Decision::AllEmpty));
        places.forget(later);
        assert_eq!((places.next_deadline(), places.deadlines.len()), (None, 0));
    }
}
