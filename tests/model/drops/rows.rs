//! Which searches about a drop are made, and what each is expected to find.

use super::setup::{DropFault, DropsSetup, Unlimited, Wish};
use crate::search::{Complete, Lacking};

const EVERY: &[DropFault] = &[DropFault::RedisRewinds, DropFault::KeyIsLost, DropFault::MessageIsParked];
const LOSSES: &[DropFault] = &[DropFault::RedisRewinds, DropFault::KeyIsLost];

const A: Option<Wish> = Some(Wish { sale: 0, account: 0 });
const B: Option<Wish> = Some(Wish { sale: 1, account: 0 });
/// By another account of the person.
const ALSO_B: Option<Wish> = Some(Wish { sale: 1, account: 1 });

const fn of(wishes: [Option<Wish>; 3], limit: u8, faults: u8, kinds: &'static [DropFault]) -> DropsSetup {
    DropsSetup { wishes, limit, returns: false, closes: false, faults, kinds, absent: None }
}

const fn returning(setup: DropsSetup) -> DropsSetup {
    DropsSetup { returns: true, ..setup }
}

const fn closing(setup: DropsSetup) -> DropsSetup {
    DropsSetup { closes: true, ..setup }
}

/// What every test run searches.
pub fn configurations() -> Vec<Complete<DropsSetup>> {
    let row = |name, setup, states_min, breaks| Complete { name, setup, states_min, breaks };
    vec![
        row("every fault", of([A, B, ALSO_B], 1, 3, EVERY), 1_000, &[]),
        row("two units each", of([A, A, B], 2, 2, EVERY), 1_000, &[]),
        row("orders are cancelled, and give back to the limits", returning(of([A, B, None], 1, 2, EVERY)), 500, &[]),
        row("the drop is closed and archived", closing(of([A, B, None], 1, 2, EVERY)), 500, &[]),
    ]
}

pub fn without() -> Vec<Lacking<DropsSetup>> {
    let row = |name, absent, setup: DropsSetup, breaks| {
        let setup = DropsSetup { absent: Some(absent), ..setup };
        Lacking { name, setup, breaks }
    };
    let calm = of([A, B, None], 1, 0, EVERY);
    let lossy = of([A, B, None], 1, 1, LOSSES);
    vec![
        row("the script counts its own sale only", Unlimited::OthersCounted, calm, &["D2"]),
        row(
            "the script does not see that the other sale is frozen",
            Unlimited::OthersState,
            of([A, B, None], 1, 1, LOSSES),
            &["D2"],
        ),
        row("the script takes a lost buyers hash for an empty one", Unlimited::OthersMark, lossy, &["D2"]),
        row(
            "the order's transaction counts its own sale only",
            Unlimited::DropGuard,
            of([A, B, None], 1, 2, EVERY),
            &["D1"],
        ),
        row("a rebuild does not wait for what is on its way", Unlimited::RebuildWaits, lossy, &["D2"]),
        row("a returned order gives nothing back to the drop", Unlimited::ReturnsToDrop, returning(calm), &["D3"]),
        row("a sale is closed by itself", Unlimited::ClosedTogether, closing(of([A, B, None], 1, 1, LOSSES)), &["D4"]),
        row(
            "limits count accounts instead of persons",
            Unlimited::PersonCounted,
            of([A, ALSO_B, None], 1, 0, EVERY),
            &["D1"],
        ),
    ]
}
