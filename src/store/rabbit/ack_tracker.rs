//! Which deliveries of one channel are not acknowledged yet, and the few ack frames that acknowledge a group. Pure.
//!
//! An ack with `multiple` settles *every* lower tag of the channel, also of deliveries still on their way to the caller
//! through another queue's consumer. So it is used only below the floor: the highest tag up to which everything was settled
//! by the caller. Tags are 1, 2, 3 … per channel, which makes a tag never seen stand out as a gap.
//!
//! A delivery may be a bundle: it is settled once all of its orders are.

use crate::domain::message::BUNDLE_MAX;
use crate::faults::left_out;
use std::collections::{BTreeMap, BTreeSet};

/// An order of a delivery: its tag, and its place in the message, from 0 and below [`BUNDLE_MAX`].
pub(super) type OrderPart = (u64, u8);

/// Deliveries of one channel by tag.
#[derive(Debug, Default)]
pub(super) struct AckTracker {
    /// Given to the caller and not settled, with a bit for each order that is not. At most the prefetch of all queues together.
    held: BTreeMap<u64, u64>,
    /// Every tag up to this one is settled.
    floor: u64,
    /// Settled above the floor, beyond a gap.
    ahead: BTreeSet<u64>,
}

/// One ack to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AckFrame {
    pub(super) tag: u64,
    pub(super) multiple: bool,
}

impl AckTracker {
    /// A delivery with this number of orders (1 …= [`BUNDLE_MAX`]) reached the caller.
    pub(super) fn received(&mut self, tag: u64, orders: usize) {
        let all = u64::MAX >> BUNDLE_MAX.saturating_sub(orders).min(BUNDLE_MAX - 1);
        self.held.insert(tag, all);
    }

    /// How many deliveries the caller has not settled.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// The last delivery that the caller has not settled.
    pub(super) fn newest(&self) -> Option<u64> {
        self.held.last_key_value().map(|(tag, _)| *tag)
    }

    /// The caller settles one whole delivery in another way than by ack.
    ///
    /// # Errors
    /// The tag, when it was not given out or is settled already; nothing has changed then.
    pub(super) fn settle(&mut self, tag: u64) -> Result<(), u64> {
        self.held.remove(&tag).ok_or(tag)?;
        self.ahead.insert(tag);
        while self.ahead.first() == Some(&(self.floor + 1)) {
            self.ahead.pop_first();
            self.floor += 1;
        }
        Ok(())
    }

    /// The caller acknowledges `parts`: returns the acks to send, in this order, for the deliveries that are whole now.
    ///
    /// # Errors
    /// The tag of the first one that was not given out, is settled already or stands in `parts` twice; nothing has changed then.
    pub(super) fn ack(&mut self, parts: &[OrderPart]) -> Result<Vec<AckFrame>, u64> {
        if left_out!(AckAfterLastOrder) {
            return self.ack_with_first(parts);
        }
        let mut by_tag: BTreeMap<u64, u64> = BTreeMap::new();
        for (tag, part) in parts {
            let bit = 1_u64.checked_shl(u32::from(*part)).unwrap_or(0);
            let (open, marked) = (self.held.get(tag).copied().unwrap_or(0), by_tag.entry(*tag).or_default());
            if open & !*marked & bit == 0 {
                return Err(*tag);
            }
            *marked |= bit;
        }
        let mut group = BTreeSet::new();
        for (tag, marked) in by_tag {
            let open = self.held.get_mut(&tag).ok_or(tag)?;
            *open &= !marked;
            if *open == 0 {
                self.settle(tag)?;
                group.insert(tag);
            }
        }
        // The broker closes the channel on an ack for a tag it no longer waits for, multiple or not: so the frame names
        // the group's own highest tag below the floor, not the floor itself.
        let above = group.split_off(&(self.floor + 1));
        let below = group.last().map(|tag| AckFrame { tag: *tag, multiple: group.len() > 1 });
        Ok(below.into_iter().chain(above.into_iter().map(|tag| AckFrame { tag, multiple: false })).collect())
    }

    /// What `Mechanism::AckAfterLastOrder` forbids: the first order acknowledges the delivery, and the others find it settled.
    fn ack_with_first(&mut self, parts: &[OrderPart]) -> Result<Vec<AckFrame>, u64> {
        let tags = parts.iter().map(|(tag, _)| *tag).filter(|tag| self.held.contains_key(tag));
        let tags: BTreeSet<u64> = tags.collect();
        tags.into_iter().map(|tag| self.settle(tag).map(|()| AckFrame { tag, multiple: false })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the broker does: keeps unacknowledged tags, and closes the channel on a tag it does not know.
    struct Broker(BTreeSet<u64>);

    impl Broker {
        fn ack(&mut self, frame: AckFrame) -> Vec<u64> {
            assert!(self.0.contains(&frame.tag), "406: unknown delivery tag {}", frame.tag);
            let hit: Vec<u64> =
                self.0.iter().copied().filter(|t| *t == frame.tag || frame.multiple && *t < frame.tag).collect();
            for tag in &hit {
                self.0.remove(tag);
            }
            hit
        }
    }

    proptest! {
        #[test]
        fn the_broker_loses_exactly_what_was_acknowledged(
            order in Just((1u64..=30).collect::<Vec<_>>()).prop_shuffle(),
            orders in prop::collection::vec(1u8..4, 30),
            cuts in prop::collection::vec((1usize..6, 0u8..4), 1..60),
        ) {
            // All 30 are on their way; they reach the caller in any order, and their orders are settled in groups of any size.
            let mut broker = Broker((1..=30).collect());
            let mut tracker = AckTracker::default();
            let mut arriving = order.into_iter().zip(orders);
            let mut held: Vec<OrderPart> = Vec::new();
            for (count, kind) in cuts {
                for (tag, orders) in arriving.by_ref().take(count) {
                    tracker.received(tag, orders.into());
                    held.extend((0..orders).map(|part| (tag, part)));
                }
                if kind == 0 {
                    continue;
                }
                if kind == 1 && let Some((tag, part)) = held.first().copied() {
                    tracker.settle(tag).unwrap();
                    broker.0.remove(&tag);
                    prop_assert_eq!(tracker.ack(&[(tag, part)]), Err(tag));
                    held.retain(|(other, _)| *other != tag);
                    continue;
                }
                let group: Vec<OrderPart> = held.drain(..held.len().min(count)).collect();
                let mut lost: Vec<u64> = Vec::new();
                for frame in tracker.ack(&group).unwrap() {
                    lost.extend(broker.ack(frame));
                }
                lost.sort_unstable();
                // Those of the group of which nothing is left to be settled.
                let left: BTreeSet<u64> = held.iter().map(|(tag, _)| *tag).collect();
                let whole: BTreeSet<u64> = group.iter().map(|(tag, _)| *tag).filter(|tag| !left.contains(tag)).collect();
                prop_assert_eq!(lost, whole.into_iter().collect::<Vec<_>>());
                prop_assert_eq!(tracker.len(), left.len());
            }
        }
    }

    #[test]
    fn a_whole_group_is_one_ack_and_a_gap_is_never_jumped() {
        let frame = |tag, multiple| AckFrame { tag, multiple };
        let mut tracker = AckTracker::default();
        (1..=6).for_each(|tag| tracker.received(tag, 1));
        let mut ack = |tags: &[u64]| tracker.ack(&tags.iter().map(|tag| (*tag, 0)).collect::<Vec<_>>());
        assert_eq!(ack(&[2, 1, 3]), Ok(vec![frame(3, true)]));
        assert_eq!(ack(&[5, 6]), Ok(vec![frame(5, false), frame(6, false)]));
        // 8 arrives before 7, through another queue.
        tracker.received(8, 1);
        assert_eq!(tracker.ack(&[(4, 0), (8, 0)]), Ok(vec![frame(4, false), frame(8, false)]));
        tracker.received(7, 1);
        tracker.received(9, 1);
        assert_eq!(tracker.ack(&[(7, 0), (9, 0)]), Ok(vec![frame(9, true)]));
    }

    #[test]
    fn a_bundle_is_acknowledged_with_its_last_order_and_none_of_them_twice() {
        let whole = |tag| Ok(vec![AckFrame { tag, multiple: false }]);
        let mut tracker = AckTracker::default();
        tracker.received(1, 3);
        tracker.received(2, BUNDLE_MAX);
        assert_eq!(tracker.ack(&[(1, 0), (1, 2)]), Ok(vec![]));
        for wrong in [vec![(1, 1), (1, 0)], vec![(1, 1), (1, 1)], vec![(1, 3)], vec![(1, 64)], vec![(2, 64)]] {
            assert!(tracker.ack(&wrong).is_err(), "{wrong:?}");
        }
        assert_eq!((tracker.len(), tracker.ack(&[(1, 1)]), tracker.len()), (2, whole(1), 1));
        let all: Vec<OrderPart> = (0..64).map(|part| (2, part)).collect();
        assert_eq!(tracker.ack(&all), whole(2));
    }

    #[test]
    fn what_was_not_given_out_or_is_settled_cannot_be_acknowledged() {
        let mut tracker = AckTracker::default();
        tracker.received(1, 1);
        assert_eq!(tracker.ack(&[(1, 0), (2, 0)]), Err(2));
        assert_eq!(tracker.ack(&[(1, 0), (1, 0)]), Err(1));
        assert_eq!(tracker.ack(&[(1, 0)]).map(|frames| frames.len()), Ok(1));
        assert_eq!(tracker.ack(&[(1, 0)]), Err(1));
        assert_eq!(tracker.ack(&[]), Ok(vec![]));
    }
}
