//! What one search about deliveries has: its size, which faults may happen, and which mechanism is left out.

use std::fmt;

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omitted {
    /// A delivery is recorded as DELIVERED before its receiver answers.
    AnswerFirst,
    /// A failed try is recorded whatever the row says by then.
    FailureOfWaitingRow,
    /// A failed try is recorded although another one was counted since.
    TryCountsOnce,
    /// A success is not recorded any more when the row is DEAD.
    LateSuccess,
    /// What is loaded is sent although the receiver has answered 410.
    StopsWhenGone,
    /// A receiver that answered 410 is closed in the memory of its leader only.
    GoneIsWritten,
    /// Old rows are deleted by their ids, whatever their state is by then.
    DeletesDeliveredOnly,
    /// A replay leaves the tries of its rows counted.
    ReplayResetsTries,
    /// A replay leaves a closed receiver closed.
    ReplayOpens,
    /// A row that is due is left to the leader that has chosen it, and may have died.
    ChosenAgain,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SenderFault {
    /// The leader dies: what it had loaded, under way, or not recorded is gone.
    LeaderDies,
    /// A leader sleeps or is cut off, and another one begins; it goes on until it notices.
    LeaseLost,
    /// Results are recorded, and the answer of the database is lost: they are recorded again.
    RecordUnanswered,
}

/// One search.
#[derive(Clone, Copy, Debug)]
pub struct WebhooksSetup {
    pub deliveries: usize,
    /// How often a person may replay a delivery.
    pub replays: u8,
    pub faults: u8,
    pub kinds: &'static [SenderFault],
    pub absent: Option<Omitted>,
}

impl WebhooksSetup {
    pub fn lacks(&self, mechanism: Omitted) -> bool {
        self.absent == Some(mechanism)
    }
}

impl fmt::Display for WebhooksSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { deliveries, replays, faults, .. } = *self;
        let of = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
        let deliveries = of(deliveries, "delivery", "deliveries");
        let (replays, faults) = (of(replays.into(), "replay", "replays"), of(faults.into(), "fault", "faults"));
        write!(f, "{deliveries}, {replays}, {faults}")
    }
}
