//! What `lua/reserve.lua` answers to one request of a group, and which P2 state that is.

use super::ids::RequestId;
use super::states::P2Reserve;

/// The script's verdict on one request. The numbers are a contract with the script, tested in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// Stock taken, buyer, ledger and outbox written: every request that the answer does not name.
    Accepted,
    /// 1: this request id was accepted before; the buyer gets the original answer.
    Replayed,
    /// 2: the buyer already bought in a one-per-user sale, with this first request.
    DuplicateBuyer(RequestId),
    /// 3: the limit would be passed; the buyer owns this many units.
    LimitExceeded(u64),
    /// 4: this bucket has fewer units than wanted, this many (0: empty).
    Short(u64),
    /// 5: the request id is in the ledger for another buyer or quantity.
    Conflict,
    /// 6: the sale is stopped by an operator, or not open yet.
    Paused,
    /// 7: the sale is closed for good.
    Closed,
    /// 8: the sale is frozen until P5 has rebuilt it.
    Frozen,
    /// 9: keys are missing; nothing was written. Never opened by guessing.
    NotLoaded,
    /// 10: the caller's epoch is not the sale's; its cached sale is old.
    StaleEpoch,
    /// 11: the outbox is full; nothing was written.
    Backlog,
    /// 12: a key has another type or a number is not one; nothing was written.
    Damaged,
    /// 13: the sale was warmed for another number of shards than this process works with; nothing was written.
    OtherShards,
    /// 14: by Redis' clock the sale has not started; it does in this many milliseconds. The caller's clock is ahead.
    NotStarted(u64),
    /// 15: by Redis' clock the sale is over. The caller's clock is behind.
    Ended,
    /// 16: the sale's door takes requests with a purchase token only, and this one came without. The caller's view is old.
    TokenMissing,
    /// 17: the limit of the drop would be passed; the buyer owns this many units over all its sales.
    DropLimitExceeded(u64),
    /// 18: the sale's door takes offers of its line only, and this is a click. The caller's view is old.
    OnlyByLine,
}

/// A reply outside the contract: script and binary are of different builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("reserve script answered code {code} with detail {detail}, outside the contract")]
pub(crate) struct UnknownReply {
    /// First number of the reply.
    pub code: i64,
    /// Second number of the reply.
    pub detail: i64,
}

impl Reserved {
    /// Reads code and detail of a request that was not accepted.
    ///
    /// # Errors
    /// [`UnknownReply`] for a pair the contract does not have.
    pub(crate) fn from_reply(code: i64, detail: i64) -> Result<Self, UnknownReply> {
        let unknown = UnknownReply { code, detail };
        let count = u64::try_from(detail).map_err(|_| unknown)?;
        Ok(match code {
            1 => Self::Replayed,
            2 => Self::DuplicateBuyer(RequestId::new(count).ok_or(unknown)?),
            3 => Self::LimitExceeded(count),
            4 => Self::Short(count),
            5 => Self::Conflict,
            6 => Self::Paused,
            7 => Self::Closed,
            8 => Self::Frozen,
            9 => Self::NotLoaded,
            10 => Self::StaleEpoch,
            11 => Self::Backlog,
            12 => Self::Damaged,
            13 => Self::OtherShards,
            14 => Self::NotStarted(count),
            15 => Self::Ended,
            16 => Self::TokenMissing,
            17 => Self::DropLimitExceeded(count),
            18 => Self::OnlyByLine,
            _ => return Err(unknown),
        })
    }

    /// The P2 state of a decided request, where `Short` means all that is left of the sale; `None` when the sale was closed to it before P2 decided anything.
    #[must_use]
    pub(crate) const fn state(&self) -> Option<P2Reserve> {
        match self {
            Self::Accepted => Some(P2Reserve::Reserved),
            Self::Replayed => Some(P2Reserve::Replayed),
            Self::DuplicateBuyer(_) => Some(P2Reserve::Duplicate),
            Self::LimitExceeded(_) | Self::DropLimitExceeded(_) => Some(P2Reserve::LimitExceeded),
            Self::Short(0) => Some(P2Reserve::SoldOut),
            Self::Short(_) => Some(P2Reserve::NotEnough),
            Self::Conflict
            | Self::Paused
            | Self::Closed
            | Self::Frozen
            | Self::NotLoaded
            | Self::StaleEpoch
            | Self::Backlog
            | Self::Damaged
            | Self::OtherShards
            | Self::NotStarted(_)
            | Self::Ended
            | Self::TokenMissing
            | Self::OnlyByLine => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_contract_has_eighteen_codes_and_nothing_else() {
        assert!((1..=18).all(|code| Reserved::from_reply(code, 1).is_ok()));
        assert!(Reserved::from_reply(0, 0).is_err());
        assert!(Reserved::from_reply(19, 0).is_err());
        assert!(Reserved::from_reply(-1, 0).is_err());
        assert!(Reserved::from_reply(4, -1).is_err());
        assert!(Reserved::from_reply(2, 0).is_err());
    }
}
