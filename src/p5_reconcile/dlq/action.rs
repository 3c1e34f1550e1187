//! The actions of an operator, their results, and which entries belong together. Pure.

use super::entry::{DlqEntry, DlqSource};
use crate::domain::ids::RequestId;
use crate::domain::message::{OrderMessage, PayloadHash};
use serde::Serialize;
use std::collections::HashMap;

/// What to do with parked requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DlqAction {
    /// Persist them the way the consumer would have.
    Replay,
    /// Record that they will never be orders, for this reason.
    GiveUp(String),
}

/// The entries to act on.
#[derive(Debug, Clone, Default)]
pub struct DlqSelection {
    /// Request ids or entry names.
    pub named: Vec<String>,
    /// Every entry, instead of named ones.
    pub all: bool,
    /// Only entries of this queue.
    pub source: Option<DlqSource>,
    /// Change nothing, only report what would happen.
    pub dry_run: bool,
}

/// What became of one request, or of one entry without a request id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DlqActionResult {
    /// The order was written.
    Landed,
    /// The database refused it for good.
    Refused,
    /// It was given up.
    GivenUp,
    /// Its outcome was decided before; the entry was removed.
    DecidedBefore,
    /// Dry run: it would be persisted.
    WouldLand,
    /// Dry run: it would be given up.
    WouldGiveUp,
    /// Dry run: its outcome is decided, the entry would be removed.
    WouldRemove,
    /// An entry that cannot be a request of ours was removed, because it was named itself.
    Dropped,
    /// Its outcome is decided and it is not parked: nothing to do.
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
    /// Not tried, because a server did not answer before.
    NotTried,
}

impl DlqActionResult {
    /// Whether a person still has to decide about it.
    pub(crate) const fn is_trouble(&self) -> bool {
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

/// What became of one request.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct DlqReportLine {
    /// None: the message is unreadable.
    #[schema(value_type = Option<String>)]
    pub request_id: Option<RequestId>,
    /// The names of its entries.
    pub entries: Vec<String>,
    /// What was done.
    #[schema(value_type = String, example = "landed")]
    pub result: DlqActionResult,
    /// Words for an operator.
    pub detail: String,
}

/// Called with the requests that are done, and with all of them.
pub(super) type OnDlqProgress<'a> = &'a (dyn Fn(usize, usize) + Send + Sync);

/// What an action came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DlqReport {
    /// One line a request.
    pub done: Vec<DlqReportLine>,
    /// A place has more entries than are read at once: run it again.
    pub more: bool,
}

/// The entries of one request, which are decided together.
#[derive(Debug)]
pub(super) struct DlqGroup {
    pub entries: Vec<DlqEntry>,
    /// The operator named an entry of it by its entry name, not by request id or with all others.
    pub(crate) named_itself: bool,
}

impl DlqGroup {
    /// The request as accepted.
    pub(crate) fn accepted(&self) -> Option<&OrderMessage> {
        self.entries.first().and_then(|entry| entry.accepted.as_ref())
    }

    /// One line of the report.
    pub(crate) fn line(&self, result: DlqActionResult, detail: String) -> DlqReportLine {
        DlqReportLine {
            request_id: self.entries.iter().find_map(|entry| entry.request_id),
            entries: self.entries.iter().map(|entry| entry.entry.clone()).collect(),
            result,
            detail,
        }
    }

    /// What happens to a group that is no request of ours as it was accepted: it is given up only by its entry name, and its message
    /// then goes into the row of the act.
    pub(crate) fn foreign(
        &self,
        action: &DlqAction,
        trouble: DlqActionResult,
        dry_run: bool,
    ) -> (DlqActionResult, String) {
        match action {
            DlqAction::GiveUp(_) if self.named_itself && dry_run => {
                (DlqActionResult::WouldRemove, "not a request of ours".to_owned())
            }
            DlqAction::GiveUp(_) if self.named_itself => {
                let payload = self.entries.first().map(|entry| String::from_utf8_lossy(&entry.payload));
                (DlqActionResult::Dropped, format!("message {:?}", payload.unwrap_or_default()))
            }
            DlqAction::GiveUp(_) | DlqAction::Replay => {
                let name = self.entries.first().map_or("", |entry| entry.entry.as_str());
                (trouble, format!("kept; read it with seckill dlq show {name}, give it up by this name"))
            }
        }
    }
}

/// The selected entries, those of one request (as accepted) together, in the order they were found.
pub(super) fn grouped(entries: Vec<DlqEntry>, which: &DlqSelection) -> Vec<DlqGroup> {
    let mut groups: Vec<DlqGroup> = Vec::new();
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
                groups.push(DlqGroup { entries: vec![entry], named_itself: by_name });
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::find::tests::entry;
    use super::*;

    fn which(named: &[&str]) -> DlqSelection {
        DlqSelection { named: named.iter().map(|word| (*word).to_owned()).collect(), ..DlqSelection::default() }
    }

    #[test]
    fn entries_of_one_request_are_decided_together_and_others_apart() {
        let entries = vec![entry("1-0", 5, 1), entry("2-0", 5, 1), entry("3-0", 5, 2), entry("4-0", 6, 1)];
        let all = DlqSelection { all: true, ..DlqSelection::default() };
        let sizes = |groups: &[DlqGroup]| groups.iter().map(|group| group.entries.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&grouped(entries.clone(), &all)), [2, 1, 1]);
        assert_eq!(sizes(&grouped(entries.clone(), &which(&["5"]))), [2, 1]);
        assert_eq!(sizes(&grouped(entries.clone(), &which(&["relay/0/4-0"]))), [1]);
        assert!(grouped(entries, &which(&["7"])).is_empty());
    }

    #[test]
    fn a_foreign_message_is_dropped_by_its_entry_name_only() {
        let give_up = DlqAction::GiveUp("noise".to_owned());
        let named = grouped(vec![entry("1-0", 5, 1)], &which(&["relay/0/1-0"])).remove(0);
        let asked = grouped(vec![entry("1-0", 5, 1)], &which(&["5"])).remove(0);
        assert_eq!(named.foreign(&give_up, DlqActionResult::Unreadable, false).0, DlqActionResult::Dropped);
        assert_eq!(named.foreign(&give_up, DlqActionResult::Unreadable, true).0, DlqActionResult::WouldRemove);
        assert_eq!(
            named.foreign(&DlqAction::Replay, DlqActionResult::Unreadable, false).0,
            DlqActionResult::Unreadable
        );
        assert_eq!(asked.foreign(&give_up, DlqActionResult::Conflict, false).0, DlqActionResult::Conflict);
    }
}
