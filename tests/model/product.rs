//! What each mutation of the models is in the product: the switch of a test build that leaves out the same mechanism, and the
//! test that notices it. `docs/model.md` prints it.

use crate::orders::{self, Skipped};
use crate::rows::{self, Mutant};
use crate::search::Lacking;
use crate::setup::Mutation;
use crate::transfers::{self, Absent};
use InProduct::{None, Switch};
use seckill::faults::Mechanism;
use std::collections::BTreeSet;
use std::path::Path;

/// What the product has of a mutation.
#[derive(Clone, Copy)]
pub enum InProduct {
    /// A switch, and the test that finds the harm while it is on.
    Switch(Mechanism, Option<&'static str>),
    /// No switch, because of this.
    None(&'static str),
}

const fn caught(mechanism: Mechanism, test: &'static str) -> InProduct {
    Switch(mechanism, Some(test))
}

/// Without a test that notices it.
const fn open(mechanism: Mechanism) -> InProduct {
    Switch(mechanism, Option::None)
}

const PROTOCOL: &[(Mutation, InProduct)] = &[
    (Mutation::AckBeforeConfirm, caught(Mechanism::ConfirmFirst, "an_entry_deleted_before_its_confirm_is_lost")),
    (
        Mutation::NoAutoclaim,
        caught(Mechanism::TakeOver, "entries_of_a_dead_relay_stay_for_ever_when_no_relay_takes_over_or_reads_its_own"),
    ),
    (Mutation::DlqAfterDelete, caught(Mechanism::ParkAtomic, "an_entry_parked_in_two_steps_is_lost_between_them")),
    (Mutation::NotMandatory, caught(Mechanism::Mandatory, "without_mandatory_what_no_queue_takes_is_lost")),
    (Mutation::AckBeforeCommit, caught(Mechanism::AckAfterCommit, "an_ack_before_the_commit_loses_an_order")),
    (Mutation::NoOutcomeKey, open(Mechanism::OutcomeKey)),
    (
        Mutation::DeadLetterAtMostOnce,
        caught(Mechanism::DeadLetterAtLeastOnce, "a_retry_whose_queue_is_gone_is_dropped_without_at_least_once"),
    ),
    (
        Mutation::DlqGivesStockBack,
        caught(Mechanism::NoGiveBack, "giving_parked_units_back_is_what_the_audit_would_find"),
    ),
    (
        Mutation::ScriptNotIdempotent,
        caught(Mechanism::ReplayCheck, "without_the_replay_check_one_purchase_takes_two_units"),
    ),
    (Mutation::DelConsumer, open(Mechanism::EmptyNames)),
    (Mutation::NoFence, caught(Mechanism::BootFence, "without_the_boot_fence_a_rewound_sale_sells_on")),
    (
        Mutation::BuyerTakenIsSuccess,
        caught(Mechanism::OwnOutcome, "any_duplicate_key_taken_for_success_loses_a_request"),
    ),
    (
        Mutation::RefusalNotRecorded,
        caught(Mechanism::RecordedRefusal, "a_refusal_that_is_not_recorded_loses_a_request"),
    ),
    (Mutation::RebuildInFlight, open(Mechanism::NothingOnItsWay)),
    (Mutation::NoQuietTime, open(Mechanism::QuietTime)),
    (Mutation::FailedIsOverruled, open(Mechanism::FailedIsFinal)),
    (Mutation::HalfTransaction, caught(Mechanism::Rollback, "a_half_transaction_that_is_committed_breaks_the_sheet")),
    (Mutation::ConflictIsKept, open(Mechanism::ReusedNumberFails)),
    (Mutation::AckWithFirstOrder, open(Mechanism::AckAfterLastOrder)),
    (Mutation::FirstOrderIsParked, open(Mechanism::ParkEachOrder)),
    (Mutation::GrantNotKept, caught(Mechanism::GrantOnce, "a_grant_that_redis_takes_twice_shows_in_the_books")),
    (Mutation::ReclaimNotMarked, open(Mechanism::ReclaimMarks)),
    (Mutation::GrantIntoFrozen, open(Mechanism::GrantNotFrozen)),
    (Mutation::SnapshotSplit, open(Mechanism::OneSnapshot)),
    (Mutation::SnapshotOfAnyEpoch, open(Mechanism::SnapshotEpoch)),
    (Mutation::JudgedBeforeEpoch, open(Mechanism::EpochBeforeJudging)),
    (Mutation::BeginReplacesAny, open(Mechanism::JudgedKeys)),
    (Mutation::GrantsAreSummed, open(Mechanism::GrantsByName)),
    (Mutation::MarksNotCompared, open(Mechanism::MarksCompared)),
    (Mutation::RebuildReusesEpoch, open(Mechanism::OwnEpoch)),
    (Mutation::GrantIdsForgotten, open(Mechanism::GrantIds)),
    (Mutation::EpochAfterList, open(Mechanism::EpochBeforeList)),
    (Mutation::ReclaimAll, open(Mechanism::ReclaimWithUnit)),
    (Mutation::OldFailuresLost, open(Mechanism::FailuresOfAllEpochs)),
    (
        Mutation::NoUnitBridge,
        caught(Mechanism::UnitBridge, "without_the_bridge_units_that_only_redis_has_are_not_reported"),
    ),
    (
        Mutation::NoNumberEquation,
        caught(Mechanism::NumberEquation, "without_the_numbers_a_lost_request_of_an_epoch_that_ended_is_not_reported"),
    ),
    (Mutation::CancelledNotAbove, open(Mechanism::CancelledAbove)),
    (Mutation::ReclaimedNotAbove, open(Mechanism::ReclaimedAbove)),
    (Mutation::WriteOffTwice, open(Mechanism::GapsHeld)),
    (
        Mutation::ClosedGapIsFree,
        None(
            "landing does not know which numbers are closed: a late message of a closed number becomes an order, and the bridge of the audit shows its unit if that was offered again",
        ),
    ),
    (Mutation::DlqNotCounted, open(Mechanism::DeadLettersCount)),
    (Mutation::EpochsNotCompared, open(Mechanism::EpochsCompared)),
];

const ORDERS: &[(Skipped, InProduct)] = &[
    (Skipped::StateCondition, open(Mechanism::ExpiryState)),
    (Skipped::DeadlineCondition, open(Mechanism::ExpiryDeadline)),
    (Skipped::ReturnInTransaction, open(Mechanism::ReturnWithExpiry)),
    (Skipped::GrantName, caught(Mechanism::GrantOnce, "a_grant_that_redis_takes_twice_shows_in_the_books")),
    (Skipped::OthersGive, open(Mechanism::OthersGive)),
    (Skipped::RebuildMarks, open(Mechanism::RebuildMarks)),
    (Skipped::LateMoneyRefused, open(Mechanism::LateMoneyRefused)),
    (Skipped::RefundRecorded, open(Mechanism::RefundRecorded)),
    (Skipped::PaymentId, open(Mechanism::PaymentId)),
    (Skipped::PaidWithItsRow, open(Mechanism::PaidWithItsRow)),
    (Skipped::CancelRefunds, open(Mechanism::CancelRefunds)),
    (Skipped::AmountCompared, open(Mechanism::AmountCompared)),
];

const TRANSFERS: &[(Absent, InProduct)] = &[
    (Absent::PairsInFence, open(Mechanism::PairsInFence)),
    (Absent::EachPairByItself, open(Mechanism::EachPair)),
    (Absent::Sums, open(Mechanism::TransferSums)),
    (Absent::GivenRecordsLeftOut, open(Mechanism::GivenRecords)),
    (Absent::RecordsAreFinished, open(Mechanism::RecordsFinished)),
    (Absent::GivenOnce, open(Mechanism::GivenOnce)),
    (Absent::UnitsRemembered, open(Mechanism::UnitsRemembered)),
    (Absent::Record, open(Mechanism::TransferRecord)),
    (Absent::ForgetsThatRecord, open(Mechanism::ThatRecord)),
    (Absent::EpochOfGift, open(Mechanism::EpochOfGift)),
    (Absent::TakeReplicated, open(Mechanism::TakeReplicated)),
    (Absent::GiftReplicated, open(Mechanism::GiftReplicated)),
];

/// A row of the models that leaves a mechanism out, as the product has it.
struct Row {
    name: &'static str,
    in_product: Option<InProduct>,
}

fn find<M: PartialEq>(table: &[(M, InProduct)], wanted: &M) -> Option<InProduct> {
    table.iter().find(|(mutation, _)| mutation == wanted).map(|(_, in_product)| *in_product)
}

/// Every mutation of the three models. What is left out by a setting of a server or of the model's size is none of the product.
fn all() -> Vec<Row> {
    let protocol = rows::mutants().into_iter().filter_map(|Mutant { name, setup, .. }| {
        let mutation = setup.mutation?;
        Some(Row { name, in_product: find(PROTOCOL, &mutation) })
    });
    let orders = orders::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let lacking = setup.lacking?;
        Some(Row { name, in_product: find(ORDERS, &lacking) })
    });
    let transfers = transfers::without().into_iter().filter_map(|Lacking { name, setup, .. }| {
        let absent = setup.absent?;
        Some(Row { name, in_product: find(TRANSFERS, &absent) })
    });
    protocol.chain(orders).chain(transfers).collect()
}

const HEAD: &str = "
## Mutations of the product

What a row above leaves out of a model, a test build leaves out of the product: `FAILPOINTS=\"<switch>=return\"`
([`faults`](../src/faults.rs)). The test beside it finds the harm while the switch is on, and none while it is off;
what finds it is the audit, or what is in the servers in the end.

| left out | switch | noticed by |
|---|---|---|
";

/// The section of `docs/model.md`.
pub fn section() -> String {
    let mut text = HEAD.to_owned();
    for Row { name, in_product } in all() {
        let [switch, noticed] = match in_product {
            Some(Switch(mechanism, test)) => {
                [format!("`{}`", mechanism.code()), test.map_or_else(|| "–".to_owned(), |test| format!("`{test}`"))]
            }
            Some(None(reason)) => ["none".to_owned(), reason.to_owned()],
            Option::None => ["–".to_owned(), "–".to_owned()],
        };
        text.push_str(&format!("| {name} | {switch} | {noticed} |\n"));
    }
    text
}

#[test]
fn every_mutation_has_a_switch_in_the_product_or_a_reason() {
    let rows = all();
    let missing: Vec<_> = rows.iter().filter(|row| row.in_product.is_none()).map(|row| row.name).collect();
    assert!(missing.is_empty(), "neither a switch nor a reason: {missing:?}");
    assert_eq!(rows.len(), PROTOCOL.len() + ORDERS.len() + TRANSFERS.len(), "each has one row");
    let switched: BTreeSet<&str> = rows
        .iter()
        .filter_map(|row| match row.in_product? {
            Switch(mechanism, _) => Some(mechanism.code()),
            None(_) => Option::None,
        })
        .collect();
    let unused = Mechanism::ALL.iter().map(|mechanism| mechanism.code()).filter(|code| !switched.contains(code));
    eprintln!("no mutation of a model: {:?}", unused.collect::<Vec<_>>());
}

/// The names of all tests.
fn tests(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            tests(&entry, names);
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&entry).unwrap();
            let lines = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("fn "));
            names.extend(lines.filter_map(|line| Some(line.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn every_test_that_notices_a_mutation_exists() {
    let mut known = BTreeSet::new();
    tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut known);
    for Row { name, in_product } in all() {
        if let Some(Switch(_, Some(test))) = in_product {
            assert!(known.contains(test), "{name}: there is no test {test}");
        }
    }
}
