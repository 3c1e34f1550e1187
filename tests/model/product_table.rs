//! The switch of each mutation of the models, and the test that notices it.

use crate::orders::Skipped;
use crate::setup::Mutation as M;
use crate::transfers::Absent;
use InProduct::{None, Switch};
use seckill::faults::Mechanism;

/// What the product has of a mutation.
#[derive(Clone, Copy)]
pub enum InProduct {
    /// A switch, and the test that finds the harm while it is on, and none while it is off.
    Switch(Mechanism, &'static str),
    /// A rule for receivers, and the test whose receiver leaves it out.
    Receiver(&'static str),
    /// No switch, because of this.
    None(&'static str),
}

pub const PROTOCOL: &[(M, InProduct)] = &[
    (M::AckBeforeConfirm, Switch(Mechanism::ConfirmFirst, "an_entry_deleted_before_its_confirm_is_lost")),
    (
        M::NoAutoclaim,
        Switch(Mechanism::TakeOver, "entries_of_a_dead_relay_stay_for_ever_when_no_relay_takes_over_or_reads_its_own"),
    ),
    (M::DlqAfterDelete, Switch(Mechanism::ParkAtomic, "an_entry_parked_in_two_steps_is_lost_between_them")),
    (M::NotMandatory, Switch(Mechanism::Mandatory, "without_mandatory_what_no_queue_takes_is_lost")),
    (M::AckBeforeCommit, Switch(Mechanism::AckAfterCommit, "an_ack_before_the_commit_loses_an_order")),
    (M::KeyedByNumber, None("the key of an outcome is the request's id, and has no number in it")),
    (M::SecondNumberStays, None("it has no switch yet")),
    (
        M::NoOutcomeKey,
        Switch(Mechanism::OutcomeKey, "a_message_that_comes_twice_takes_two_units_without_the_outcomes_key"),
    ),
    (
        M::DeadLetterAtMostOnce,
        Switch(Mechanism::DeadLetterAtLeastOnce, "a_retry_whose_queue_is_gone_is_dropped_without_at_least_once"),
    ),
    (M::DlqGivesStockBack, Switch(Mechanism::NoGiveBack, "giving_parked_units_back_is_what_the_audit_would_find")),
    (M::ScriptNotIdempotent, Switch(Mechanism::ReplayCheck, "without_the_replay_check_one_purchase_takes_two_units")),
    (M::DelConsumer, Switch(Mechanism::EmptyNames, "entries_of_a_relay_whose_name_is_deleted_stay_for_ever")),
    (M::NoFence, Switch(Mechanism::BootFence, "without_the_boot_fence_a_rewound_sale_sells_on")),
    (M::BuyerTakenIsSuccess, Switch(Mechanism::OwnOutcome, "any_duplicate_key_taken_for_success_loses_a_request")),
    (M::RefusalNotRecorded, Switch(Mechanism::RecordedRefusal, "a_refusal_that_is_not_recorded_loses_a_request")),
    (
        M::RebuildInFlight,
        Switch(Mechanism::NothingOnItsWay, "a_rebuild_that_does_not_wait_for_the_outbox_sells_a_unit_twice"),
    ),
    (
        M::NoQuietTime,
        Switch(Mechanism::QuietTime, "a_rebuild_without_the_quiet_time_sells_what_a_consumer_has_in_hand"),
    ),
    (
        M::FailedIsOverruled,
        Switch(
            Mechanism::FailedIsFinal,
            "a_late_message_of_a_failed_request_becomes_an_order_when_failed_is_not_final",
        ),
    ),
    (M::HalfTransaction, Switch(Mechanism::Rollback, "a_half_transaction_that_is_committed_breaks_the_sheet")),
    (
        M::ConflictIsKept,
        Switch(Mechanism::ReusedNumberFails, "a_request_whose_number_is_anothers_stays_undecided_when_p5_leaves_it"),
    ),
    (
        M::AckWithFirstOrder,
        Switch(
            Mechanism::AckAfterLastOrder,
            "an_order_that_is_sent_back_is_lost_when_the_first_one_acknowledges_its_message",
        ),
    ),
    (
        M::FirstOrderIsParked,
        Switch(Mechanism::ParkEachOrder, "the_second_order_of_an_entry_is_lost_when_the_first_one_is_parked_for_both"),
    ),
    (M::GrantNotKept, Switch(Mechanism::GrantOnce, "a_grant_that_redis_takes_twice_shows_in_the_books")),
    (
        M::ReclaimNotMarked,
        Switch(Mechanism::ReclaimMarks, "units_of_failures_that_a_reclaim_does_not_mark_are_there_twice"),
    ),
    (M::GrantIntoFrozen, Switch(Mechanism::GrantNotFrozen, "a_grant_into_frozen_keys_is_overwritten_by_their_rebuild")),
    (M::SnapshotSplit, Switch(Mechanism::OneSnapshot, "a_grant_between_the_units_and_the_marks_of_a_rebuild_is_lost")),
    (
        M::SnapshotOfAnyEpoch,
        Switch(Mechanism::SnapshotEpoch, "a_rebuild_that_was_overtaken_marks_a_grant_that_no_process_gives"),
    ),
    (
        M::JudgedBeforeEpoch,
        Switch(
            Mechanism::EpochBeforeJudging,
            "a_rebuild_that_judged_before_it_had_its_epoch_does_not_see_what_was_sold_since",
        ),
    ),
    (
        M::BeginReplacesAny,
        Switch(Mechanism::JudgedKeys, "a_rebuild_that_replaces_other_keys_than_it_judged_sells_units_again"),
    ),
    (
        M::GrantsAreSummed,
        Switch(Mechanism::GrantsByName, "units_without_a_grant_hide_behind_a_grant_that_was_not_given"),
    ),
    (
        M::MarksNotCompared,
        Switch(Mechanism::MarksCompared, "a_grant_that_redis_forgot_is_taken_for_one_that_is_still_to_be_given"),
    ),
    (
        M::RebuildReusesEpoch,
        Switch(Mechanism::OwnEpoch, "a_grant_is_given_again_when_an_attempt_goes_on_in_a_dead_ones_epoch"),
    ),
    (
        M::GrantIdsForgotten,
        Switch(Mechanism::GrantIds, "a_grant_whose_id_is_not_in_the_new_keys_is_given_again_by_who_had_read_it"),
    ),
    (
        M::EpochAfterList,
        Switch(Mechanism::EpochBeforeList, "a_grant_is_given_again_by_who_reads_the_epoch_after_the_list"),
    ),
    (
        M::ReclaimAll,
        Switch(Mechanism::ReclaimWithUnit, "a_reclaim_that_takes_every_failure_offers_units_that_never_were"),
    ),
    (
        M::OldFailuresLost,
        Switch(Mechanism::FailuresOfAllEpochs, "failures_of_a_former_epoch_are_missed_in_the_books_of_the_next_one"),
    ),
    (M::NoUnitBridge, Switch(Mechanism::UnitBridge, "without_the_bridge_units_that_only_redis_has_are_not_reported")),
    (
        M::NoNumberEquation,
        Switch(Mechanism::NumberEquation, "without_the_numbers_a_lost_request_of_an_epoch_that_ended_is_not_reported"),
    ),
    (
        M::CancelledNotAbove,
        Switch(
            Mechanism::CancelledAbove,
            "an_order_that_came_and_was_cancelled_since_redis_was_counted_is_a_false_alarm",
        ),
    ),
    (
        M::ReclaimedNotAbove,
        Switch(
            Mechanism::ReclaimedAbove,
            "a_failure_that_came_and_was_reclaimed_since_redis_was_counted_is_a_false_alarm",
        ),
    ),
    (M::WriteOffTwice, Switch(Mechanism::GapsHeld, "the_unit_of_a_gap_is_there_twice_when_a_rebuild_sells_it")),
    (
        M::ClosedGapIsFree,
        Switch(
            Mechanism::ClosedNumbers,
            "the_unit_of_a_closed_number_is_there_twice_when_a_late_message_of_it_becomes_an_order",
        ),
    ),
    (
        M::DlqNotCounted,
        Switch(Mechanism::DeadLettersCount, "a_rebuild_that_does_not_count_dead_letters_sells_their_units"),
    ),
    (
        M::EpochsNotCompared,
        Switch(
            Mechanism::EpochsCompared,
            "a_sale_of_another_epoch_sells_nothing_for_ever_when_epochs_are_not_compared",
        ),
    ),
];

pub const ORDERS: &[(Skipped, InProduct)] = &[
    (
        Skipped::StateCondition,
        Switch(
            Mechanism::ExpiryState,
            "an_order_that_was_paid_since_it_was_chosen_expires_without_the_condition_on_the_state",
        ),
    ),
    (
        Skipped::DeadlineCondition,
        Switch(Mechanism::ExpiryDeadline, "an_order_whose_deadline_is_ahead_again_expires_without_the_condition_on_it"),
    ),
    (
        Skipped::ReturnInTransaction,
        Switch(
            Mechanism::ReturnWithExpiry,
            "units_that_come_back_in_a_transaction_of_their_own_are_lost_with_who_writes_it",
        ),
    ),
    (Skipped::GrantName, Switch(Mechanism::GrantOnce, "a_grant_that_redis_takes_twice_shows_in_the_books")),
    (
        Skipped::OthersGive,
        Switch(Mechanism::OthersGive, "the_grant_of_a_sweep_that_died_waits_for_ever_when_only_its_maker_gives_it"),
    ),
    (
        Skipped::RebuildMarks,
        Switch(Mechanism::RebuildMarks, "a_grant_that_a_rebuild_counts_and_does_not_mark_is_given_again"),
    ),
    (
        Skipped::LateMoneyRefused,
        Switch(Mechanism::LateMoneyRefused, "an_expired_order_that_a_payment_makes_paid_has_a_unit_that_is_sold_again"),
    ),
    (
        Skipped::RefundRecorded,
        Switch(Mechanism::RefundRecorded, "money_that_no_order_can_take_is_lost_without_its_row"),
    ),
    (
        Skipped::PaymentId,
        Switch(Mechanism::PaymentId, "a_payment_that_is_reported_again_is_sent_back_as_a_second_one_without_its_id"),
    ),
    (
        Skipped::PaidWithItsRow,
        Switch(Mechanism::PaidWithItsRow, "an_order_is_paid_by_no_payment_when_that_is_written_later"),
    ),
    (
        Skipped::CancelRefunds,
        Switch(Mechanism::CancelRefunds, "a_cancelled_order_keeps_its_money_when_nothing_sends_it_back"),
    ),
    (
        Skipped::AmountCompared,
        Switch(Mechanism::AmountCompared, "an_order_is_paid_with_a_cent_when_amounts_are_not_compared"),
    ),
];

pub const TRANSFERS: &[(Absent, InProduct)] = &[
    (
        Absent::PairsInFence,
        Switch(Mechanism::PairsInFence, "units_of_two_buckets_are_sold_when_the_fence_compares_numbers_only"),
    ),
    (
        Absent::EachPairByItself,
        Switch(Mechanism::EachPair, "what_one_pair_has_too_much_hides_behind_what_another_one_lacks"),
    ),
    (Absent::Sums, Switch(Mechanism::TransferSums, "a_lost_gift_that_a_later_one_covers_is_seen_by_the_sums_only")),
    (
        Absent::GivenRecordsLeftOut,
        Switch(Mechanism::GivenRecords, "a_record_that_was_given_is_a_false_alarm_when_the_sums_count_it"),
    ),
    (
        Absent::RecordsAreFinished,
        Switch(Mechanism::RecordsFinished, "units_between_two_buckets_stay_there_when_p5_gives_no_record"),
    ),
    (Absent::GivenOnce, Switch(Mechanism::GivenOnce, "a_gift_that_is_repeated_gives_units_again_without_its_number")),
    (
        Absent::UnitsRemembered,
        Switch(
            Mechanism::UnitsRemembered,
            "a_record_is_forgotten_whose_units_no_bucket_got_when_only_its_number_is_remembered",
        ),
    ),
    (Absent::Record, Switch(Mechanism::TransferRecord, "units_are_in_no_bucket_when_their_source_keeps_no_record")),
    (Absent::ForgetsThatRecord, Switch(Mechanism::ThatRecord, "a_late_repeat_takes_the_next_transfers_record_away")),
    (
        Absent::EpochOfGift,
        Switch(Mechanism::EpochOfGift, "a_gift_of_before_a_rebuild_is_taken_when_epochs_are_not_compared"),
    ),
    (
        Absent::TakeReplicated,
        Switch(Mechanism::TakeReplicated, "units_are_in_two_buckets_when_they_are_given_before_a_replica_has_the_take"),
    ),
    (
        Absent::GiftReplicated,
        Switch(
            Mechanism::GiftReplicated,
            "units_are_in_no_bucket_when_their_record_is_forgotten_before_a_replica_has_the_gift",
        ),
    ),
];

/// What the models do not have, and what is left out together with the mutation that it is the net of.
pub const OTHER_NET: (&str, Mechanism, &str) = (
    "in the product only, together with `empty_names`: no search for entries without an owner (30)",
    Mechanism::OrphanSearch,
    "entries_of_a_relay_whose_name_is_deleted_stay_for_ever",
);
