//! Which searches about two sales are made, and what each is expected to find.

use super::setup::{NeighboursSetup, SharedFault, Unshared};
use crate::search::{Complete, Lacking};

const EVERY: &[SharedFault] =
    &[SharedFault::RedisForgets, SharedFault::SystemError, SharedFault::ConsumerDies, SharedFault::RowIsWrong];
const FORGOTTEN: &[SharedFault] = &[SharedFault::RedisForgets, SharedFault::SystemError, SharedFault::ConsumerDies];

const fn of(quiet: usize, busy: usize, faults: u8, kinds: &'static [SharedFault]) -> NeighboursSetup {
    NeighboursSetup { requests: [quiet, busy], faults, kinds, fast: false, absent: None }
}

const fn fast(setup: NeighboursSetup) -> NeighboursSetup {
    NeighboursSetup { fast: true, ..setup }
}

/// What every test run searches.
pub fn configurations() -> Vec<Complete<NeighboursSetup>> {
    let row = |name, setup, states_min, breaks| Complete { name, setup, states_min, breaks };
    vec![
        row("every fault", of(1, 1, 3, EVERY), 1_000, &[]),
        row("several requests of each", of(2, 1, 2, FORGOTTEN), 1_000, &[]),
        row(
            "a pause ends in the quiet time, or a message moves on twice in a search",
            fast(of(1, 0, 3, FORGOTTEN)),
            500,
            &[],
        ),
    ]
}

pub fn without() -> Vec<Lacking<NeighboursSetup>> {
    let row = |name, absent, setup: NeighboursSetup, breaks| {
        let setup = NeighboursSetup { absent: Some(absent), ..setup };
        Lacking { name, setup, breaks }
    };
    let both = of(1, 1, 2, EVERY);
    let alone = of(1, 0, 3, FORGOTTEN);
    vec![
        row("a rebuild waits for what is in a retry queue, whosever it is", Unshared::OwnMessagesOnly, both, &["N1"]),
        row(
            "the retry queues are searched, and not watched between the searches",
            Unshared::RetriesWatched,
            fast(alone),
            &["N2"],
        ),
        row("a rebuild without the quiet time", Unshared::QuietTime, alone, &["N2"]),
        row("a group meets a locked row as a whole", Unshared::LockedApart, both, &["N3"]),
        row("a group waits until the row is free", Unshared::LockedSentBack, both, &["N1"]),
        row("a sale that was found locked is not tried again", Unshared::LockForgotten, both, &["N1"]),
        row("a round ends with the first sale that fails", Unshared::RoundGoesOn, both, &["N1"]),
    ]
}
