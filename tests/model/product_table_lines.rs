//! The same for the model of lines.

use crate::lines::setup::Unlined;
use crate::product_table::InProduct::{self, None, Switch};
use seckill::faults::Mechanism;

/// Paths of the model, played on servers without the mechanism.
const PLAYED: &str = "a_mechanism_of_lines_that_is_left_out_is_a_difference";

pub const LINES: &[(Unlined, InProduct)] = &[
    (
        Unlined::IdWritten,
        Switch(Mechanism::OfferRequestFirst, "an_entry_gets_two_orders_when_its_request_is_not_written_first"),
    ),
    (Unlined::IdKept, Switch(Mechanism::OfferRequestKept, PLAYED)),
    (Unlined::InHandStays, Switch(Mechanism::InHandStays, "who_left_gets_an_order_when_an_entry_in_hand_may_leave")),
    (Unlined::LeftNotOffered, Switch(Mechanism::LeftNotOffered, PLAYED)),
    (
        Unlined::DoorInScript,
        Switch(Mechanism::DoorOfLine, "a_click_gets_a_unit_of_the_line_when_the_script_has_no_door_for_it"),
    ),
    (
        Unlined::DoorFirst,
        Switch(
            Mechanism::DoorBeforeLine,
            "a_click_is_before_who_waits_when_a_waiting_list_opens_before_its_door_is_shut",
        ),
    ),
    (Unlined::LineOpenedByVersion, Switch(Mechanism::LineOfVersion, PLAYED)),
    (Unlined::ClockAfterRow, Switch(Mechanism::ClockAfterRow, PLAYED)),
    (
        Unlined::ReopenedUnderRow,
        Switch(Mechanism::NoEntryWaits, "clicks_get_the_units_of_an_offer_without_an_outcome_when_no_entry_is_counted"),
    ),
    (
        Unlined::LaterReadingStays,
        Switch(Mechanism::TermsReadLater, "a_process_that_slept_opens_the_door_when_terms_have_no_age"),
    ),
    (Unlined::DoorOfRebuild, Switch(Mechanism::TermsOfRebuild, PLAYED)),
    (Unlined::DoorInFence, Switch(Mechanism::DoorInFence, PLAYED)),
    (Unlined::GivenBackOnce, Switch(Mechanism::LapsedOnce, PLAYED)),
    (Unlined::RanksObeyed, Switch(Mechanism::RanksObeyed, PLAYED)),
    (Unlined::InHandCompared, Switch(Mechanism::InHandCompared, PLAYED)),
    (
        Unlined::LapsedCompared,
        None("the product leaves such an entry LAPSED beside its order, which the guarantees say"),
    ),
    (Unlined::ForgottenAskedAgain, Switch(Mechanism::ForgottenAskedAgain, PLAYED)),
    (
        Unlined::ForgottenWaitsFor,
        Switch(
            Mechanism::ForgottenWaits,
            "clicks_get_the_units_of_an_offer_without_an_outcome_when_only_waiting_entries_are_counted",
        ),
    ),
];
