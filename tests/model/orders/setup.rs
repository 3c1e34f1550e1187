//! What one search about orders covers: its size, which faults may happen, and which mechanism is left out.

use std::fmt;

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The UPDATE that expires has no condition on the state.
    StateCondition,
    /// The UPDATE that expires has no condition on the deadline.
    DeadlineCondition,
    /// Stock and grant of expired orders are a second transaction.
    ReturnInTransaction,
    /// Redis does not keep the names of grants.
    GrantName,
    /// Only who expired a batch gives it.
    OthersGive,
    /// A rebuild counts the stock, and leaves the grants open.
    RebuildMarks,
    /// A payment of the exact amount makes an expired order PAID.
    LateMoneyRefused,
    /// Money that no order can take gets no row.
    RefundRecorded,
    /// The provider's id of a payment is not unique.
    PaymentId,
    /// The order becomes PAID in one transaction, the payment gets its row in a later one.
    PaidWithItsRow,
    /// A payment of a cancelled order stays applied.
    CancelRefunds,
    /// The amount is not compared.
    AmountCompared,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderFault {
    /// A process of the sweep, or one that gives, dies and forgets what it did.
    ProcessDies,
    /// A payment is recorded, and the provider gets no answer.
    AnswerLost,
    /// The process dies where it has begun to record a payment; only where that is two transactions.
    PaymentHalf,
    RedisWiped,
    RebuildDies,
    /// A database of another host takes over, whose clock is behind: a deadline is ahead again.
    ClockGoesBack,
}

/// One search.
#[derive(Clone, Copy, Debug)]
pub struct OrdersSetup {
    pub buyers: usize,
    pub stock: i8,
    /// Payments that a provider may take.
    pub money: u8,
    /// How often a person may start a payment, cancel, or send money back.
    pub acts: u8,
    pub faults: u8,
    pub kinds: &'static [OrderFault],
    pub lacking: Option<Skipped>,
}

impl OrdersSetup {
    pub fn lacks(&self, mechanism: Skipped) -> bool {
        self.lacking == Some(mechanism)
    }

    pub fn may(&self, kind: OrderFault) -> bool {
        self.kinds.contains(&kind)
    }
}

impl fmt::Display for OrdersSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buyers, stock, money, acts, faults, .. } = self;
        let of = |count: u8, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (money, acts, faults) = (of(*money, "payment"), of(*acts, "act"), of(*faults, "fault"));
        write!(f, "N={buyers} S={stock}, {money}, {acts}, {faults}")
    }
}
