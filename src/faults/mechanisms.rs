//! The mechanisms that a test build can leave out.

coded! {
    /// A mechanism that a guarantee rests on. `docs/model.md` names the mutation of the models that each is.
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
        /// A relay searches entries that are in no pending list.
        OrphanSearch = "orphan_search",
        /// Only the name of a relay that holds nothing is removed.
        EmptyNames = "empty_names",
        /// The relay DLQ is written in the step that deletes the entry.
        ParkAtomic = "park_atomic",
        /// Each order of an entry gets a dead letter of its own.
        ParkEachOrder = "park_each_order",
        /// Dead-lettering at least once.
        DeadLetterAtLeastOnce = "dead_letter_at_least_once",
        /// The ack comes after the commit.
        AckAfterCommit = "ack_after_commit",
        /// A message is acknowledged with the last of its orders.
        AckAfterLastOrder = "ack_after_last_order",
        /// The copy for the retry queue is confirmed before the original is acknowledged.
        ConfirmedRetry = "confirmed_retry",
        /// "Duplicate key" is success only if it is this request's own outcome.
        OwnOutcome = "own_outcome",
        /// A request that has an outcome is not written again: the keys of the three INSERTs say so.
        OutcomeKey = "outcome_key",
        /// A message of a request that failed for good changes nothing.
        FailedIsFinal = "failed_is_final",
        /// A refusal is recorded before its message is acknowledged.
        RecordedRefusal = "recorded_refusal",
        /// Any error rolls the whole transaction back.
        Rollback = "rollback",
        /// A connection whose answer was not awaited is thrown away.
        Discard = "discard",
        /// Orders beside those of a sale whose row is locked are written.
        LockedApart = "locked_apart",
        /// Orders of a sale whose row is locked are sent back; no consumer keeps them.
        LockedSentBack = "locked_sent_back",
        /// A sale whose row was locked is tried again.
        LockedTriedAgain = "locked_tried_again",
        /// Units of parked requests stay taken in Redis.
        NoGiveBack = "no_give_back",
        /// A request whose acceptance number is another's gets an outcome from P5.
        ReusedNumberFails = "reused_number_fails",
        /// A number that was closed makes no order.
        ClosedNumbers = "closed_numbers",
        /// Only an unpaid order whose deadline has passed expires.
        ExpiryCondition = "expiry_condition",
        /// The UPDATE that expires has a condition on the state.
        ExpiryState = "expiry_state",
        /// It has a condition on the deadline.
        ExpiryDeadline = "expiry_deadline",
        /// Units come back in the transaction that expires their orders.
        ReturnWithExpiry = "return_with_expiry",
        /// A payment of an expired order has to go back.
        LateMoneyRefused = "late_money_refused",
        /// The amount of a payment is compared with its order's.
        AmountCompared = "amount_compared",
        /// Money that no order can take gets a row.
        RefundRecorded = "refund_recorded",
        /// A payment that is reported again is found by its id.
        PaymentId = "payment_id",
        /// An order becomes PAID in the transaction that writes its payment's row.
        PaidWithItsRow = "paid_with_its_row",
        /// The payment of a cancelled order has to go back.
        CancelRefunds = "cancel_refunds",
        /// Redis takes a grant once, by its id.
        GrantOnce = "grant_once",
        /// Redis takes the units of a withdrawal once, by its name.
        WithdrawOnce = "withdraw_once",
        /// Frozen keys take no grant.
        GrantNotFrozen = "grant_not_frozen",
        /// Who gives grants reads the sale's epoch before the list.
        EpochBeforeList = "epoch_before_list",
        /// Grants that another process has left open are given.
        OthersGive = "others_give",
        /// A reclaim marks the failures whose units it offers again.
        ReclaimMarks = "reclaim_marks",
        /// A reclaim offers units of those failures only that had one.
        ReclaimWithUnit = "reclaim_with_unit",
        /// The event of a change is written with the change.
        OrderEventRow = "order_event_row",
        /// What was announced of a sale is written in the transaction of its events.
        AnnouncedWithItsEvents = "announced_with_its_events",
        /// The event of an outcome that no message brings is written with the outcome.
        OutcomeEventRow = "outcome_event_row",
        /// Events are published before their messages are acknowledged.
        EventBeforeAck = "event_before_ack",
        /// Events that the broker does not take from a consumer are stored.
        EventsStored = "events_stored",
        /// A consumer that loses its queue publishes the events of what it has committed.
        EventsOutliveQueue = "events_outlive_queue",
        /// A dead letter whose request is decided is removed with its event stored.
        EventOfDeadLetter = "event_of_dead_letter",
        /// An event is published after the commit of its change.
        CommitBeforeEvent = "commit_before_event",
        /// A publisher deletes rows after the broker has their events.
        ConfirmedEventsOnly = "confirmed_events_only",
        /// A publisher deletes the rows that it has published, no others.
        OwnEventRows = "own_event_rows",
        /// A delivery is recorded as delivered after its receiver has answered.
        DeliveredAfterAnswer = "delivered_after_answer",
        /// A failed try is recorded only of a delivery that waits.
        FailureOfWaitingRow = "failure_of_waiting_row",
        /// A failed try counts once.
        TryCountsOnce = "try_counts_once",
        /// A success is recorded although the delivery is dead.
        LateSuccess = "late_success",
        /// Nothing is sent to a receiver that has answered 410.
        StopsWhenGone = "stops_when_gone",
        /// A receiver that answered 410 is closed in the database.
        GoneIsWritten = "gone_is_written",
        /// Old deliveries are deleted only if they are still delivered.
        DeletesDeliveredOnly = "deletes_delivered_only",
        /// A delivery that is replayed has all its tries again.
        ReplayResetsTries = "replay_resets_tries",
        /// A replay opens the receiver.
        ReplayOpens = "replay_opens",
        /// A delivery is due until its result is recorded, by whatever process it was read.
        ChosenAgain = "chosen_again",
        /// A rebuild waits for what is in the outbox and in the queues.
        NothingOnItsWay = "nothing_on_its_way",
        /// A rebuild waits until nothing was decided for a while.
        QuietTime = "quiet_time",
        /// A rebuild waits for messages of its own sale only.
        OwnMessagesOnly = "own_messages_only",
        /// A round of P5 goes on with the other sales when one fails.
        RoundGoesOn = "round_goes_on",
        /// A rebuild sees what goes through the retry queues meanwhile.
        RetriesWatched = "retries_watched",
        /// A rebuild counts the requests that only a dead-letter queue has.
        DeadLettersCount = "dead_letters_count",
        /// P5 compares the epochs of an open sale, and rebuilds it if they differ.
        EpochsCompared = "epochs_compared",
        /// A rebuild judges once more what is on its way when it has its epoch.
        EpochBeforeJudging = "epoch_before_judging",
        /// A rebuild replaces the very keys that it has judged.
        JudgedKeys = "judged_keys",
        /// Each attempt to rebuild has an epoch of its own.
        OwnEpoch = "own_epoch",
        /// The units of a rebuild and the marks of its grants are of one moment.
        OneSnapshot = "one_snapshot",
        /// A rebuild that was overtaken marks no grants.
        SnapshotEpoch = "snapshot_epoch",
        /// A rebuild marks the grants that it has counted.
        RebuildMarks = "rebuild_marks",
        /// The ids of grants that were not given are written into the new keys.
        GrantIds = "grant_ids",
        /// A rebuild keeps the units of gaps back.
        GapsHeld = "gaps_held",
        /// The reserve script counts what a buyer has in the other sales of the drop.
        DropCounted = "drop_counted",
        /// It refuses all purchases while another sale of the drop is frozen.
        DropFrozen = "drop_frozen",
        /// It refuses all purchases while another sale of the drop has lost its buyers.
        DropWhole = "drop_whole",
        /// The transaction of an order compares the limit of the drop.
        DropGuard = "drop_guard",
        /// Where a sale limits by person the reserve script counts the person, not the account.
        PersonCounted = "limited",
        /// The same in the transaction of an order.
        PersonGuard = "person_guard",
        /// The reserve script takes only offers while the units of a sale go to its line.
        DoorOfLine = "lowest",
        /// Terms that were read earlier than those of meta change nothing.
        TermsReadLater = "terms_read_later",
        /// A waiting list takes entries only behind a door that lets in no click.
        DoorBeforeLine = "door_before_line",
        /// The door opens to clicks only while the line is held and no entry waits.
        NoEntryWaits = "no_entry_waits",
        /// The request of an offer is written into the entry before its purchase.
        OfferRequestFirst = "offer_request_first",
        /// The request of an offer stays when P2 has too few units for it.
        OfferRequestKept = "offer_request_kept",
        /// An entry leaves only as long as it has no request.
        InHandStays = "in_hand_stays",
        /// An entry that has left gets no request.
        LeftNotOffered = "left_not_offered",
        /// A waiting list is opened only in the version of the sale's row whose door was set.
        LineOfVersion = "line_of_version",
        /// The door is set again before a waiting list is opened, by a clock that is later than the row.
        ClockAfterRow = "clock_after_row",
        /// A rebuild reads the terms of the sale again before it opens.
        TermsOfRebuild = "terms_of_rebuild",
        /// The boot fence shuts the door of a sale whose units go to its line.
        DoorInFence = "door_in_fence",
        /// The units of an offer that lapsed come back by the grant of its order alone.
        LapsedOnce = "lapsed_once",
        /// Units go to the lowest ranks.
        RanksObeyed = "ranks_obeyed",
        /// An entry in hand whose request has an outcome is offered, whatever Redis knows of it.
        InHandCompared = "in_hand_compared",
        /// An offer without an outcome is asked for again.
        ForgottenAskedAgain = "forgotten_asked_again",
        /// The door stays shut while an offer has no outcome.
        ForgottenWaits = "forgotten_waits",
        /// Units that come back no longer count in the drop.
        ReturnsToDrop = "returns_to_drop",
        /// The sales of a drop are closed together.
        ClosedTogether = "closed_together",
        /// The audit compares the units that Redis holds with those that the database calls unsold.
        UnitBridge = "unit_bridge",
        /// The audit compares grants by their names, not only by their sum.
        GrantsByName = "grants_by_name",
        /// The audit compares the grants that are marked as given with Redis.
        MarksCompared = "marks_compared",
        /// The audit counts the units of failures of former epochs as held.
        FailuresOfAllEpochs = "failures_of_all_epochs",
        /// The audit adds orders that came after its count, cancelled or not.
        CancelledAbove = "cancelled_above",
        /// The audit takes away failures that came after its count, reclaimed or not.
        ReclaimedAbove = "reclaimed_above",
        /// The audit searches acceptance numbers without an outcome.
        NumberEquation = "number_equation",
        /// A transfer is written down in its source with the units that it takes.
        TransferRecord = "transfer_record",
        /// Units are given when the replicas have the take.
        TakeReplicated = "take_replicated",
        /// The target of a transfer takes each number once.
        GivenOnce = "given_once",
        /// The target remembers the units of the last number.
        UnitsRemembered = "units_remembered",
        /// The target of a transfer compares the epoch.
        EpochOfGift = "epoch_of_gift",
        /// A record is forgotten when the replicas have the gift.
        GiftReplicated = "gift_replicated",
        /// Only the very record that was given is forgotten.
        ThatRecord = "that_record",
        /// P5 gives the records that it finds.
        RecordsFinished = "records_finished",
        /// The fence compares both sides of each transfer.
        PairsInFence = "pairs_in_fence",
        /// Fence and audit compare each pair of buckets by itself.
        EachPair = "each_pair",
        /// The audit compares the sums of all transfers.
        TransferSums = "transfer_sums",
        /// The sums leave records out that were given.
        GivenRecords = "given_records",
    }
}
