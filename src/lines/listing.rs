//! A line and its entries as operators see them, over HTTP and at the command line.

use super::document::DrawDocument;
use super::rows::{EntryTally, Line, ListedEntry};
use crate::domain::ids::{EntryId, RequestId, SaleId, UserId};
use crate::domain::line::{EntryState, LineKind};
use crate::http::cursors::last_of_full;
use crate::http::times::shown_time;
use serde::Serialize;

/// The line of a sale.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Line)]
pub(crate) struct LineDocument {
    #[schema(value_type = String, example = "demo")]
    sale_id: SaleId,
    /// How ranks come about.
    #[schema(example = "raffle")]
    kind: &'static str,
    /// AWAITED (a waiting list of a sale that is not sold out), OPEN, CLOSED (no entry is added any more), SEALED, DRAWN or DONE.
    #[schema(example = "DRAWN")]
    state: &'static str,
    /// From when entries are taken, RFC 3339; of a raffle.
    #[schema(format = DateTime)]
    opens_at: Option<String>,
    /// Until when, RFC 3339; of a raffle.
    #[schema(format = DateTime)]
    closes_at: Option<String>,
    entries: EntryCounts,
    /// Entries that wait and have a request all the same: it is asked again until there are units for it.
    in_hand: u64,
    /// The highest rank that has had an offer; null: none yet.
    offered_to_rank: Option<u32>,
    /// What everybody may see of the draw of a raffle.
    draw: Option<DrawDocument>,
}

/// How many entries are in each state, a few seconds old at most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct EntryCounts {
    waiting: u64,
    offered: u64,
    taken: u64,
    lapsed: u64,
    left: u64,
}

impl LineDocument {
    /// What is shown of this line, whose entries were counted before.
    pub(crate) fn of(line: &Line, tally: &EntryTally) -> Self {
        let mut entries = EntryCounts::default();
        for (state, count) in &tally.by_state {
            let of_state = match state {
                EntryState::Waiting => &mut entries.waiting,
                EntryState::Offered => &mut entries.offered,
                EntryState::Taken => &mut entries.taken,
                EntryState::Lapsed => &mut entries.lapsed,
                EntryState::Left => &mut entries.left,
            };
            *of_state = *count;
        }
        let is_drawn = line.kind == LineKind::Raffle;
        let time = |unix_ms| is_drawn.then(|| shown_time(unix_ms));
        Self {
            sale_id: line.sale_id.clone(),
            kind: line.kind.code(),
            state: line.state.code(),
            opens_at: time(line.opens_at_ms),
            closes_at: time(line.closes_at_ms),
            entries,
            in_hand: tally.in_hand,
            offered_to_rank: tally.offered_to_rank,
            draw: is_drawn.then(|| DrawDocument::of(line)),
        }
    }
}

/// A page of entries.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = LineEntries)]
pub(crate) struct EntriesPage {
    /// In the order of their ids.
    pub(crate) entries: Vec<ListedEntryDocument>,
    /// `after` of the next page; null on the last one.
    #[schema(value_type = Option<String>, example = "254385310867492864")]
    pub(crate) next: Option<EntryId>,
}

/// An entry with its buyer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = LineEntry)]
pub(crate) struct ListedEntryDocument {
    #[schema(value_type = String, example = "254385310867492864")]
    pub(crate) entry_id: EntryId,
    /// The buyer.
    #[schema(value_type = String)]
    pub(crate) user_id: UserId,
    /// The person for whom it counts, where the sale limits by person.
    #[schema(value_type = Option<String>)]
    pub(crate) person: Option<UserId>,
    /// Units wanted.
    pub(crate) quantity: u32,
    /// WAITING, OFFERED, TAKEN, LAPSED or LEFT.
    #[schema(example = "WAITING")]
    pub(crate) state: &'static str,
    /// Its state code.
    #[schema(example = "P6-W0")]
    pub(crate) code: &'static str,
    /// Whether it is in the list that is drawn; not when it left before the close.
    pub(crate) listed: bool,
    /// From 1; that of a raffle is written with the offer, null until then.
    pub(crate) rank: Option<u32>,
    /// The request of its offer; null: it has had none.
    #[schema(value_type = Option<String>)]
    pub(crate) request_id: Option<RequestId>,
    /// When it was written, RFC 3339.
    #[schema(format = DateTime)]
    pub(crate) entered_at: String,
    /// When its state changed last, RFC 3339.
    #[schema(format = DateTime)]
    pub(crate) state_at: String,
    /// Why it lapsed.
    pub(crate) reason: Option<String>,
}

impl EntriesPage {
    /// A page that was asked for with this limit.
    pub(crate) fn of(found: Vec<ListedEntry>, limit: u16) -> Self {
        let next = last_of_full(&found, limit).map(|entry| entry.id);
        Self { entries: found.into_iter().map(ListedEntryDocument::of).collect(), next }
    }
}

impl ListedEntryDocument {
    fn of(entry: ListedEntry) -> Self {
        Self {
            entry_id: entry.id,
            user_id: entry.user,
            person: entry.person,
            quantity: entry.quantity,
            state: entry.state.code(),
            code: entry.state.state().code(),
            listed: entry.listed,
            rank: entry.rank,
            request_id: entry.request_id,
            entered_at: shown_time(entry.entered_at_ms),
            state_at: shown_time(entry.state_at_ms),
            reason: entry.lapse_reason,
        }
    }
}
