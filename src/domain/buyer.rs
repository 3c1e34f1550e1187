//! Who makes a purchase, as one text: `<user>`, or `<user>` TAB `<person>` in a sale that limits by person.
//!
//! The text goes wherever a request goes: outbox, message, ledger record, DLQ. No id has a control character, so it has one reading. A
//! build that knows no persons takes such a text for no user id: it parks the message instead of counting it for the account.

use super::ids::{IdError, UserId};
use std::borrow::Cow;

/// Between the account and the person.
const SEPARATOR: char = '\t';

/// An account and, where the sale limits by person, the person behind it, as read from their text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Buyer {
    /// The account.
    pub(crate) user_id: UserId,
    /// The person; spelled as a user id is.
    pub(crate) person: Option<UserId>,
}

impl Buyer {
    /// Reads the text of [`buyer_text`].
    ///
    /// # Errors
    /// One of the two is no id.
    pub(crate) fn parse(text: &str) -> Result<Self, IdError> {
        let (user_id, person) = match text.split_once(SEPARATOR) {
            None => (text, None),
            Some((user_id, person)) => (user_id, Some(UserId::parse(person)?)),
        };
        Ok(Self { user_id: UserId::parse(user_id)?, person })
    }
}

impl<'de> serde::Deserialize<'de> for Buyer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Who may have so much and no more: the person where the sale limits by person, else the account. All about one of them is on one shard,
/// and what is counted for a limit is counted under this id.
pub(crate) fn limit_key<'a>(user_id: &'a UserId, person: Option<&'a UserId>) -> &'a UserId {
    person.unwrap_or(user_id)
}

/// The text of an account and, where the sale limits by person, the person behind it.
pub(crate) fn buyer_text<'a>(user_id: &'a UserId, person: Option<&UserId>) -> Cow<'a, str> {
    match person {
        None => Cow::Borrowed(user_id.as_str()),
        Some(person) => Cow::Owned(format!("{user_id}{SEPARATOR}{person}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buyer_reads_as_it_was_written_and_other_texts_are_none() {
        let id = |text: &str| UserId::parse(text).unwrap();
        for (user, person) in [("ann", None), ("a b", Some("p 1")), ("ä\"\\", Some("用户"))] {
            let (user_id, person) = (id(user), person.map(id));
            assert_eq!(Buyer::parse(&buyer_text(&user_id, person.as_ref())).unwrap(), Buyer { user_id, person });
        }
        for none in ["", "\t", "a\t", "\tb", "a\tb\tc", "a\nb"] {
            assert!(Buyer::parse(none).is_err(), "{none:?}");
        }
    }
}
