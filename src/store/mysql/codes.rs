//! Codes and units as the columns hold them. An unknown code in a column is an error, never a default.

use super::fault::DbError;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::outcome::{FailReason, Outcome};
use chrono::{DateTime, NaiveDateTime};

/// Which path brings a request to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PersistSource {
    /// The ordinary path: relay, broker, consumer.
    Relay,
    /// P5, from the ledger.
    Compensation,
    /// An operator's replay out of a dead-letter queue.
    Replay,
}

impl PersistSource {
    #[must_use]
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Compensation => "compensation",
            Self::Replay => "replay",
        }
    }

    /// Whether an unacknowledged message stands behind the request: its consumer publishes the outcome to downstream systems
    /// before the ack. On the other paths the event is stored with the outcome.
    #[must_use]
    pub(crate) const fn has_message(self) -> bool {
        match self {
            Self::Relay => true,
            Self::Compensation | Self::Replay => false,
        }
    }

    /// Who reports a final failure met on this path.
    #[must_use]
    pub(crate) const fn reporter(self) -> Reporter {
        match self {
            Self::Relay => Reporter::Consumer,
            Self::Compensation => Reporter::Audit,
            Self::Replay => Reporter::MqDlq,
        }
    }
}

macro_rules! codes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $code:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),* }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stored code.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }

            /// Reads a stored code.
            #[must_use]
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.code() == code)
            }
        }
    };
}

codes!(
    /// `failed_request.source`: who reported a failure.
    Reporter {
        /// P4, which met the failure on its way to the database.
        Consumer = "consumer",
        /// The relay's dead-letter stream in Redis.
        RelayDlq = "relay_dlq",
        /// The dead-letter queue of the broker.
        MqDlq = "mq_dlq",
        /// P5, which found it in an audit.
        Audit = "audit",
    }
);

impl Reporter {
    #[must_use]
    pub(crate) const fn has_message(self) -> bool {
        match self {
            Self::Consumer => true,
            Self::RelayDlq | Self::MqDlq | Self::Audit => false,
        }
    }
}

codes!(
    /// `failed_request.status`: where a failure stands.
    FailureStatus {
        /// Waits for P5 or a person.
        Open = "open",
        /// Has a FAILED outcome.
        Final = "failed_final",
        /// Became an order after all, or a person closed it.
        Resolved = "resolved",
    }
);

codes!(
    /// `stock_grants.kind`: where the units of a grant come from.
    GrantKind {
        /// Units that were never on sale before.
        Grant = "grant",
        /// Units of a final failure or of a cancelled order, given to Redis again; `sales.granted` always had them.
        Reclaim = "reclaim",
        /// What a rebuild gave to the keys of the epoch it opened.
        Rebuild = "rebuild",
    }
);

/// `request_outcome.kind` and `reason` of an outcome.
pub(crate) const fn outcome_columns(outcome: Outcome) -> (&'static str, Option<&'static str>) {
    match outcome {
        Outcome::Ordered => ("ORDER", None),
        Outcome::Failed(reason) => ("FAILED", Some(reason.code())),
    }
}

/// Reads `request_outcome.kind` and `reason`.
pub(crate) fn read_outcome(kind: &str, reason: Option<&str>) -> Result<Outcome, DbError> {
    match (kind, reason) {
        ("ORDER", None) => Ok(Outcome::Ordered),
        ("FAILED", Some(code)) => {
            FailReason::from_code(code).map(Outcome::Failed).ok_or_else(|| unreadable("request_outcome.reason", code))
        }
        _ => Err(unreadable("request_outcome.kind", kind)),
    }
}

/// The reasons of failures behind which a unit stands ([`FailReason::has_unit`]), as an SQL list.
pub(crate) fn reasons_with_unit() -> String {
    let quoted =
        FailReason::ALL.into_iter().filter(|reason| reason.has_unit()).map(|reason| format!("'{}'", reason.code()));
    quoted.collect::<Vec<_>>().join(", ")
}

pub(crate) fn unreadable(column: &str, value: &str) -> DbError {
    DbError::Other(format!("{column} holds a value this build does not know: {value:?}"))
}

pub(crate) fn read_sale_id(bytes: &[u8]) -> Result<SaleId, DbError> {
    let text = String::from_utf8_lossy(bytes);
    SaleId::parse(&text).map_err(|_ignored| unreadable("sale_id", &text))
}

pub(crate) fn read_user_id(bytes: &[u8]) -> Result<UserId, DbError> {
    let text = String::from_utf8_lossy(bytes);
    UserId::parse(&text).map_err(|_ignored| unreadable("user_id", &text))
}

pub(crate) fn read_request_id(value: u64) -> Result<RequestId, DbError> {
    RequestId::new(value).ok_or_else(|| unreadable("request_id", &value.to_string()))
}

/// Unix milliseconds as the database stores times.
pub(crate) fn datetime(unix_ms: i64) -> Result<NaiveDateTime, DbError> {
    DateTime::from_timestamp_millis(unix_ms)
        .map(|time| time.naive_utc())
        .ok_or_else(|| DbError::Other(format!("time is out of range: {unix_ms} ms")))
}

/// Unix milliseconds of a stored time.
pub(crate) const fn unix_ms(time: NaiveDateTime) -> i64 {
    time.and_utc().timestamp_millis()
}

/// Cuts a text to what a column holds, in characters.
pub(crate) fn cut(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(at, _)| text.split_at(at).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_and_codes_round_trip_and_an_unknown_one_is_an_error() {
        for outcome in FailReason::ALL.map(Outcome::Failed).into_iter().chain([Outcome::Ordered]) {
            let (kind, reason) = outcome_columns(outcome);
            assert_eq!(read_outcome(kind, reason).unwrap(), outcome);
        }
        assert!(read_outcome("ORDER", Some("SOLD_OUT")).is_err());
        assert!(read_outcome("FAILED", Some("WHAT")).is_err());
        assert!(Reporter::ALL.iter().all(|r| Reporter::from_code(r.code()) == Some(*r)));
        assert!(FailureStatus::ALL.iter().all(|s| FailureStatus::from_code(s.code()) == Some(*s)));
        assert!(GrantKind::ALL.iter().all(|k| GrantKind::from_code(k.code()) == Some(*k)));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("用户abc", 2), "用户");
        assert_eq!(cut("ab", 2), "ab");
    }
}
