//! Which of several addresses of a server is in use: the first at the start of a process, and after a failure the next that can
//! be used. Kept in memory only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A place in a list of addresses. Clones share it, so that all connections of a role are to one server.
#[derive(Debug, Clone)]
pub struct AddressInUse {
    at: Arc<AtomicUsize>,
    /// The one that was reached last: a failure makes another the next in turn, whether or not it can be used.
    reached: Arc<AtomicUsize>,
    count: usize,
}

impl AddressInUse {
    /// The first of `count` addresses, 1 ….
    #[must_use]
    pub(crate) fn first_of(count: usize) -> Self {
        Self { at: Arc::default(), reached: Arc::default(), count: count.max(1) }
    }

    /// The one in use.
    pub(crate) fn index(&self) -> usize {
        self.at.load(Ordering::Relaxed)
    }

    /// All of them, in the order in which they are tried: the one in use first.
    pub(crate) fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.index(), self.count);
        (0..count).map(move |step| (first + step) % count)
    }

    /// This one can be used. Returns whether it is another than before.
    pub(crate) fn switch_to(&self, index: usize) -> bool {
        self.reached.store(index % self.count, Ordering::Relaxed);
        self.at.swap(index % self.count, Ordering::Relaxed) != index
    }

    /// Whether another than this one was reached since.
    pub(crate) fn was_left(&self, index: usize) -> bool {
        self.reached.load(Ordering::Relaxed) != index
    }

    /// This one failed: the next is tried first. Returns whether that changes anything: not when another is in use by now, or
    /// when there is no other.
    pub(crate) fn give_up(&self, index: usize) -> bool {
        let next = (index + 1) % self.count;
        next != index && self.at.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_tried_in_turn_and_a_late_failure_of_another_changes_nothing() {
        let in_use = AddressInUse::first_of(3);
        assert_eq!(in_use.in_turn().collect::<Vec<_>>(), [0, 1, 2]);
        let other = in_use.clone();
        assert!(std::thread::spawn(move || other.switch_to(2)).join().unwrap() && !in_use.switch_to(2));
        assert_eq!(in_use.in_turn().collect::<Vec<_>>(), [2, 0, 1]);
        assert!(!in_use.give_up(1));
        assert_eq!(in_use.index(), 2);
        assert!(in_use.give_up(2));
        assert_eq!(in_use.index(), 0);
        assert!(!in_use.was_left(2), "no caller has reached the next one");
        in_use.switch_to(0);
        assert!(in_use.was_left(2));
        let one = AddressInUse::first_of(1);
        assert!(!one.give_up(0));
        assert_eq!(one.in_turn().collect::<Vec<_>>(), [0]);
    }
}
