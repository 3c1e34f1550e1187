//! The door of a sale: which purchases come in. The reserve script decides by what the sale's `meta` says of it.

use super::policy::LimitBy;
use super::sale::Sale;

/// Which purchases a sale takes ([`Sale::door_in_meta`]); and by which door one came. Each takes what came by itself or a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SaleDoor {
    /// All. It came as a click.
    Open,
    /// It has a purchase token that was verified.
    Token,
    /// It is an offer to the next rank of the sale's line.
    Line,
}

impl Sale {
    /// Which purchases it takes. A sale with a waiting room or a challenge takes tokens: they are issued only to buyers who were released
    /// from the one, and have passed the other.
    #[must_use]
    pub const fn door(&self) -> SaleDoor {
        if self.by_line {
            return SaleDoor::Line;
        }
        let needs_token = self.token_required || self.waiting_room || self.challenge.is_some();
        if needs_token { SaleDoor::Token } else { SaleDoor::Open }
    }

    /// The field `door` of its `meta`, which the reserve script obeys: which purchases it takes, and who counts as one buyer. A script that
    /// knows no persons takes none of a sale that limits by person.
    #[must_use]
    pub const fn door_in_meta(&self) -> &'static str {
        match (self.door(), self.limit_by) {
            (SaleDoor::Open, LimitBy::Account) => "open",
            (SaleDoor::Token, LimitBy::Account) => "token",
            (SaleDoor::Line, LimitBy::Account) => "line",
            (SaleDoor::Open, LimitBy::Person) => "open person",
            (SaleDoor::Token, LimitBy::Person) => "token person",
            (SaleDoor::Line, LimitBy::Person) => "line person",
        }
    }

    /// Whether a sale with this field `door` limits by person.
    pub(crate) fn limits_person(door: &str) -> bool {
        door.ends_with(" person")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::challenge::Challenge;
    use crate::domain::sale::SaleStatus;
    use crate::domain::sale::tests::sale;

    #[test]
    fn what_needs_a_token_has_the_door_for_tokens() {
        let plain = sale(SaleStatus::Warmed);
        assert_eq!(plain.door(), SaleDoor::Open);
        for needing in [
            Sale { token_required: true, ..plain.clone() },
            Sale { waiting_room: true, ..plain.clone() },
            Sale { challenge: Some(Challenge::Pow(1)), ..plain.clone() },
            Sale { challenge: Some(Challenge::Unknown), ..plain.clone() },
        ] {
            assert_eq!(needing.door(), SaleDoor::Token);
        }
        let by_line = Sale { by_line: true, token_required: true, ..plain };
        assert_eq!((by_line.door(), by_line.door_in_meta()), (SaleDoor::Line, "line"));
    }
}
