//! The in-flight window of a relay for an order queue: every entry that it has read, and neither finished nor set aside. Pure: no clock, no I/O.
//!
//! An entry is in the window once, and its state is one field, so it cannot be lost between two lists or be in both. The lists
//! are only indexes over the states; every move goes through [`InFlightWindow::set_state`]. Keys are never used twice: a late
//! answer about an entry that was removed and read again cannot mean the new one.

use super::entry::RelayEntry;
use crate::store::redis::SentEntry;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Names one stay of an entry in the window, in the order of arrival.
pub(super) type EntryKey = u64;

/// The state of an entry in the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Read, and not sent.
    Ready,
    /// Published, and not answered.
    Published,
    /// Confirmed, and not deleted.
    Confirmed,
    /// Failed for this reason, and not counted.
    Failed(String),
    /// Counted; sent again from this time on.
    Waiting(Instant),
}

#[derive(Debug)]
struct WindowEntry {
    entry: RelayEntry,
    state: EntryState,
}

/// The entries of one relay for one order queue. The caller bounds their number.
#[derive(Debug, Default)]
pub(super) struct InFlightWindow {
    last: EntryKey,
    /// Orders of all entries.
    orders: usize,
    entries: HashMap<EntryKey, WindowEntry>,
    /// Shard → outbox id → key.
    ids: HashMap<u16, HashMap<String, EntryKey>>,
    ready: BTreeSet<EntryKey>,
    sent: BTreeSet<EntryKey>,
    /// By shard, because they are read shard by shard.
    confirmed: BTreeSet<(u16, EntryKey)>,
    failed: BTreeSet<(u16, EntryKey)>,
    waiting: BTreeSet<(Instant, EntryKey)>,
}

impl InFlightWindow {
    /// How many entries there are, in any state.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many orders the entries have.
    pub(super) const fn orders(&self) -> usize {
        self.orders
    }

    pub(super) fn contains(&self, shard: u16, id: &str) -> bool {
        self.ids.get(&shard).is_some_and(|ids| ids.contains_key(id))
    }

    /// Adds an entry, ready to be sent; `None` when it is there already.
    pub(super) fn insert(&mut self, entry: RelayEntry) -> Option<EntryKey> {
        if self.contains(entry.shard, &entry.id) {
            return None;
        }
        self.last += 1;
        self.orders += entry.orders;
        self.ids.entry(entry.shard).or_default().insert(entry.id.clone(), self.last);
        self.entries.insert(self.last, WindowEntry { entry, state: EntryState::Ready });
        self.ready.insert(self.last);
        Some(self.last)
    }

    /// An entry, in any state.
    pub(super) fn get(&self, key: EntryKey) -> Option<&RelayEntry> {
        self.entries.get(&key).map(|held| &held.entry)
    }

    /// The same, to move its state on.
    pub(super) fn get_mut(&mut self, key: EntryKey) -> Option<&mut RelayEntry> {
        self.entries.get_mut(&key).map(|held| &mut held.entry)
    }

    /// Why an entry failed, as long as that is not counted.
    pub(super) fn failure(&self, key: EntryKey) -> Option<&str> {
        match self.entries.get(&key).map(|held| &held.state) {
            Some(EntryState::Failed(reason)) => Some(reason),
            Some(EntryState::Ready | EntryState::Published | EntryState::Confirmed | EntryState::Waiting(_)) | None => {
                None
            }
        }
    }

    /// Moves an entry to a state; `false` when it is not there any more.
    pub(super) fn set_state(&mut self, key: EntryKey, state: EntryState) -> bool {
        let Some(held) = self.entries.get_mut(&key) else { return false };
        let (to, shard) = (state.clone(), held.entry.shard);
        let from = std::mem::replace(&mut held.state, state);
        self.unlist((shard, key), &from);
        match to {
            EntryState::Ready => self.ready.insert(key),
            EntryState::Published => self.sent.insert(key),
            EntryState::Confirmed => self.confirmed.insert((shard, key)),
            EntryState::Failed(_) => self.failed.insert((shard, key)),
            EntryState::Waiting(until) => self.waiting.insert((until, key)),
        }
    }

    /// Removes an entry: it is finished, or another relay has it.
    pub(super) fn remove(&mut self, key: EntryKey) -> Option<RelayEntry> {
        let WindowEntry { entry, state } = self.entries.remove(&key)?;
        self.orders -= entry.orders;
        self.unlist((entry.shard, key), &state);
        if let Some(ids) = self.ids.get_mut(&entry.shard) {
            ids.remove(&entry.id);
        }
        Some(entry)
    }

    /// Another relay has this entry now. It is removed, unless its message is on the way: deleting after this relay's own
    /// confirm is always right, and a failure finds out again whose entry it is.
    pub(super) fn lost(&mut self, shard: u16, id: &str) {
        let Some(key) = self.ids.get(&shard).and_then(|ids| ids.get(id)).copied() else { return };
        match self.entries.get(&key).map(|held| &held.state) {
            Some(EntryState::Ready | EntryState::Failed(_) | EntryState::Waiting(_)) => drop(self.remove(key)),
            Some(EntryState::Published | EntryState::Confirmed) | None => {}
        }
    }

    /// Removes up to `count` entries that are not on the way, and returns their shards: with `ready_too` the youngest of those
    /// that are ready, then those whose pause ends last. They stay this relay's in the outbox.
    pub(super) fn set_aside(&mut self, count: usize, ready_too: bool) -> BTreeSet<u16> {
        let ready = self.ready.iter().rev().copied().filter(|_| ready_too);
        let waiting = self.waiting.iter().rev().map(|(_, key)| *key);
        let keys: Vec<EntryKey> = ready.chain(waiting).take(count).collect();
        keys.into_iter().filter_map(|key| self.remove(key)).map(|entry| entry.shard).collect()
    }

    /// How many entries wait for their next attempt.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Makes the entries ready whose pause ends at `now` or before.
    pub(super) fn retry_due(&mut self, now: Instant) {
        while let Some((until, key)) = self.waiting.first().copied()
            && until <= now
        {
            self.set_state(key, EntryState::Ready);
        }
    }

    /// Makes the entry ready whose pause ends first.
    pub(super) fn retry_first(&mut self) {
        if let Some((_, key)) = self.waiting.first().copied() {
            self.set_state(key, EntryState::Ready);
        }
    }

    /// Makes all waiting entries ready, however long their pauses are.
    pub(super) fn retry_all(&mut self) {
        while !self.waiting.is_empty() {
            self.retry_first();
        }
    }

    /// Whether an entry is ready.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Up to `max` of the ready entries, oldest first.
    pub(super) fn ready(&self, max: usize) -> Vec<EntryKey> {
        self.ready.iter().copied().take(max).collect()
    }

    pub(super) fn confirmed_count(&self) -> usize {
        self.confirmed.len()
    }

    pub(super) fn failed_count(&self) -> usize {
        self.failed.len()
    }

    /// Entries in an attempt: between being sent and being ready again.
    pub(super) fn attempts_under_way(&self) -> usize {
        self.sent.len() + self.failed.len() + self.waiting.len()
    }

    /// Up to `max` of the confirmed entries of a shard, oldest first, as the outbox deletes them.
    pub(super) fn confirmed_of(&self, shard: u16, max: usize) -> (Vec<EntryKey>, Vec<SentEntry>) {
        let sent = |entry: &RelayEntry| SentEntry { id: entry.id.clone(), orders: entry.orders };
        self.listed(&self.confirmed, shard).map(|(key, entry)| (key, sent(entry))).take(max).unzip()
    }

    /// Up to `max` of the failed entries of a shard, oldest first, with their ids.
    pub(super) fn failed_of(&self, shard: u16, max: usize) -> (Vec<EntryKey>, Vec<String>) {
        self.listed(&self.failed, shard).map(|(key, entry)| (key, entry.id.clone())).take(max).unzip()
    }

    fn listed<'a>(
        &'a self,
        list: &'a BTreeSet<(u16, EntryKey)>,
        shard: u16,
    ) -> impl Iterator<Item = (EntryKey, &'a RelayEntry)> {
        let keys = list.range((shard, EntryKey::MIN)..=(shard, EntryKey::MAX)).map(|(_, key)| *key);
        keys.filter_map(|key| Some((key, self.get(key)?)))
    }

    /// The ids of all entries of a shard.
    pub(super) fn ids_of(&self, shard: u16) -> Vec<String> {
        self.ids.get(&shard).map(|ids| ids.keys().cloned().collect()).unwrap_or_default()
    }

    fn unlist(&mut self, (shard, key): (u16, EntryKey), state: &EntryState) {
        match state {
            EntryState::Ready => self.ready.remove(&key),
            EntryState::Published => self.sent.remove(&key),
            EntryState::Confirmed => self.confirmed.remove(&(shard, key)),
            EntryState::Failed(_) => self.failed.remove(&(shard, key)),
            EntryState::Waiting(until) => self.waiting.remove(&(*until, key)),
        };
    }
}

#[cfg(test)]
mod model;
