//! Everything a relay holds. Pure: no clock, no I/O.
//!
//! An entry is held once, and its place is a field of its own, so it cannot be lost between two lists or be in both. The
//! lists are only indexes over the places; every move goes through [`Hand::put`]. Tickets are never given twice: what
//! speaks late about an entry that was let go and taken again cannot mean the new one.

use super::entry::InHand;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// The number of one entry's stay in this hand, in the order of arrival.
pub(super) type Ticket = u64;

/// Where an entry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Read, and not sent.
    Ready,
    /// Sent, and not answered.
    Sent,
    /// Confirmed, and not deleted.
    Confirmed,
    /// Failed for this reason, and not counted.
    Failed(String),
    /// Counted; sent again from this time on.
    Waiting(Instant),
}

#[derive(Debug)]
struct Held {
    item: InHand,
    place: Place,
}

/// The entries of one relay. The caller bounds their number (its window).
#[derive(Debug, Default)]
pub(super) struct Hand {
    last: Ticket,
    held: HashMap<Ticket, Held>,
    /// Shard → stream id → ticket.
    ids: HashMap<u16, HashMap<String, Ticket>>,
    ready: BTreeSet<Ticket>,
    sent: BTreeSet<Ticket>,
    /// By shard, as they are asked for: a look at each shard must not be one at everybody's.
    confirmed: BTreeSet<(u16, Ticket)>,
    failed: BTreeSet<(u16, Ticket)>,
    waiting: BTreeSet<(Instant, Ticket)>,
}

impl Hand {
    /// How many entries are held, in whatever place.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn holds(&self, shard: u16, id: &str) -> bool {
        self.ids.get(&shard).is_some_and(|ids| ids.contains_key(id))
    }

    /// Takes an entry in, ready to be sent; `None` when it is held already.
    pub(super) fn take(&mut self, item: InHand) -> Option<Ticket> {
        if self.holds(item.shard, &item.id) {
            return None;
        }
        self.last += 1;
        self.ids.entry(item.shard).or_default().insert(item.id.clone(), self.last);
        self.held.insert(self.last, Held { item, place: Place::Ready });
        self.ready.insert(self.last);
        Some(self.last)
    }

    /// An entry, wherever it stands.
    pub(super) fn get(&self, ticket: Ticket) -> Option<&InHand> {
        self.held.get(&ticket).map(|held| &held.item)
    }

    /// The same, to move its state on.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut InHand> {
        self.held.get_mut(&ticket).map(|held| &mut held.item)
    }

    /// Why an entry failed, as long as that is not counted.
    pub(super) fn reason(&self, ticket: Ticket) -> Option<&str> {
        match self.held.get(&ticket).map(|held| &held.place) {
            Some(Place::Failed(reason)) => Some(reason),
            Some(Place::Ready | Place::Sent | Place::Confirmed | Place::Waiting(_)) | None => None,
        }
    }

    /// Moves an entry; `false` when it is not held any more.
    pub(super) fn put(&mut self, ticket: Ticket, place: Place) -> bool {
        let Some(held) = self.held.get_mut(&ticket) else { return false };
        let (to, shard) = (place.clone(), held.item.shard);
        let from = std::mem::replace(&mut held.place, place);
        self.unlist((shard, ticket), &from);
        match to {
            Place::Ready => self.ready.insert(ticket),
            Place::Sent => self.sent.insert(ticket),
            Place::Confirmed => self.confirmed.insert((shard, ticket)),
            Place::Failed(_) => self.failed.insert((shard, ticket)),
            Place::Waiting(until) => self.waiting.insert((until, ticket)),
        }
    }

    /// Lets go of an entry: it is finished, or another relay's.
    pub(super) fn let_go(&mut self, ticket: Ticket) -> Option<InHand> {
        let Held { item, place } = self.held.remove(&ticket)?;
        self.unlist((item.shard, ticket), &place);
        if let Some(ids) = self.ids.get_mut(&item.shard) {
            ids.remove(&item.id);
        }
        Some(item)
    }

    /// Another relay has this entry now. Let go of, unless its message is on the way: deleting after one's own confirm is
    /// always right, and a failure finds out again whose it is.
    pub(super) fn lost(&mut self, shard: u16, id: &str) {
        let Some(ticket) = self.ids.get(&shard).and_then(|ids| ids.get(id)).copied() else { return };
        match self.held.get(&ticket).map(|held| &held.place) {
            Some(Place::Ready | Place::Failed(_) | Place::Waiting(_)) => drop(self.let_go(ticket)),
            Some(Place::Sent | Place::Confirmed) | None => {}
        }
    }

    /// Makes everything ready that has waited until `now`.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((until, ticket)) = self.waiting.first().copied()
            && until <= now
        {
            self.put(ticket, Place::Ready);
        }
    }

    /// Makes the entry ready that has the least left to wait.
    pub(super) fn wake_first(&mut self) {
        if let Some((_, ticket)) = self.waiting.first().copied() {
            self.put(ticket, Place::Ready);
        }
    }

    /// Makes everything ready that waits, however long it would have to.
    pub(super) fn wake_all(&mut self) {
        while !self.waiting.is_empty() {
            self.wake_first();
        }
    }

    /// Whether an entry is ready.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Up to `max` of the ready entries, oldest first.
    pub(super) fn ready(&self, max: usize) -> Vec<Ticket> {
        self.ready.iter().copied().take(max).collect()
    }

    pub(super) fn confirmed_count(&self) -> usize {
        self.confirmed.len()
    }

    pub(super) fn failed_count(&self) -> usize {
        self.failed.len()
    }

    /// Entries in an attempt: between being sent and being ready again.
    pub(super) fn on_trial_count(&self) -> usize {
        self.sent.len() + self.failed.len() + self.waiting.len()
    }

    /// Up to `max` of the confirmed, or failed, entries of a shard, oldest first, with their ids.
    pub(super) fn confirmed_of(&self, shard: u16, max: usize) -> (Vec<Ticket>, Vec<String>) {
        self.listed(&self.confirmed, shard, max)
    }

    pub(super) fn failed_of(&self, shard: u16, max: usize) -> (Vec<Ticket>, Vec<String>) {
        self.listed(&self.failed, shard, max)
    }

    fn listed(&self, list: &BTreeSet<(u16, Ticket)>, shard: u16, max: usize) -> (Vec<Ticket>, Vec<String>) {
        let tickets = list.range((shard, Ticket::MIN)..=(shard, Ticket::MAX)).map(|(_, ticket)| *ticket);
        tickets.filter_map(|ticket| Some((ticket, self.get(ticket)?.id.clone()))).take(max).unzip()
    }

    /// The ids of everything held of a shard.
    pub(super) fn ids_of(&self, shard: u16) -> Vec<String> {
        self.ids.get(&shard).map(|ids| ids.keys().cloned().collect()).unwrap_or_default()
    }

    fn unlist(&mut self, (shard, ticket): (u16, Ticket), place: &Place) {
        match place {
            Place::Ready => self.ready.remove(&ticket),
            Place::Sent => self.sent.remove(&ticket),
            Place::Confirmed => self.confirmed.remove(&(shard, ticket)),
            Place::Failed(_) => self.failed.remove(&(shard, ticket)),
            Place::Waiting(until) => self.waiting.remove(&(*until, ticket)),
        };
    }
}

#[cfg(test)]
mod model;
