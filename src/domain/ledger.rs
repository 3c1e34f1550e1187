//! The ledger record: what Redis remembers of an accepted request until it is proven settled in the database.
//!
//! `<state> <number> <quantity> <epoch> <accepted_at_ms> <reason> <buyer>` — one text, space separated, the buyer last because
//! it may hold spaces ([`super::buyer`]). `lua/reserve.lua` writes it with state `Q`; `lua/settle.lua` replaces state and reason, nothing else.

use super::buyer::{Buyer, buyer_text, limit_key};
use super::ids::{RequestId, SaleId, UserId};
use super::message::OrderMessage;
use super::outcome::FailReason;
use super::policy::Quantity;
use super::request::Purchase;

/// How far the ledger knows a request has come. The database stays the truth: `Queued` may lag behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LedgerState {
    /// Accepted; on its way to the database as far as Redis knows.
    Queued,
    /// The order is in the database.
    Confirmed,
    /// It will never be an order.
    Failed(FailReason),
}

impl LedgerState {
    /// The letter in the record.
    #[must_use]
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Queued => 'Q',
            Self::Confirmed => 'C',
            Self::Failed(_) => 'F',
        }
    }

    /// The reason field of the record; `-` when there is none.
    #[must_use]
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Queued | Self::Confirmed => "-",
            Self::Failed(reason) => reason.code(),
        }
    }

    /// Whether the request has its final outcome.
    #[must_use]
    pub(crate) const fn is_final(self) -> bool {
        match self {
            Self::Queued => false,
            Self::Confirmed | Self::Failed(_) => true,
        }
    }
}

/// A record that cannot be read. It is never skipped, but reported with the request id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ledger record is unreadable: {0:?}")]
pub(crate) struct LedgerError(pub String);

/// One ledger record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRecord {
    /// How far the request has come.
    pub state: LedgerState,
    /// Acceptance number within the shard and epoch.
    pub number: u64,
    /// Units that were taken from the stock.
    pub quantity: Quantity,
    /// Epoch of the sale at acceptance.
    pub epoch: u32,
    /// Unix milliseconds by Redis' clock.
    pub accepted_at_ms: i64,
    /// The buyer who made the request: the account.
    pub user_id: UserId,
    /// The person behind it, where the sale limits by person.
    pub person: Option<UserId>,
}

impl LedgerRecord {
    /// Under which id its units count for a limit ([`Purchase::limit_key`]).
    #[must_use]
    pub(crate) fn limit_key(&self) -> &UserId {
        limit_key(&self.user_id, self.person.as_ref())
    }

    /// Reads the text form.
    pub(crate) fn parse(text: &str) -> Result<Self, LedgerError> {
        Self::read(text).ok_or_else(|| LedgerError(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let mut fields = text.splitn(7, ' ');
        let state = fields.next()?;
        let number = fields.next()?.parse().ok()?;
        let quantity = Quantity::new(fields.next()?.parse().ok()?)?;
        let epoch = fields.next()?.parse().ok()?;
        let accepted_at_ms = fields.next()?.parse().ok()?;
        let reason = fields.next()?;
        let Buyer { user_id, person } = Buyer::parse(fields.next()?).ok()?;
        let state = match (state, reason) {
            ("Q", "-") => LedgerState::Queued,
            ("C", "-") => LedgerState::Confirmed,
            ("F", reason) => LedgerState::Failed(FailReason::from_code(reason)?),
            _ => return None,
        };
        Some(Self { state, number, quantity, epoch, accepted_at_ms, user_id, person })
    }

    /// The text form.
    #[must_use]
    pub(crate) fn encode(&self) -> String {
        format!(
            "{} {} {} {} {} {} {}",
            self.state.letter(),
            self.number,
            self.quantity.get(),
            self.epoch,
            self.accepted_at_ms,
            self.state.reason(),
            buyer_text(&self.user_id, self.person.as_ref())
        )
    }

    /// The accepted request this record stands for; with it P5 can persist the request even when every queue lost it.
    #[must_use]
    pub fn order_message(&self, request_id: RequestId, sale_id: &SaleId, shard: u16) -> OrderMessage {
        OrderMessage {
            purchase: Purchase {
                request_id,
                sale_id: sale_id.clone(),
                user_id: self.user_id.clone(),
                person: self.person.clone(),
                quantity: self.quantity,
            },
            shard,
            epoch: self.epoch,
            number: self.number,
            accepted_at_ms: self.accepted_at_ms,
        }
    }
}

/// The highest acceptance number of an epoch whose outcome a ledger knows; `<epoch> <number>` as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SettledUpTo {
    /// Epoch of the sale at acceptance.
    pub(crate) epoch: u32,
    /// Acceptance number; 0: none yet.
    pub(crate) number: u64,
}

impl SettledUpTo {
    /// Reads the text form; `None`: another version may have written it, and it is a hint only.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (epoch, number) = text.split_once(' ')?;
        Some(Self { epoch: epoch.parse().ok()?, number: number.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::any_order_message;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_round_trip_and_rebuild_the_request(a in any_order_message(), state in 0..3) {
            let state = [LedgerState::Queued, LedgerState::Confirmed, LedgerState::Failed(FailReason::SoldOut)][usize::try_from(state).unwrap()];
            let record = LedgerRecord {
                state, number: a.number, quantity: a.purchase.quantity, epoch: a.epoch,
                accepted_at_ms: a.accepted_at_ms, user_id: a.purchase.user_id.clone(), person: a.purchase.person.clone(),
            };
            let read = LedgerRecord::parse(&record.encode()).unwrap();
            prop_assert_eq!(&read, &record);
            prop_assert_eq!(read.order_message(a.purchase.request_id, &a.purchase.sale_id, a.shard), a);
        }
    }

    #[test]
    fn a_broken_record_is_reported_with_its_text() {
        for bad in
            ["", "Q", "Q 1 1 1 5 -", "Q 1 0 1 5 - u", "X 1 1 1 5 - u", "F 1 1 1 5 WHAT u", "Q 1 1 1 5 SOLD_OUT u"]
        {
            assert_eq!(LedgerRecord::parse(bad), Err(LedgerError(bad.to_owned())));
        }
    }
}
