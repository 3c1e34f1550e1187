//! How many entries a relay reads for a number of orders. An entry does not say before it is read how many orders it has,
//! and the window counts orders. Pure.

use crate::domain::message::BUNDLE_MAX;
use crate::store::redis::OutboxEntry;

/// Entries read at once after small reads: with as many orders as they can have, they are a window of the default size.
const READ_FIRST: usize = 32;

/// What the last entries of a shard say about the next ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySizes {
    /// Orders expected in an entry, from 1; at first as many as there can be. It rises to what came at once, and falls by
    /// halves.
    orders_each: usize,
    /// Entries of the last read.
    read: usize,
}

impl Default for EntrySizes {
    fn default() -> Self {
        Self { orders_each: BUNDLE_MAX, read: 0 }
    }
}

impl EntrySizes {
    /// Entries to read for this many orders, from 1: at most twice as many as the last time, so that the first large entries
    /// after small ones do not come by the thousand.
    pub(super) fn entries_for(self, orders: usize) -> usize {
        orders.div_ceil(self.orders_each).min(READ_FIRST.max(2 * self.read)).max(1)
    }

    /// Notes what was read. Returns how many orders that were.
    pub(super) fn note(&mut self, entries: &[OutboxEntry]) -> usize {
        let orders = entries.iter().map(OutboxEntry::orders).sum();
        if !entries.is_empty() {
            let came = usize::div_ceil(orders, entries.len());
            *self = Self { orders_each: came.max(usize::midpoint(self.orders_each, came)), read: entries.len() };
        }
        orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: usize, orders: usize) -> Vec<OutboxEntry> {
        let fields = vec![("n".to_owned(), orders.to_string().into_bytes())];
        vec![OutboxEntry { id: "1-1".into(), fields }; count]
    }

    #[test]
    fn full_entries_are_expected_until_small_ones_came_and_few_are_read_until_many_came() {
        let mut sizes = EntrySizes::default();
        assert_eq!([1, 64, 65, 2048].map(|orders| sizes.entries_for(orders)), [1, 1, 2, 32]);
        assert_eq!(sizes.note(&entries(32, 1)), 32);
        assert_eq!([64, 2016].map(|orders| sizes.entries_for(orders)), [2, 63], "the next may be half full");
        for _ in 0..5 {
            sizes.note(&entries(32, 1));
        }
        assert_eq!([63, 2016].map(|orders| sizes.entries_for(orders)), [63, 64], "twice as many as the last time");
        sizes.note(&entries(64, 1));
        assert_eq!(sizes.entries_for(2048), 128);
        assert_eq!(sizes.note(&entries(3, 64)), 192);
        assert_eq!([640, 64].map(|orders| sizes.entries_for(orders)), [10, 1]);
        assert_eq!((sizes.note(&[]), sizes.entries_for(64)), (0, 1), "an empty read says nothing");
    }
}
