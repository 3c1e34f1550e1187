//! Which deliveries of one channel wait to be settled, and how few acks settle a group. Pure.
//!
//! An ack with `multiple` settles *every* lower tag of the channel, also of deliveries still on their way to the caller
//! through another queue's consumer. So it is used only below the floor: the highest tag up to which everything was settled
//! by the caller. Tags are 1, 2, 3 … per channel, which makes a tag never seen stand out as a gap.

use std::collections::BTreeSet;

/// Deliveries of one channel by tag.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// Given to the caller and not settled. At most the prefetch of all queues together.
    held: BTreeSet<u64>,
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

impl Unsettled {
    /// A delivery reached the caller.
    pub(super) fn received(&mut self, tag: u64) {
        self.held.insert(tag);
    }

    /// How many deliveries the caller has not settled.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// The caller settles one delivery in another way than by ack.
    ///
    /// # Errors
    /// The tag, when it was not given out or is settled already; nothing has changed then.
    pub(super) fn settle(&mut self, tag: u64) -> Result<(), u64> {
        if !self.held.remove(&tag) {
            return Err(tag);
        }
        self.ahead.insert(tag);
        while self.ahead.first() == Some(&(self.floor + 1)) {
            self.ahead.pop_first();
            self.floor += 1;
        }
        Ok(())
    }

    /// The caller acknowledges `tags`: returns the acks to send, in this order.
    ///
    /// # Errors
    /// The first tag that was not given out, is settled already or stands in `tags` twice; nothing has changed then.
    pub(super) fn ack(&mut self, tags: &[u64]) -> Result<Vec<AckFrame>, u64> {
        let mut group = BTreeSet::new();
        if let Some(wrong) = tags.iter().find(|tag| !self.held.contains(tag) || !group.insert(**tag)) {
            return Err(*wrong);
        }
        for tag in &group {
            self.settle(*tag)?;
        }
        // The broker closes the channel on an ack for a tag it no longer waits for, multiple or not: so the frame names
        // the group's own highest tag below the floor, not the floor itself.
        let above = group.split_off(&(self.floor + 1));
        let below = group.last().map(|tag| AckFrame { tag: *tag, multiple: group.len() > 1 });
        Ok(below.into_iter().chain(above.into_iter().map(|tag| AckFrame { tag, multiple: false })).collect())
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
            cuts in prop::collection::vec((1usize..6, 0u8..4), 1..30),
        ) {
            // All 30 are on their way; they reach the caller in any order and are settled in groups of any size.
            let mut broker = Broker((1..=30).collect());
            let mut unsettled = Unsettled::default();
            let mut arriving = order.into_iter();
            let mut held: Vec<u64> = Vec::new();
            for (count, kind) in cuts {
                for tag in arriving.by_ref().take(count) {
                    unsettled.received(tag);
                    held.push(tag);
                }
                if kind == 0 {
                    continue;
                }
                let group: Vec<u64> = held.drain(..held.len().min(count)).collect();
                if kind == 1 && let Some(tag) = group.first() {
                    unsettled.settle(*tag).unwrap();
                    broker.0.remove(tag);
                    prop_assert_eq!(unsettled.ack(&[*tag]), Err(*tag));
                    held.extend(&group[1..]);
                    continue;
                }
                let mut lost: Vec<u64> = Vec::new();
                for frame in unsettled.ack(&group).unwrap() {
                    lost.extend(broker.ack(frame));
                }
                lost.sort_unstable();
                let mut expected = group.clone();
                expected.sort_unstable();
                prop_assert_eq!(lost, expected);
                prop_assert_eq!(unsettled.len(), held.len());
            }
        }
    }

    #[test]
    fn a_whole_group_is_one_ack_and_a_gap_is_never_jumped() {
        let frame = |tag, multiple| AckFrame { tag, multiple };
        let mut unsettled = Unsettled::default();
        (1..=6).for_each(|tag| unsettled.received(tag));
        assert_eq!(unsettled.ack(&[2, 1, 3]), Ok(vec![frame(3, true)]));
        assert_eq!(unsettled.ack(&[5, 6]), Ok(vec![frame(5, false), frame(6, false)]));
        // 8 arrives before 7, through another queue.
        unsettled.received(8);
        assert_eq!(unsettled.ack(&[4, 8]), Ok(vec![frame(4, false), frame(8, false)]));
        unsettled.received(7);
        unsettled.received(9);
        assert_eq!(unsettled.ack(&[7, 9]), Ok(vec![frame(9, true)]));
    }

    #[test]
    fn what_was_not_given_out_or_is_settled_cannot_be_acknowledged() {
        let mut unsettled = Unsettled::default();
        unsettled.received(1);
        assert_eq!(unsettled.ack(&[1, 2]), Err(2));
        assert_eq!(unsettled.ack(&[1, 1]), Err(1));
        assert_eq!(unsettled.ack(&[1]).map(|frames| frames.len()), Ok(1));
        assert_eq!(unsettled.ack(&[1]), Err(1));
        assert_eq!(unsettled.ack(&[]), Ok(vec![]));
    }
}
