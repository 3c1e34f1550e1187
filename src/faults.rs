//! Places where a test build can be killed, and mechanisms it can leave out.
//!
//! Both are there to prove the tests: a crash point shows what a death at exactly this line leaves behind; a mechanism that
//! is switched off must make the chaos harness find a loss, else the harness proves nothing.
//!
//! Only with the feature `faults`, which the quick profile of `make run` and `make test` has; a build without debug assertions
//! (release, dist, the image) with it is refused below. Without the feature every call here is an empty inline function. Armed by the environment of a process, never by configuration, in the grammar of the `fail` crate:
//! `FAILPOINTS="F7=5*off->return;mandatory=return"` kills the process at its sixth pass through F7 and publishes without
//! `mandatory`. Actions: `return` (die, or switched off), `off`, `sleep(ms)`, `panic`; `n*` limits how often.
//! `next_version=return` has the process write the envelope of a version that is not there yet, and read both, for tests of two
//! versions side by side; `slow_audit=return(ms)` makes an audit take its time.

#[cfg(all(feature = "faults", not(debug_assertions)))]
compile_error!(
    "the feature `faults` (crash points, mechanisms that can be switched off) is for the quick profile only; build a release without it"
);

/// Names an enum's variants by the codes they have in `FAILPOINTS`, in reports and in `docs/proof.md`.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them, in the order of a request's way.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name it is armed by.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }
        }
    };
}

coded! {
    /// A line at which a process can die.
    CrashPoint {
        /// P2: the group is chosen, the script not yet called.
        BeforeScript = "F1",
        /// P2: the script has run, no buyer has been answered.
        AfterScript = "F2",
        /// P3: entries were read by XREADGROUP.
        AfterRead = "F3",
        /// P3: the next delivery tag is taken, the message not sent.
        BeforePublish = "F4",
        /// P3: the message is sent, not confirmed.
        AfterPublish = "F5",
        /// P3: the broker returned the message as unroutable.
        AfterReturn = "F6",
        /// P3: the broker confirmed, the entry is still there.
        AfterConfirm = "F7",
        /// P3: the entry is acknowledged and deleted.
        AfterDone = "F8",
        /// P3: attempts are spent, the entry not yet moved to the relay DLQ.
        BeforePark = "F9",
        /// P3: the entry is in the relay DLQ.
        AfterPark = "F9a",
        /// P3: entries of another relay were claimed.
        AfterClaim = "F10",
        /// P4: messages were delivered.
        AfterDelivery = "F11",
        /// P4: BEGIN, outcomes, orders and journal are sent to the database, not answered.
        InsertsSent = "F12",
        /// P4: they are inserted.
        AfterOrder = "F13",
        /// P4: the stock is taken.
        AfterStock = "F14",
        /// P4: COMMIT is on its way to the database, unanswered.
        CommitSent = "F15",
        /// P4: committed, not acknowledged to the broker.
        AfterCommit = "F16",
        /// P4: a refusal is committed, not acknowledged to the broker.
        AfterFailedCommit = "F17",
        /// P4: the copy for the retry queue or the MQ DLQ is confirmed, the original not acknowledged.
        AfterRetryPublished = "F18",
        /// P5: the ledger was read.
        AfterLedgerRead = "F19",
        /// P5: a missing order (or its failure) was written, the ledger not marked.
        AfterCompensation = "F20",
        /// P5: settled ledger records were forgotten.
        AfterTrim = "F21",
        /// DLQ replay: the entry is landed, the row of the act and the removal are to come.
        ReplayTaken = "F22",
        /// P1 warm-up, three times: Redis knows and the database does not; it does, its grant is not given; it is, unmarked. Every other
        /// grant, of a top-up or of units that came back, once: it is given, unmarked.
        ActivationHalf = "F23",
        /// P5 rebuild, twice: the next epoch is begun; its records are loaded, its stock is not set.
        RebuildHalf = "F24",
        /// P6: overdue orders are chosen, nothing is written.
        ExpiryChosen = "F27",
        /// P6: they are expired, their units are back in the stock and in a grant; not committed.
        ExpiryWritten = "F28",
        /// P6: that is committed, Redis does not have the grant.
        ExpiryCommitted = "F29",
        /// P6: a payment and what it does are written, not committed.
        PaymentWritten = "F30",
        /// P6: that is committed, the caller has no answer.
        PaymentCommitted = "F31",
        /// P6: a cancellation is written, not committed.
        CancelWritten = "F32",
        /// P6: it is committed, Redis does not have its grant.
        CancelCommitted = "F33",
        /// P6: the start of a payment and its act are written, not committed.
        PayingWritten = "F34",
        /// P6: that is committed, the caller has no answer.
        PayingCommitted = "F35",
        /// P6: money is marked as sent back, with the act, not committed.
        RefundWritten = "F36",
        /// P6: that is committed, the caller has no answer.
        RefundCommitted = "F37",
        /// P4: the broker has the events that waited in the database, they are not deleted.
        EventsConfirmed = "F38",
        /// P6: due deliveries of a webhook are read, none is sent.
        WebhookChosen = "F40",
        /// P6: the receiver has answered, the result is not recorded.
        WebhookAnswered = "F41",
        /// P6: the result is recorded.
        WebhookRecorded = "F42",
        /// An operator's change of a sale is in the database, Redis does not have it.
        SaleChanged = "F43",
        /// A clone is in the database, with its first grant; its act is not recorded.
        CloneWritten = "F39",
        /// P6: deliveries wait again, the act that they were replayed by is not recorded.
        WebhookReplayed = "F44",
        /// P2: units are out of one bucket, in a transfer record, not in the other.
        AfterTake = "F25",
        /// P2: the units are in the other bucket, the record is not forgotten.
        AfterGive = "F26",
    }
}

coded! {
    /// A mechanism that a guarantee rests on.
    Mechanism {
        /// The reserve script reads a request id before it decides, and an unanswered call is looked up, not repeated.
        ReplayCheck = "replay_check",
        /// The ledger record written with the stock.
        Ledger = "ledger",
        /// Acceptance numbers are compared before the script is loaded after a restart.
        BootFence = "boot_fence",
        /// `mandatory` on what the relay publishes.
        Mandatory = "mandatory",
        /// An outbox entry is deleted after its confirm, not after its publish.
        ConfirmFirst = "confirm_first",
        /// A relay takes over what a dead one had read.
        TakeOver = "take_over",
        /// A relay reads its own unfinished entries again.
        OwnPending = "own_pending",
        /// The relay DLQ is written in the step that deletes the entry.
        ParkAtomic = "park_atomic",
        /// Dead-lettering at least once.
        DeadLetterAtLeastOnce = "dead_letter_at_least_once",
        /// The ack comes after the commit.
        AckAfterCommit = "ack_after_commit",
        /// The copy for the retry queue is confirmed before the original is acknowledged.
        ConfirmedRetry = "confirmed_retry",
        /// "Duplicate key" is success only if it is this request's own outcome.
        OwnOutcome = "own_outcome",
        /// A refusal is recorded before its message is acknowledged.
        RecordedRefusal = "recorded_refusal",
        /// Any error rolls the whole transaction back.
        Rollback = "rollback",
        /// A connection whose answer was not awaited is thrown away.
        Discard = "discard",
        /// Units of parked requests stay taken in Redis.
        NoGiveBack = "no_give_back",
        /// Only an unpaid order whose deadline has passed expires.
        ExpiryCondition = "expiry_condition",
        /// Redis takes a grant once, by its id.
        GrantOnce = "grant_once",
        /// The event of a change is written with the change.
        OrderEventRow = "order_event_row",
        /// The audit compares the units that Redis holds with those that the database calls unsold.
        UnitBridge = "unit_bridge",
        /// The audit searches acceptance numbers without an outcome.
        NumberEquation = "number_equation",
    }
}

/// A line at which an armed process dies; nothing elsewhere. `crash_point!(AfterConfirm);`
macro_rules! crash_point {
    ($point:ident) => {
        $crate::faults::CrashPoint::$point.reach()
    };
}

/// Whether this process is to leave a mechanism out; `false` without the feature `faults`. `if left_out!(Ledger) { … }`
macro_rules! left_out {
    ($mechanism:ident) => {
        $crate::faults::Mechanism::$mechanism.is_off()
    };
}

pub(crate) use {crash_point, left_out};

impl CrashPoint {
    /// Dies here, if armed; written as [`crash_point!`].
    #[inline]
    pub(crate) fn reach(self) {
        #[cfg(feature = "faults")]
        if armed::hit(self.code()) {
            armed::die(self.code());
        }
    }
}

impl Mechanism {
    /// Whether this process is to leave it out; written as [`left_out!`].
    #[inline]
    #[must_use]
    pub(crate) fn is_off(self) -> bool {
        #[cfg(feature = "faults")]
        return armed::hit(self.code());
        #[cfg(not(feature = "faults"))]
        false
    }
}

/// Makes an audit last longer, as one of millions of records does: `FAILPOINTS="slow_audit=1*return(20000)"` the first by 20 s.
/// The process goes on meanwhile; `sleep` would stop a thread of it.
#[inline]
pub(crate) async fn slow_audit() {
    #[cfg(feature = "faults")]
    if let Some(ms) = armed::value("slow_audit") {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}

/// Reads `FAILPOINTS`; called once, at the start of the process.
pub(crate) fn arm() {
    #[cfg(feature = "faults")]
    armed::read();
}

#[cfg(feature = "faults")]
mod armed {
    /// Whether the point's `return` action fired.
    pub(super) fn hit(name: &str) -> bool {
        fail::eval(name, |_| ()).is_some()
    }

    /// The number that the point's `return` action was given, if it fired.
    pub(super) fn value(name: &str) -> Option<u64> {
        fail::eval(name, |text| text.and_then(|text| text.parse().ok())).flatten()
    }

    pub(super) fn die(name: &str) -> ! {
        tracing::error!(point = name, "dying at a crash point, as asked");
        // A test reads that line; what dies here is everything else.
        crate::telemetry::last_words(None);
        // SAFETY: getpid and kill have no preconditions. SIGKILL: no destructor, no flush, as a power cut would.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        loop {
            std::thread::park();
        }
    }

    pub(super) fn read() {
        // The scenario ends with the process.
        std::mem::forget(fail::FailScenario::setup());
        let armed = fail::list();
        if !armed.is_empty() {
            tracing::warn!(?armed, "fault points are armed");
        }
        if hit("next_version") {
            crate::domain::message::play_next_version();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique() {
        let codes = CrashPoint::ALL.iter().map(|p| p.code()).chain(Mechanism::ALL.iter().map(|m| m.code()));
        let codes: Vec<&str> = codes.collect();
        let unique: std::collections::HashSet<&str> = codes.iter().copied().collect();
        assert_eq!(unique.len(), codes.len(), "{codes:?}");
    }
}
