//! Searches about the books: grants, cancels, reclaims, write-offs, the rebuild in its steps, and a database that goes back.

use crate::operator::Act;
use crate::rows::Expected::{Breaks, NotThere};
use crate::rows::{Configuration, Mutant};
use crate::setup::{Kind, Mutation as M, Setup, Sync};

const GRANTS: &[Act] = &[Act::TopUp, Act::Cancel, Act::Reclaim];
const GAPS: &[Act] = &[Act::WriteOff, Act::Reclaim];

const PARKED: &[Kind] = &[Kind::SystemError, Kind::GiveUp];
const EMPTIED: &[Kind] = &[Kind::RedisWiped, Kind::GiverCrash, Kind::LeaderCrash];
const TWO_LEADERS: &[Kind] = &[Kind::RedisWiped, Kind::SecondLeader];
const PARKED_AND_EMPTIED: &[Kind] = &[Kind::SystemError, Kind::GiveUp, Kind::RedisWiped];
const BACKUP: &[Kind] = &[Kind::DatabaseGoesBack];
const BACKUP_AND_EMPTIED: &[Kind] = &[Kind::DatabaseGoesBack, Kind::RedisWiped];

const OLD_COUNT: &[&str] = &["old count", "sold again"];
const REBUILT: &[&str] = &["rebuilt", "grant in a rebuild", "sold again"];
const TWICE: &[&str] = &["rebuilt twice"];
const FINDING: &[&str] = &["lost and seen"];

/// With an operator who does two things.
const fn books(requests: usize, stock: i8, faults: u8, kinds: &'static [Kind]) -> Setup {
    Setup { short: true, acts: GRANTS, acts_max: 2, ..Setup::new(requests, stock, faults, kinds) }
}

/// One buyer gets in more than once: all but the first request fail, and have taken a unit.
const fn one_buyer(setup: Setup) -> Setup {
    Setup { one_buyer: true, dedup_lost: true, ..setup }
}

/// An audit counts Redis some time before it reads the database.
const fn audited(setup: Setup) -> Setup {
    Setup { counts: true, ..setup }
}

const fn with_gaps(setup: Setup) -> Setup {
    Setup { acts: GAPS, ..setup }
}

const fn goes_back(requests: usize, stock: i8, faults: u8, kinds: &'static [Kind]) -> Setup {
    Setup { trims: true, ..books(requests, stock, faults, kinds) }
}

const fn behind(requests: usize) -> Setup {
    Setup { sync: Sync::Behind, ..books(requests, 1, 1, &[Kind::RedisCrash]) }
}

/// What every test run searches.
pub fn configurations() -> Vec<Configuration> {
    let of = |name, setup, states_min, breaks, sees| Configuration { name, setup, states_min, breaks, sees };
    let emptied = "books: Redis emptied, givers and leaders die";
    let back = "books: the database goes back to a backup";
    vec![
        of("books: audited while buyers buy", audited(books(3, 1, 2, PARKED)), 35_000, &[], &[OLD_COUNT]),
        of(
            "books: the same, failures that took a unit",
            audited(one_buyer(books(3, 2, 0, PARKED))),
            13_000,
            &[],
            &[OLD_COUNT],
        ),
        of(emptied, books(2, 2, 2, EMPTIED), 50_000, &["P3", "P5"], &[REBUILT, TWICE, FINDING]),
        of(
            "books: the same, failures that took a unit",
            one_buyer(books(2, 2, 2, EMPTIED)),
            60_000,
            &["P3", "P5"],
            &[REBUILT, TWICE, FINDING],
        ),
        of(
            "books: the same, audited while buyers buy",
            audited(books(2, 1, 1, EMPTIED)),
            17_000,
            &["P3", "P5"],
            &[REBUILT, OLD_COUNT],
        ),
        of("books: two leaders rebuild", books(1, 1, 2, TWO_LEADERS), 34_000, &["P3", "P5"], &[REBUILT, TWICE]),
        of(
            "books: something is parked when Redis is emptied",
            books(1, 1, 3, PARKED_AND_EMPTIED),
            26_000,
            &["P3", "P5"],
            &[REBUILT],
        ),
        of("books: gaps are closed", with_gaps(books(3, 2, 1, EMPTIED)), 500, &["P3", "P5"], &[&["rebuilt"], FINDING]),
        of(back, goes_back(2, 1, 1, BACKUP), 23_000, &["P3", "P4", "P5"], &[FINDING, &["compensated"]]),
        of(back, goes_back(2, 2, 1, BACKUP), 30_000, &["P3", "P5"], &[FINDING, &["compensated"]]),
        of("books: Redis behind, answers do not wait", behind(2), 30_000, &["P3", "P5", "P10"], &[REBUILT, FINDING]),
    ]
}

/// More of the same, for `make model`.
pub fn bigger() -> Vec<Configuration> {
    let of = |name, setup, breaks| Configuration { name, setup, states_min: 100_000, breaks, sees: &[] };
    vec![
        of("books: audited while buyers buy", audited(books(3, 2, 3, PARKED)), &[]),
        of("books: Redis emptied, givers and leaders die", books(3, 2, 2, EMPTIED), &["P3", "P5"]),
        of("books: the same, audited while buyers buy", audited(books(2, 2, 2, EMPTIED)), &["P3", "P5"]),
        of("books: two leaders rebuild", books(2, 1, 3, TWO_LEADERS), &["P3", "P5"]),
        of("books: something is parked when Redis is emptied", books(2, 1, 3, PARKED_AND_EMPTIED), &["P3", "P5"]),
        of("books: both servers lose data", goes_back(2, 1, 2, BACKUP_AND_EMPTIED), &["P3", "P4", "P5"]),
    ]
}

pub fn mutants() -> Vec<Mutant> {
    let of = |name, setup, mutation, laws| {
        let setup = Setup { mutation: Some(mutation), ..setup };
        Mutant { name, setup, without_p5: NotThere, with_p5: Breaks(laws) }
    };
    let emptied = books(1, 1, 2, EMPTIED);
    let leaders = books(1, 1, 2, TWO_LEADERS);
    let wiped_twice = Setup { acts_max: 0, ..books(1, 1, 3, TWO_LEADERS) };
    let back = goes_back(2, 1, 1, BACKUP);
    let gaps = with_gaps(books(3, 2, 1, EMPTIED));
    let counted = audited(books(2, 1, 2, PARKED));
    vec![
        of("`grant.lua` does not keep ids", books(2, 0, 1, EMPTIED), M::GrantNotKept, &["P10", "P11"]),
        of("a reclaim does not mark its failures", books(1, 1, 2, PARKED), M::ReclaimNotMarked, &["P9"]),
        of("`grant.lua` gives into frozen keys", emptied, M::GrantIntoFrozen, &["P10"]),
        of("a rebuild reads its units, and marks the grants later", emptied, M::SnapshotSplit, &["P10"]),
        of("ids of grants are not written into new keys", emptied, M::GrantIdsForgotten, &["P10"]),
        of("a rebuild goes on in a dead attempt's epoch", emptied, M::RebuildReusesEpoch, &["P10"]),
        of("a giver reads the epoch after the list", emptied, M::EpochAfterList, &["P10"]),
        of("an overtaken rebuild takes its snapshot", leaders, M::SnapshotOfAnyEpoch, &["P10"]),
        of("a rebuild takes its epoch after it judged", wiped_twice, M::JudgedBeforeEpoch, &["P9"]),
        of("a rebuild replaces keys that it did not judge", leaders, M::BeginReplacesAny, &["P9"]),
        of("the epochs of an open sale are not compared", leaders, M::EpochsNotCompared, &["P10"]),
        of("a rebuild does not wait for the MQ DLQ", books(1, 1, 2, PARKED_AND_EMPTIED), M::DlqNotCounted, &["P9"]),
        of("SOLD_OUT failures are reclaimed too", back, M::ReclaimAll, &["P9"]),
        of(
            "old epochs' failures are neither in X nor reclaimed",
            audited(one_buyer(books(2, 2, 1, EMPTIED))),
            M::OldFailuresLost,
            &["P13"],
        ),
        of("no bridge in the audit", back, M::NoUnitBridge, &["P12"]),
        of("P is a difference of sums", back, M::GrantsAreSummed, &["P12"]),
        of("marked grants are not compared with Redis", behind(1), M::MarksNotCompared, &["P12"]),
        of("no search for gaps", gaps, M::NoNumberEquation, &["P12"]),
        of("cancelled orders above the count are not added", counted, M::CancelledNotAbove, &["P13"]),
        of("reclaimed failures above the count are not taken away", counted, M::ReclaimedNotAbove, &["P13"]),
        of("a gap that a rebuild has made good is held back", gaps, M::WriteOffTwice, &["P9"]),
        of("a closed gap leaves its number free", gaps, M::ClosedGapIsFree, &["P9"]),
    ]
}
