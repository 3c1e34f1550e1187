//! The same for the models beside the first ones: events, webhooks, two sales, drops.

use crate::drops::Unlimited;
use crate::events::Unsent;
use crate::neighbours::Unshared;
use crate::product_table::InProduct::{self, Receiver, Switch};
use crate::webhooks::Omitted;
use seckill::faults::Mechanism;

pub const EVENTS: &[(Unsent, InProduct)] = &[
    (
        Unsent::RowWithItsChange,
        Switch(Mechanism::OrderEventRow, "an_event_that_is_not_written_with_its_change_is_never_published"),
    ),
    (
        Unsent::RowOfCompensation,
        Switch(Mechanism::OutcomeEventRow, "an_outcome_of_p5_is_never_published_when_its_event_is_left_to_the_message"),
    ),
    (
        Unsent::EventBeforeAck,
        Switch(Mechanism::EventBeforeAck, "an_event_is_lost_with_a_consumer_that_acknowledged_its_message_before"),
    ),
    (
        Unsent::StoredWhenNotTaken,
        Switch(Mechanism::EventsStored, "an_event_that_the_broker_does_not_take_is_lost_when_it_is_not_stored"),
    ),
    (
        Unsent::EventsOutliveQueue,
        Switch(
            Mechanism::EventsOutliveQueue,
            "an_event_is_lost_with_the_queue_of_a_consumer_that_had_committed_its_order",
        ),
    ),
    (
        Unsent::EventOfDeadLetter,
        Switch(
            Mechanism::EventOfDeadLetter,
            "an_event_is_lost_with_the_dead_letter_of_a_decided_request_when_it_is_not_stored",
        ),
    ),
    (
        Unsent::CommitBeforeEvent,
        Switch(
            Mechanism::CommitBeforeEvent,
            "a_subscriber_gets_an_order_that_never_was_when_events_come_before_their_commit",
        ),
    ),
    (
        Unsent::DeletedAfterConfirm,
        Switch(Mechanism::ConfirmedEventsOnly, "an_event_is_lost_with_a_publisher_that_deleted_its_row_before"),
    ),
    (
        Unsent::OwnRowsDeleted,
        Switch(
            Mechanism::OwnEventRows,
            "an_event_that_came_since_a_page_was_read_is_lost_when_whatever_is_there_is_deleted",
        ),
    ),
    (
        Unsent::OlderVersionsDropped,
        Receiver("a_receiver_that_takes_whatever_comes_last_has_an_order_paid_that_is_cancelled"),
    ),
    (Unsent::RefundsKept, Receiver("a_receiver_that_drops_refunds_of_older_versions_keeps_money_that_has_to_go_back")),
];

pub const WEBHOOKS: &[(Omitted, InProduct)] = &[
    (
        Omitted::AnswerFirst,
        Switch(
            Mechanism::DeliveredAfterAnswer,
            "an_event_that_is_recorded_before_the_answer_never_gets_to_a_receiver_that_refuses_it_once",
        ),
    ),
    (
        Omitted::FailureOfWaitingRow,
        Switch(
            Mechanism::FailureOfWaitingRow,
            "a_late_failure_undoes_a_delivery_when_it_is_recorded_whatever_the_row_says",
        ),
    ),
    (
        Omitted::TryCountsOnce,
        Switch(Mechanism::TryCountsOnce, "a_try_that_is_recorded_twice_costs_a_delivery_two_tries"),
    ),
    (
        Omitted::LateSuccess,
        Switch(Mechanism::LateSuccess, "a_delivery_that_arrived_stays_dead_when_late_successes_are_not_recorded"),
    ),
    (
        Omitted::StopsWhenGone,
        Switch(Mechanism::StopsWhenGone, "a_receiver_that_answered_410_is_called_again_when_it_is_not_left_alone"),
    ),
    (
        Omitted::GoneIsWritten,
        Switch(
            Mechanism::GoneIsWritten,
            "a_receiver_that_answered_410_is_taken_for_open_when_that_is_not_written_down",
        ),
    ),
    (
        Omitted::DeletesDeliveredOnly,
        Switch(
            Mechanism::DeletesDeliveredOnly,
            "a_delivery_that_is_replayed_is_deleted_when_old_ones_are_deleted_by_id",
        ),
    ),
    (
        Omitted::ReplayResetsTries,
        Switch(
            Mechanism::ReplayResetsTries,
            "a_replayed_delivery_is_dead_before_its_tries_are_spent_when_they_stay_counted",
        ),
    ),
    (
        Omitted::ReplayOpens,
        Switch(Mechanism::ReplayOpens, "a_replayed_delivery_is_never_sent_when_its_receiver_stays_closed"),
    ),
    (
        Omitted::ChosenAgain,
        Switch(
            Mechanism::ChosenAgain,
            "a_delivery_that_a_dead_leader_had_read_is_never_sent_when_it_is_left_to_that_one",
        ),
    ),
];

pub const NEIGHBOURS: &[(Unshared, InProduct)] = &[
    (
        Unshared::OwnMessagesOnly,
        Switch(Mechanism::OwnMessagesOnly, "a_sale_is_never_rebuilt_when_it_waits_for_the_messages_of_another_one"),
    ),
    (
        Unshared::RetriesWatched,
        Switch(
            Mechanism::RetriesWatched,
            "a_rebuild_that_searches_the_retry_queues_only_now_and_then_misses_what_goes_through_them",
        ),
    ),
    (
        Unshared::QuietTime,
        Switch(Mechanism::QuietTime, "a_rebuild_without_the_quiet_time_sells_what_a_consumer_has_in_hand"),
    ),
    (
        Unshared::LockedApart,
        Switch(
            Mechanism::LockedApart,
            "an_order_is_a_dead_letter_because_of_another_sales_locked_row_when_a_group_meets_it_as_a_whole",
        ),
    ),
    (
        Unshared::LockedSentBack,
        Switch(
            Mechanism::LockedSentBack,
            "an_order_waits_for_another_sales_locked_row_when_a_consumer_keeps_its_group",
        ),
    ),
    (
        Unshared::LockForgotten,
        Switch(
            Mechanism::LockedTriedAgain,
            "the_orders_of_a_sale_whose_row_was_locked_once_are_never_written_when_it_is_not_tried_again",
        ),
    ),
    (
        Unshared::RoundGoesOn,
        Switch(Mechanism::RoundGoesOn, "a_sale_is_never_rebuilt_when_a_round_ends_with_another_one_that_fails"),
    ),
];

pub const DROPS: &[(Unlimited, InProduct)] = &[
    (
        Unlimited::OthersCounted,
        Switch(Mechanism::DropCounted, "a_buyer_is_let_into_each_sale_of_a_drop_when_the_script_counts_one"),
    ),
    (
        Unlimited::OthersState,
        Switch(Mechanism::DropFrozen, "a_buyer_is_let_in_again_while_the_other_sale_of_a_drop_is_being_rebuilt"),
    ),
    (
        Unlimited::OthersMark,
        Switch(Mechanism::DropWhole, "a_buyer_is_let_in_again_when_the_other_sale_of_a_drop_has_lost_its_buyers"),
    ),
    (
        Unlimited::DropGuard,
        Switch(
            Mechanism::DropGuard,
            "a_buyer_whom_redis_forgot_gets_an_order_in_each_sale_of_a_drop_when_the_database_does_not_count",
        ),
    ),
    (
        Unlimited::RebuildWaits,
        Switch(Mechanism::NothingOnItsWay, "a_rebuild_that_does_not_wait_for_the_outbox_sells_a_unit_twice"),
    ),
    (
        Unlimited::ReturnsToDrop,
        Switch(Mechanism::ReturnsToDrop, "a_buyer_whose_order_ended_counts_for_ever_when_a_drop_gets_nothing_back"),
    ),
    (
        Unlimited::ClosedTogether,
        Switch(Mechanism::ClosedTogether, "a_sale_of_a_drop_sells_nothing_when_the_other_one_is_closed_by_itself"),
    ),
    (
        Unlimited::PersonCounted,
        Switch(Mechanism::PersonCounted, "a_person_is_let_in_by_each_account_when_the_script_counts_accounts"),
    ),
];
