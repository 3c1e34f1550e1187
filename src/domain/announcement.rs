//! What a sale says of itself to the systems beside it: the state that was announced last, what is so now, and the events from the one
//! to the other.
//!
//! Each event has a version: the number of the sale's events so far. A receiver drops one that is not above the last that it has.

use super::sale::SaleStatus;

/// How long after `sale.sold_out` there is no `sale.back` of the sale, milliseconds: single units that come back and are bought at once
/// would switch a page to and fro.
pub const BACK_AFTER_MS: i64 = 10_000;

/// What of a sale was announced, as stored in `sale_announcements.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnnouncedState {
    /// It is warm, and has not begun: nothing was announced.
    Upcoming,
    /// It sells.
    Open,
    /// It would sell, and has no unit left.
    SoldOut,
    /// An operator stopped it.
    Paused,
    /// Its window is over.
    Ended,
    /// Closed for good. Not stored: the row goes with the last event.
    Closed,
}

/// An event of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SaleEvent {
    /// Its window has begun, and it can be bought.
    Opened,
    /// An operator stopped it.
    Paused,
    /// It goes on.
    Resumed,
    /// No unit is left.
    SoldOut,
    /// Units are on sale again.
    Back,
    /// Its window is over.
    Ended,
    /// It is closed for good.
    Closed,
}

/// What is so of a sale at one moment. Times are milliseconds from now; 0 or less: past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleMoment {
    /// By the database.
    pub status: SaleStatus,
    /// Until its window begins.
    pub starts_in_ms: i64,
    /// Until its window ends.
    pub ends_in_ms: i64,
    /// Units on sale; `None`: unknown, or not every shard sells.
    pub units: Option<i64>,
}

impl SaleMoment {
    /// Whether its units have to be known to say what is so.
    #[must_use]
    pub fn needs_units(&self) -> bool {
        self.status == SaleStatus::Warmed && self.starts_in_ms <= 0 && self.ends_in_ms > 0
    }

    /// What is so; `None`: it cannot be said, or there is nothing to say of a draft.
    #[must_use]
    pub fn state(&self) -> Option<AnnouncedState> {
        match self.status {
            SaleStatus::Draft => None,
            SaleStatus::Closed => Some(AnnouncedState::Closed),
            SaleStatus::Warmed | SaleStatus::Paused if self.ends_in_ms <= 0 => Some(AnnouncedState::Ended),
            SaleStatus::Warmed | SaleStatus::Paused if self.starts_in_ms > 0 => Some(AnnouncedState::Upcoming),
            SaleStatus::Paused => Some(AnnouncedState::Paused),
            SaleStatus::Warmed => {
                self.units.map(|units| if units > 0 { AnnouncedState::Open } else { AnnouncedState::SoldOut })
            }
        }
    }
}

impl AnnouncedState {
    /// Every state, in the order of a sale's life.
    pub const ALL: [Self; 6] = [Self::Upcoming, Self::Open, Self::SoldOut, Self::Paused, Self::Ended, Self::Closed];

    /// The stored code, and that of the events.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Upcoming => "UPCOMING",
            Self::Open => "OPEN",
            Self::SoldOut => "SOLD_OUT",
            Self::Paused => "PAUSED",
            Self::Ended => "ENDED",
            Self::Closed => "CLOSED",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// The events from this state to `to`, in their order. A sale that sold out before the first check says first that it opened.
    #[must_use]
    pub const fn events_to(self, to: Self) -> &'static [SaleEvent] {
        match (self, to) {
            (Self::Open, Self::Open)
            | (Self::SoldOut, Self::SoldOut)
            | (Self::Paused, Self::Paused)
            | (Self::Ended, Self::Ended)
            | (Self::Closed, _)
            | (_, Self::Upcoming) => &[],
            (Self::Upcoming | Self::Ended, Self::Open) => &[SaleEvent::Opened],
            (Self::Paused, Self::Open) => &[SaleEvent::Resumed],
            (Self::SoldOut, Self::Open) => &[SaleEvent::Back],
            (Self::Upcoming | Self::Ended, Self::SoldOut) => &[SaleEvent::Opened, SaleEvent::SoldOut],
            (Self::Paused, Self::SoldOut) => &[SaleEvent::Resumed, SaleEvent::SoldOut],
            (Self::Open, Self::SoldOut) => &[SaleEvent::SoldOut],
            (_, Self::Paused) => &[SaleEvent::Paused],
            (_, Self::Ended) => &[SaleEvent::Ended],
            (_, Self::Closed) => &[SaleEvent::Closed],
        }
    }

    /// Whether it is too early for the change to `to`, where this state was announced `ago_ms` milliseconds ago ([`BACK_AFTER_MS`]).
    #[must_use]
    pub fn is_too_early(self, to: Self, ago_ms: i64) -> bool {
        self == Self::SoldOut && to == Self::Open && ago_ms < BACK_AFTER_MS
    }
}

impl SaleEvent {
    /// Every event, in the order of declaration.
    pub const ALL: [Self; 7] =
        [Self::Opened, Self::Paused, Self::Resumed, Self::SoldOut, Self::Back, Self::Ended, Self::Closed];

    /// Its routing key.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Opened => "sale.opened",
            Self::Paused => "sale.paused",
            Self::Resumed => "sale.resumed",
            Self::SoldOut => "sale.sold_out",
            Self::Back => "sale.back",
            Self::Ended => "sale.ended",
            Self::Closed => "sale.closed",
        }
    }

    /// What is so after it.
    #[must_use]
    pub const fn state(self) -> AnnouncedState {
        match self {
            Self::Opened | Self::Resumed | Self::Back => AnnouncedState::Open,
            Self::Paused => AnnouncedState::Paused,
            Self::SoldOut => AnnouncedState::SoldOut,
            Self::Ended => AnnouncedState::Ended,
            Self::Closed => AnnouncedState::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(status: SaleStatus, starts_in_ms: i64, ends_in_ms: i64, units: Option<i64>) -> Option<AnnouncedState> {
        SaleMoment { status, starts_in_ms, ends_in_ms, units }.state()
    }

    #[test]
    fn codes_round_trip_and_events_are_known_by_their_keys() {
        assert!(AnnouncedState::ALL.iter().all(|state| AnnouncedState::from_code(state.code()) == Some(*state)));
        assert!(SaleEvent::ALL.iter().all(|event| event.key().starts_with("sale.") && event.key().len() <= 24));
    }

    #[test]
    fn every_way_ends_where_it_leads_and_begins_nothing_twice() {
        for from in AnnouncedState::ALL {
            for to in AnnouncedState::ALL {
                let events = from.events_to(to);
                let last = events.last().map(|event| event.state());
                let is_silent = from == to || to == AnnouncedState::Upcoming || from == AnnouncedState::Closed;
                assert_eq!(last, (!is_silent).then_some(to), "{from:?} to {to:?}");
                let begun = events.iter().filter(|event| matches!(event, SaleEvent::Opened | SaleEvent::Resumed));
                assert!(begun.count() <= 1, "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn units_decide_only_within_the_window_of_a_sale_that_sells() {
        use AnnouncedState::{Closed, Ended, Open, Paused, SoldOut, Upcoming};
        for units in [None, Some(0), Some(5)] {
            assert_eq!(moment(SaleStatus::Draft, -1, 1, units), None);
            assert_eq!(moment(SaleStatus::Warmed, 1, 2, units), Some(Upcoming));
            assert_eq!(moment(SaleStatus::Paused, 1, 2, units), Some(Upcoming));
            assert_eq!(moment(SaleStatus::Paused, 0, 1, units), Some(Paused));
            assert_eq!(moment(SaleStatus::Paused, -9, 0, units), Some(Ended));
            assert_eq!(moment(SaleStatus::Warmed, -9, 0, units), Some(Ended));
            assert_eq!(moment(SaleStatus::Closed, 1, 2, units), Some(Closed));
        }
        assert_eq!(moment(SaleStatus::Warmed, 0, 1, Some(1)), Some(Open));
        assert_eq!(moment(SaleStatus::Warmed, 0, 1, Some(0)), Some(SoldOut));
        assert_eq!(moment(SaleStatus::Warmed, 0, 1, None), None, "nothing is said of units that are unknown");
    }

    #[test]
    fn only_units_that_came_back_at_once_wait() {
        let early = |from: AnnouncedState, to| from.is_too_early(to, BACK_AFTER_MS - 1);
        assert!(early(AnnouncedState::SoldOut, AnnouncedState::Open));
        assert!(!AnnouncedState::SoldOut.is_too_early(AnnouncedState::Open, BACK_AFTER_MS));
        assert!(!early(AnnouncedState::Open, AnnouncedState::SoldOut));
        assert!(!early(AnnouncedState::SoldOut, AnnouncedState::Paused));
    }
}
