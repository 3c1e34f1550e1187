//! Which searches about two buckets are made, and what each is expected to find.

use super::setup::{Absent, TransferFault, TransfersSetup};
use crate::search::{Complete, Lacking};

const NO_FAIL_OVER: &[TransferFault] =
    &[TransferFault::MoverDies, TransferFault::CallIsLate, TransferFault::OperatorRebuilds];
const REPLACED: &[TransferFault] = &[TransferFault::FailsOver, TransferFault::MoverDies, TransferFault::CallIsLate];
const LATE: &[TransferFault] = &[TransferFault::FailsOver, TransferFault::CallIsLate];
const ONLY_REPLACED: &[TransferFault] = &[TransferFault::FailsOver];

const fn of(stock: i8, faults: u8, kinds: &'static [TransferFault]) -> TransfersSetup {
    TransfersSetup { stock, waits: false, calm: false, movers: 2, takes: 2, faults, kinds, absent: None }
}

const fn waits(setup: TransfersSetup) -> TransfersSetup {
    TransfersSetup { waits: true, ..setup }
}

const fn calm(setup: TransfersSetup) -> TransfersSetup {
    TransfersSetup { calm: true, ..setup }
}

const fn late() -> TransfersSetup {
    TransfersSetup { movers: 1, takes: 1, ..calm(of(2, 2, LATE)) }
}

/// What every test run searches.
pub fn configurations() -> Vec<Complete<TransfersSetup>> {
    let row = |name, setup, states_min, breaks| Complete { name, setup, states_min, breaks };
    vec![
        row("no server is replaced", of(2, 1, NO_FAIL_OVER), 10_000, &[]),
        row("writes wait for the replicas", waits(of(2, 2, REPLACED)), 10_000, &[]),
        row(
            "writes do not wait, a server is replaced between two transfers",
            calm(of(2, 1, ONLY_REPLACED)),
            10_000,
            &[],
        ),
        row("the same, a gift comes late", late(), 10_000, &["B1"]),
        row("writes do not wait, a server is replaced at any moment", of(2, 1, ONLY_REPLACED), 10_000, &["B1", "B5"]),
    ]
}

pub fn without() -> Vec<Lacking<TransfersSetup>> {
    let row = |name, absent, setup: TransfersSetup, breaks| {
        let setup = TransfersSetup { absent: Some(absent), ..setup };
        Lacking { name, setup, breaks }
    };
    let same = of(2, 1, NO_FAIL_OVER);
    let waiting = waits(of(2, 1, REPLACED));
    let between = calm(of(2, 1, ONLY_REPLACED));
    vec![
        row("fence and audit see only the sum of what is missing", Absent::EachPairByItself, between, &["B1", "B2"]),
        row("the audit compares pairs only", Absent::Sums, of(2, 1, ONLY_REPLACED), &["B2"]),
        row("the sums count records that were given", Absent::GivenRecordsLeftOut, same, &["B3"]),
        row("P5 gives no record that it finds", Absent::RecordsAreFinished, same, &["B4"]),
        row("the fence compares numbers only", Absent::PairsInFence, between, &["B1"]),
        row("a repeat gives again", Absent::GivenOnce, same, &["B3", "B1"]),
        row("a source keeps no record", Absent::Record, same, &["B3"]),
        row("whatever record is there is forgotten", Absent::ForgetsThatRecord, same, &["B3"]),
        row("a gift is taken in any epoch", Absent::EpochOfGift, same, &["B3", "B1"]),
        row("the units of the last gift are not remembered", Absent::UnitsRemembered, late(), &["B5"]),
        row("units are given before the replicas have the take", Absent::TakeReplicated, waiting, &["B3", "B1"]),
        row("a record is forgotten before the replicas have the gift", Absent::GiftReplicated, waiting, &["B3"]),
    ]
}
