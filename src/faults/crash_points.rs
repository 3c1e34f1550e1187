//! The lines at which a test build can be killed.

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
        /// A withdrawal is on record, Redis has given none of its units.
        WithdrawalBegun = "F45",
        /// A shard has given its units, the next one, or the database, does not know of them.
        WithdrawalTaken = "F46",
        /// The units are out of the database; those that another sale gets are not in Redis.
        WithdrawalEnded = "F47",
        /// P5: an announcement and its events are written, not committed.
        AnnouncementWritten = "F60",
        /// P5: they are committed, no broker has them.
        AnnouncementCommitted = "F61",
        /// The sales of a file are written, with their acts, not committed.
        ImportWritten = "F62",
        /// They are committed, none is warmed.
        ImportCommitted = "F63",
        /// A buyer is to be forgotten and may not buy; nothing is renamed.
        ForgetBegun = "F70",
        /// That it will be done is on record; nothing is renamed.
        ForgetDecided = "F71",
        /// Some orders have the pseudonym, others have the id.
        ForgetHalf = "F72",
        /// The database has the pseudonym, Redis has the id.
        ForgetRows = "F73",
        /// Both have the pseudonym; the row that knows the id is there.
        ForgetKeys = "F74",
        /// P6: deliveries wait again, the act that they were replayed by is not recorded.
        WebhookReplayed = "F44",
        /// P1: a group of entries of a line is written, not committed.
        EntriesWritten = "F80",
        /// P1: it is committed, no buyer has the answer.
        EntriesCommitted = "F81",
        /// P5: a line is closed, its list is not sealed.
        LineClosed = "F82",
        /// P5: the list is sealed, the ranks are not settled.
        LineSealed = "F83",
        /// P5: the line is drawn.
        LineDrawn = "F84",
        /// P5: the requests of offers are written into their entries, not committed.
        OfferRequestWritten = "F85",
        /// P5: they are committed, P2 was not asked.
        OfferRequestCommitted = "F86",
        /// P5: P2 has decided offers, no entry says so.
        OfferDecided = "F87",
        /// P5: what became of offers is written with its events, not committed.
        OfferStepWritten = "F88",
        /// P5: it is committed, no broker has the events.
        OfferStepCommitted = "F89",
        /// P5: the units of a sale go to its waiting list in the database, clicks still get them in Redis.
        GivenToLine = "F90",
        /// P5: the door is the line's in Redis, the waiting list takes no entries yet.
        DoorShut = "F91",
        /// P5: clicks get the units again in the database, not in Redis.
        GivenToClicks = "F92",
        /// P2: units are out of one bucket, in a transfer record, not in the other.
        AfterTake = "F25",
        /// P2: the units are in the other bucket, the record is not forgotten.
        AfterGive = "F26",
    }
}
