//! What an operator asks for at the desk, what it comes to, and which entries belong together. Pure.

use super::{Entry, Source};
use crate::domain::ids::RequestId;
use crate::domain::request::{Accepted, PayloadHash};
use serde::Serialize;
use std::collections::HashMap;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Land the requests the way the consumer would have.
    Replay,
    /// Record that they will never be orders, for this reason.
    GiveUp(String),
}

/// Which entries.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Request ids or entry names.
    pub named: Vec<String>,
    /// Everything, instead.
    pub all: bool,
    /// Only in this queue.
    pub source: Option<Source>,
    /// Tell only.
    pub dry_run: bool,
}

/// What became of one request (or of one entry that names none).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// The order was written.
    Landed,
    /// The database refused it for good.
    Refused,
    /// It was given up.
    GivenUp,
    /// Its outcome was decided before; the entry was removed.
    DecidedBefore,
    /// Dry run: it would be landed.
    WouldLand,
    /// Dry run: it would be given up.
    WouldGiveUp,
    /// Dry run: its outcome is decided, the entry would be removed.
    WouldRemove,
    /// An entry that cannot be a request of ours was removed, because it was named itself.
    Dropped,
    /// Its outcome is decided and nothing of it is parked: nothing to do.
    NothingToDo,
    /// It is not parked, and nothing is decided about it.
    NotParked,
    /// The message is unreadable and the ledger does not know it either; it stays.
    Unreadable,
    /// Another request with the same id or number was decided; it stays.
    Conflict,
    /// The database does not know the sale; it stays.
    UnknownSale,
    /// A server failed; it stays.
    Failed,
    /// Not looked at, because a server was gone before.
    NotTried,
}

impl Deed {
    /// Whether somebody still has to look.
    #[must_use]
    pub const fn is_trouble(&self) -> bool {
        match self {
            Self::NotParked | Self::Unreadable | Self::Conflict | Self::UnknownSale | Self::Failed | Self::NotTried => {
                true
            }
            Self::Landed
            | Self::Refused
            | Self::GivenUp
            | Self::DecidedBefore
            | Self::WouldLand
            | Self::WouldGiveUp
            | Self::WouldRemove
            | Self::Dropped
            | Self::NothingToDo => false,
        }
    }

    /// Whether its entries are to be removed.
    pub(super) const fn empties_its_place(&self) -> bool {
        matches!(self, Self::Landed | Self::Refused | Self::GivenUp | Self::DecidedBefore | Self::Dropped)
    }
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Done {
    /// The request, if there is one.
    pub request_id: Option<RequestId>,
    /// Where it was parked.
    pub entries: Vec<String>,
    /// What became of it.
    pub result: Deed,
    /// For a person.
    pub detail: String,
}

/// Told how many requests are done, and how many there are.
pub type OnProgress<'a> = &'a (dyn Fn(usize, usize) + Send + Sync);

/// What an act came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// One line a request.
    pub done: Vec<Done>,
    /// Some place has more entries than are looked at in one go: run it again.
    pub more: bool,
}

/// The entries of one request, which are decided together.
#[derive(Debug)]
pub(super) struct Group {
    pub entries: Vec<Entry>,
    /// An entry of it was asked for by its own name, not by request id or with all others.
    pub named_itself: bool,
}

impl Group {
    /// The request as accepted.
    pub fn accepted(&self) -> Option<&Accepted> {
        self.entries.first().and_then(|entry| entry.accepted.as_ref())
    }

    /// One line of the report.
    pub fn line(&self, result: Deed, detail: String) -> Done {
        Done {
            request_id: self.entries.iter().find_map(|entry| entry.request_id),
            entries: self.entries.iter().map(|entry| entry.entry.clone()).collect(),
            result,
            detail,
        }
    }

    /// What happens to a group that is no request of ours as it was accepted: only someone who names the entry itself may
    /// give it up; its message then goes into the row of the act.
    pub fn foreign(&self, act: &Act, trouble: Deed, dry_run: bool) -> (Deed, String) {
        match act {
            Act::GiveUp(_) if self.named_itself && dry_run => (Deed::WouldRemove, "not a request of ours".to_owned()),
            Act::GiveUp(_) if self.named_itself => {
                let payload = self.entries.first().map(|entry| String::from_utf8_lossy(&entry.payload));
                (Deed::Dropped, format!("message {:?}", payload.unwrap_or_default()))
            }
            Act::GiveUp(_) | Act::Replay => {
                let name = self.entries.first().map_or("", |entry| entry.entry.as_str());
                (trouble, format!("kept; look at it with seckill dlq show {name}, give it up by this very name"))
            }
        }
    }
}

/// The selected entries, those of one request (as accepted) together, in the order they were found.
pub(super) fn grouped(entries: Vec<Entry>, which: &Selection) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<(RequestId, PayloadHash), usize> = HashMap::new();
    for entry in entries {
        let by_name = which.named.contains(&entry.entry);
        if !(which.all || by_name || which.named.iter().any(|word| entry.is(word))) {
            continue;
        }
        let key = entry.accepted.as_ref().map(|accepted| (accepted.purchase.request_id, accepted.payload_hash()));
        match key.and_then(|key| places.get(&key).copied()).and_then(|at| groups.get_mut(at)) {
            Some(group) => {
                group.entries.push(entry);
                group.named_itself |= by_name;
            }
            None => {
                if let Some(key) = key {
                    places.insert(key, groups.len());
                }
                groups.push(Group { entries: vec![entry], named_itself: by_name });
            }
        }
    }
    groups
}

impl Entry {
    /// Whether this word, a request id or the entry's name, means this entry.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        self.entry == word || self.request_id.is_some_and(|id| id.to_string() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::super::find::tests::entry;
    use super::*;

    fn which(named: &[&str]) -> Selection {
        Selection { named: named.iter().map(|word| (*word).to_owned()).collect(), ..Selection::default() }
    }

    #[test]
    fn entries_of_one_request_are_decided_together_and_others_apart() {
        let entries = vec![entry("1-0", 5, 1), entry("2-0", 5, 1), entry("3-0", 5, 2), entry("4-0", 6, 1)];
        let all = Selection { all: true, ..Selection::default() };
        let sizes = |groups: &[Group]| groups.iter().map(|group| group.entries.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&grouped(entries.clone(), &all)), [2, 1, 1]);
        assert_eq!(sizes(&grouped(entries.clone(), &which(&["5"]))), [2, 1]);
        assert_eq!(sizes(&grouped(entries.clone(), &which(&["relay/0/4-0"]))), [1]);
        assert!(grouped(entries, &which(&["7"])).is_empty());
    }

    #[test]
    fn a_foreign_message_is_only_dropped_by_whoever_names_it() {
        let give_up = Act::GiveUp("noise".to_owned());
        let named = grouped(vec![entry("1-0", 5, 1)], &which(&["relay/0/1-0"])).remove(0);
        let asked = grouped(vec![entry("1-0", 5, 1)], &which(&["5"])).remove(0);
        assert_eq!(named.foreign(&give_up, Deed::Unreadable, false).0, Deed::Dropped);
        assert_eq!(named.foreign(&give_up, Deed::Unreadable, true).0, Deed::WouldRemove);
        assert_eq!(named.foreign(&Act::Replay, Deed::Unreadable, false).0, Deed::Unreadable);
        assert_eq!(asked.foreign(&give_up, Deed::Conflict, false).0, Deed::Conflict);
    }
}
