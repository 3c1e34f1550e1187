//! A line: entries of a sale that are given units by rank. What a sale plans of it, its states, and those of an entry.
//!
//! Values only. One table says what follows when something happens to an entry; the database's conditions are made from it.

use super::states::P6Fulfil;

/// Longest beacon, characters.
pub const BEACON_CHARS_MAX: usize = 200;

/// How ranks come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// Drawn once, after the entries closed.
    Raffle,
    /// By arrival. It takes entries while the sale is sold out.
    Waitlist,
}

impl LineKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Raffle, Self::Waitlist];

    /// The stored and shown code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Raffle => "raffle",
            Self::Waitlist => "waitlist",
        }
    }

    /// The state in which a new line of this kind is.
    #[must_use]
    pub(crate) const fn first_state(self) -> LineState {
        match self {
            Self::Raffle => LineState::Open,
            Self::Waitlist => LineState::Awaited,
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl std::str::FromStr for LineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_code(text).ok_or_else(|| format!("{text:?} is no kind of line, expected raffle or waitlist"))
    }
}

/// The line of a new sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlan {
    /// How ranks come about.
    pub kind: LineKind,
    /// Until when a raffle takes entries, Unix milliseconds. A waiting list takes them until the end of its sale, which this is then.
    pub closes_at_ms: i64,
    /// Whether it is drawn only with a text from outside.
    pub needs_beacon: bool,
}

/// How far a line is. A raffle only goes on, from OPEN to DONE; a waiting list goes from AWAITED to OPEN and back until it is DONE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LineState {
    /// A waiting list of a sale that is not sold out: units are sold by click, and no entry is taken.
    Awaited,
    /// Entries are taken: until the close of a raffle, or while the sale is sold out.
    Open,
    /// No entry is added, and none leaves the list any more.
    Closed,
    /// Count and digest of the list are written, and the seed is public.
    Sealed,
    /// The ranks are settled, and units go to them.
    Drawn,
    /// Every offer is decided, and none is made any more: no entry waits, or the sale is over.
    Done,
}

impl LineState {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 6] = [Self::Awaited, Self::Open, Self::Closed, Self::Sealed, Self::Drawn, Self::Done];

    /// The stored and shown code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Awaited => "AWAITED",
            Self::Open => "OPEN",
            Self::Closed => "CLOSED",
            Self::Sealed => "SEALED",
            Self::Drawn => "DRAWN",
            Self::Done => "DONE",
        }
    }

    /// Whether its list is sealed, so that its seed is public; of a raffle.
    #[must_use]
    pub(crate) const fn is_sealed(self) -> bool {
        matches!(self, Self::Sealed | Self::Drawn | Self::Done)
    }

    /// Whether its ranks are settled; of a raffle.
    #[must_use]
    pub(crate) const fn is_drawn(self) -> bool {
        matches!(self, Self::Drawn | Self::Done)
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// An event of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineEvent {
    /// Its ranks are settled.
    Drawn,
    /// An entry has got its offer.
    Offered,
    /// An offer was not taken, or could not be made.
    Lapsed,
}

impl LineEvent {
    /// Every event, in the order of declaration.
    pub const ALL: [Self; 3] = [Self::Drawn, Self::Offered, Self::Lapsed];

    /// Its routing key.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Drawn => "line.drawn",
            Self::Offered => "line.offered",
            Self::Lapsed => "line.lapsed",
        }
    }
}

/// Where an entry is, as stored in `line_entries.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryState {
    /// It waits for its rank. With a request id its offer is under way.
    Waiting,
    /// P2 has accepted its purchase: it has an order, or one is on its way.
    Offered,
    /// Its order is the buyer's.
    Taken,
    /// Its offer was not taken in time, or could not be made.
    Lapsed,
    /// Its buyer left.
    Left,
}

/// What can happen to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryEvent {
    /// Its buyer enters, again after leaving.
    Entered,
    /// Its buyer leaves.
    LeftByBuyer,
    /// Its rank was reached, and P2 has accepted its purchase.
    OfferMade,
    /// Its rank was reached, and it may have none: its buyer is blocked, or has all that the limit allows.
    PassedOver,
    /// Its order is paid, or needs no payment.
    OfferTaken,
    /// Its order ended unpaid, or was refused.
    OfferLapsed,
}

/// The table's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryTransition {
    /// Move to this state.
    To(EntryState),
    /// Nothing changes; the event is a repeat or came late.
    Already,
    /// The entry cannot take it.
    Refused,
}

impl EntryState {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Offered, Self::Taken, Self::Lapsed, Self::Left];

    /// The stored and shown code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Offered => "OFFERED",
            Self::Taken => "TAKEN",
            Self::Lapsed => "LAPSED",
            Self::Left => "LEFT",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// Its code among those of all phases.
    #[must_use]
    pub const fn state(self) -> P6Fulfil {
        match self {
            Self::Waiting => P6Fulfil::LineWaiting,
            Self::Offered => P6Fulfil::LineOffered,
            Self::Taken => P6Fulfil::LineTaken,
            Self::Lapsed => P6Fulfil::LineLapsed,
            Self::Left => P6Fulfil::LineLeft,
        }
    }

    /// What follows when `event` happens.
    #[must_use]
    pub const fn after(self, event: EntryEvent) -> EntryTransition {
        use EntryTransition::{Already, Refused, To};
        match (self, event) {
            (Self::Waiting, EntryEvent::LeftByBuyer) => To(Self::Left),
            (Self::Waiting, EntryEvent::OfferMade) => To(Self::Offered),
            (Self::Waiting, EntryEvent::PassedOver) => To(Self::Lapsed),
            (Self::Offered, EntryEvent::OfferTaken) => To(Self::Taken),
            (Self::Offered, EntryEvent::OfferLapsed) => To(Self::Lapsed),
            // Only while the line is open; its row says so.
            (Self::Left, EntryEvent::Entered) => To(Self::Waiting),
            (Self::Waiting | Self::Offered | Self::Taken | Self::Lapsed, EntryEvent::Entered)
            // An offer is an order: it is cancelled, or left unpaid.
            | (Self::Offered | Self::Taken | Self::Lapsed, EntryEvent::LeftByBuyer)
            | (Self::Waiting | Self::Left, EntryEvent::OfferTaken | EntryEvent::OfferLapsed)
            | (Self::Lapsed, EntryEvent::OfferTaken)
            | (Self::Taken, EntryEvent::OfferLapsed)
            | (Self::Offered | Self::Taken, EntryEvent::PassedOver)
            | (Self::Left, EntryEvent::OfferMade | EntryEvent::PassedOver) => Refused,
            (Self::Left, EntryEvent::LeftByBuyer)
            | (Self::Offered | Self::Taken | Self::Lapsed, EntryEvent::OfferMade)
            | (Self::Taken, EntryEvent::OfferTaken)
            | (Self::Lapsed, EntryEvent::OfferLapsed | EntryEvent::PassedOver) => Already,
        }
    }
}

impl EntryEvent {
    /// Every event, in the order of declaration.
    pub const ALL: [Self; 6] =
        [Self::Entered, Self::LeftByBuyer, Self::OfferMade, Self::PassedOver, Self::OfferTaken, Self::OfferLapsed];
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_round_trip() {
        assert!(EntryState::ALL.iter().all(|state| EntryState::from_code(state.code()) == Some(*state)));
        assert!(EntryState::ALL.iter().all(|state| state.state().label() == format!("LINE_{}", state.code())));
        assert!(LineState::ALL.iter().all(|state| LineState::from_code(state.code()) == Some(*state)));
        assert!(LineKind::ALL.iter().all(|kind| LineKind::from_code(kind.code()) == Some(*kind)));
        assert!("queue".parse::<LineKind>().unwrap_err().contains("raffle or waitlist"));
    }

    proptest! {
        /// Whatever happens, in whatever order: an entry has one offer, and none after it left.
        #[test]
        fn an_entry_is_offered_once(events in prop::collection::vec(1..EntryEvent::ALL.len(), 0..40)) {
            let (mut state, mut offers) = (EntryState::Waiting, 0);
            for event in events {
                if let EntryTransition::To(to) = state.after(EntryEvent::ALL[event]) {
                    prop_assert!(state != EntryState::Left);
                    offers += usize::from(to == EntryState::Offered);
                    state = to;
                }
            }
            prop_assert!(offers <= 1);
        }
    }
}
