//! Purchase policies: how many units one buyer may have of one sale.
//!
//! The same rule is enforced twice: by `lua/reserve.lua` when the buyer presses, and by the P4 transaction when the order
//! lands. Both get it as the number of [`PurchasePolicy::limit`].

use std::num::NonZeroU32;

/// Most units of one order, whatever the configuration says: the bound of `p1_entry.quantity_max`.
pub(crate) const ORDER_UNITS_MAX: u32 = 1_000_000;

/// Units in one request, 1 …; the upper bound per request is configuration (`p1_entry.quantity_max`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Quantity(NonZeroU32);

impl Quantity {
    /// The smallest quantity, 1.
    pub const ONE: Self = Self(NonZeroU32::MIN);

    /// A quantity of at least one unit.
    #[must_use]
    pub const fn new(units: u32) -> Option<Self> {
        match NonZeroU32::new(units) {
            Some(units) => Some(Self(units)),
            None => None,
        }
    }

    /// The number of units.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// How much one buyer may have of one sale. Serialised as its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub enum PurchasePolicy {
    /// One purchase of one unit per buyer, ever.
    OnePerUser,
    /// At most this many units per buyer over any number of requests (2 or more; 1 is [`Self::OnePerUser`]).
    Cumulative(NonZeroU32),
    /// Any number of requests of any quantity.
    Unlimited,
}

impl PurchasePolicy {
    /// The policy for a `per_user_limit` column or flag: absent or 0 is unlimited, 1 is one per user, n is cumulative.
    #[must_use]
    pub const fn from_limit(limit: Option<u32>) -> Self {
        match limit {
            None | Some(0) => Self::Unlimited,
            Some(1) => Self::OnePerUser,
            Some(n) => match NonZeroU32::new(n) {
                Some(n) => Self::Cumulative(n),
                None => Self::Unlimited,
            },
        }
    }

    /// The limit as stored: `None` is unlimited.
    #[must_use]
    pub(crate) const fn limit(self) -> Option<u32> {
        match self {
            Self::OnePerUser => Some(1),
            Self::Cumulative(n) => Some(n.get()),
            Self::Unlimited => None,
        }
    }

    /// Whether the database counts the units of each buyer (`purchases`): of a cumulative limit, and of any limit by person. One for each
    /// account is a unique key of the orders.
    #[must_use]
    pub(crate) const fn is_counted(self, by: LimitBy) -> bool {
        match self {
            Self::OnePerUser => matches!(by, LimitBy::Person),
            Self::Cumulative(_) => true,
            Self::Unlimited => false,
        }
    }

    /// Whether a buyer who owns `owned` units may have `quantity` more.
    #[must_use]
    pub(crate) fn allows(self, owned: u64, quantity: Quantity) -> bool {
        self.limit().is_none_or(|limit| owned.saturating_add(u64::from(quantity.get())) <= u64::from(limit))
    }
}

/// Who counts as one buyer for the limits of a sale and of its drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitBy {
    /// Each account: the `sub` of the access token.
    #[default]
    Account,
    /// Each person: the fact `person` of the access token or of a pass. A hundred accounts of one person buy as one.
    Person,
}

impl std::str::FromStr for LimitBy {
    type Err = &'static str;

    fn from_str(code: &str) -> Result<Self, Self::Err> {
        Self::from_code(code).ok_or("expected account or person")
    }
}

impl LimitBy {
    /// The fact that says who the person is.
    pub(crate) const FACT: &'static str = "person";

    /// The stored code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Person => "person",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        [Self::Account, Self::Person].into_iter().find(|by| by.code() == code)
    }
}

impl From<Option<u32>> for PurchasePolicy {
    fn from(limit: Option<u32>) -> Self {
        Self::from_limit(limit)
    }
}

impl From<PurchasePolicy> for Option<u32> {
    fn from(policy: PurchasePolicy) -> Self {
        policy.limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_sequence_of_allowed_purchases_passes_the_limit(limit in 0u32..20, wants in prop::collection::vec(1u32..8, 0..30)) {
            let policy = PurchasePolicy::from_limit(Some(limit));
            let mut owned = 0u64;
            for want in wants {
                let quantity = Quantity::new(want).unwrap();
                if policy.allows(owned, quantity) { owned += u64::from(want); }
            }
            if let Some(limit) = policy.limit() { prop_assert!(owned <= u64::from(limit)); }
        }
    }

    #[test]
    fn limits_round_trip() {
        for limit in [None, Some(1), Some(2), Some(u32::MAX)] {
            assert_eq!(PurchasePolicy::from_limit(limit).limit(), limit);
        }
        assert_eq!(PurchasePolicy::from_limit(Some(0)), PurchasePolicy::Unlimited);
        assert!(Quantity::new(0).is_none());
    }
}
