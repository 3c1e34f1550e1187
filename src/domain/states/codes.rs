//! The state enums P1 … P6 with their codes and meanings.

/// A phase of the pipeline. One name in code, config, metrics, logs, tests and docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Entry and cache.
    P1Entry,
    /// Reserve: the Lua script.
    P2Reserve,
    /// Relay: Redis stream to RabbitMQ.
    P3Relay,
    /// Consume and persist.
    P4Persist,
    /// Audit and compensation.
    P5Reconcile,
    /// What follows an order: payment, deadline, cancellation.
    P6Fulfil,
}

impl Phase {
    /// The phase's one name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P1Entry => "p1_entry",
            Self::P2Reserve => "p2_reserve",
            Self::P3Relay => "p3_relay",
            Self::P4Persist => "p4_persist",
            Self::P5Reconcile => "p5_reconcile",
            Self::P6Fulfil => "p6_fulfil",
        }
    }
}

macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal, $label:literal, $meaning:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = concat!("`", $code, " ", $label, "`: ", $meaning)] $variant,)* }

        impl $name {
            /// Every state, in the order of the codes.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            /// The code, as in logs, metrics and API answers.
            #[must_use]
            pub const fn code(self) -> &'static str { match self { $(Self::$variant => $code,)* } }

            /// The label beside the code.
            #[must_use]
            pub const fn label(self) -> &'static str { match self { $(Self::$variant => $label,)* } }

            /// What it means.
            #[must_use]
            pub const fn meaning(self) -> &'static str { match self { $(Self::$variant => $meaning,)* } }
        }
    };
}

states! {
    /// P1: may a request try?
    P1Entry {
        Ready = "P1-S1", "READY", "cache is loaded, stock is left";
        SoldOut = "P1-S2", "SOLD_OUT", "the sold-out mark of this epoch is set";
        NotFound = "P1-S3", "NOT_FOUND", "not in the local cache, not in Redis, not in the database";
        Loading = "P1-S4", "LOADING", "someone else is loading it, or it is not warmed yet: busy, retry";
        NotStarted = "P1-S5", "NOT_STARTED", "the window has not opened";
        Ended = "P1-S6", "ENDED", "the window is over, or the sale was closed";
        Paused = "P1-S7", "PAUSED", "stopped by an operator, or frozen after data loss";
        Overloaded = "P1-S8", "OVERLOADED", "a bound on queues or backlog is reached: retry later";
        NotEntitled = "P1-Q1", "NOT_ENTITLED", "the sale needs a fact or a pass that the buyer did not show";
        Blocked = "P1-Q2", "BLOCKED", "an operator has blocked the buyer";
        Challenge = "P1-Q4", "CHALLENGE", "the sale has a challenge that the buyer has not solved: no token yet";
        RiskRefused = "P1-Q5", "RISK_REFUSED", "the shop's risk service refused the buyer a token";
    }
}

states! {
    /// P2: what the reserve script decided.
    P2Reserve {
        Reserved = "P2-R0", "LUA_OK", "stock, buyer, ledger record and outbox entry, one atomic script";
        Duplicate = "P2-R1", "DUPLICATE", "this buyer already bought (one-per-user sale)";
        SoldOut = "P2-R2", "SOLD_OUT", "total stock really is 0";
        BucketEmpty = "P2-R3", "BUCKET_EMPTY", "this bucket is empty; units are brought from another by itself";
        BucketAllEmpty = "P2-R4", "BUCKET_ALL_EMPTY", "every bucket was tried, still nothing";
        LimitExceeded = "P2-R5", "LIMIT_EXCEEDED", "the cumulative limit would be passed";
        Replayed = "P2-R6", "REPLAYED", "the same request id again: the original answer, even after sell-out";
        NotEnough = "P2-R7", "NOT_ENOUGH", "wants more than is left";
    }
}

states! {
    /// P3: an outbox entry on its way to the broker.
    P3Relay {
        New = "P3-N0", "NEW", "in the stream, not read yet";
        Pending = "P3-N1", "PENDING", "read by XREADGROUP, not acknowledged";
        SentOk = "P3-N2", "SENT_OK", "publisher confirm, then XACK + XDEL + attempts cleared";
        Retrying = "P3-N3", "RETRYING", "nack, return or timeout with attempts left; stays pending";
        RelayDlq = "P3-N4", "RELAY_DLQ", "attempts spent: relay DLQ, original XACK + XDEL, atomically";
    }
}

states! {
    /// P4: a message and the database.
    P4Persist {
        DbOk = "P4-C0", "DB_OK", "stock deducted and order inserted, one transaction";
        Idempotent = "P4-C1", "IDEMPOTENT", "the request has its outcome already: ack";
        BizErrorAck = "P4-C2", "BIZ_ERROR_ACK", "business refusal, recorded in failed_request, then ack";
        SysErrorRetry = "P4-C3", "SYS_ERROR_RETRY", "database down, timeout, deadlock: redelivery with back-off";
        MqDlq = "P4-C4", "MQ_DLQ", "redeliveries spent, or unreadable: in the MQ DLQ";
    }
}

states! {
    /// P5: what the audit found and did.
    P5Reconcile {
        Match = "P5-RC0", "MATCH", "Redis, outbox and DLQs agree with the database";
        Leak = "P5-RC1", "LEAK", "Redis knows the request, the database has neither order nor failure";
        OverSell = "P5-RC2", "OVER_SELL", "orders in the database exceed granted stock";
        Orphan = "P5-RC3", "ORPHAN", "the database has an outcome that Redis does not know (Redis lost data)";
        Gap = "P5-RC4", "GAP", "an acceptance number has no outcome and its request is unknown (data were lost)";
        Compensated = "P5-COMP0", "COMPENSATED", "the missing order was written";
        FailedFinal = "P5-COMP1", "FAILED_FINAL", "it can never be written; recorded for good";
    }
}

states! {
    /// P6: what became of an order of a sale with a payment step, and of an entry of a line.
    P6Fulfil {
        Unpaid = "P6-F0", "UNPAID", "confirmed, waits for its payment; its units are held";
        Paid = "P6-F1", "PAID", "paid in time, with the right amount";
        Expired = "P6-F2", "EXPIRED", "its deadline passed unpaid; its units are on sale again";
        Cancelled = "P6-F3", "CANCELLED", "cancelled by its buyer or an operator; its units are on sale again";
        RefundNeeded = "P6-F4", "REFUND_NEEDED", "money that no order could take: recorded, published, to be sent back";
        LineWaiting = "P6-W0", "LINE_WAITING", "an entry of a line waits for its rank";
        LineOffered = "P6-W1", "LINE_OFFERED", "it has an order that waits to be taken";
        LineTaken = "P6-W2", "LINE_TAKEN", "its order is the buyer's";
        LineLapsed = "P6-W3", "LINE_LAPSED", "its offer was not taken in time";
        LineLeft = "P6-W4", "LINE_LEFT", "its buyer left the line";
    }
}
