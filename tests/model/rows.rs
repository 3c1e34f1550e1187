//! Which searches are made, and what each is expected to find.

use crate::rows_of_the_books as books;
use crate::setup::{BROKER_TOO, Kind, Mutation as M, Setup, Sync, USUAL};
use Expected::{Breaks, Heals, NotThere};

/// A configuration as it is shipped, or under a setting that the guarantees name.
pub struct Configuration {
    pub name: &'static str,
    pub setup: Setup,
    /// A search that visits fewer states has not searched.
    pub states_min: usize,
    /// Laws that break here, as the guarantees say.
    pub breaks: &'static [&'static str],
    /// Situations that must be reached.
    pub sees: &'static [&'static [&'static str]],
}

/// One mechanism left out, or one setting that the guarantees need.
pub struct Mutant {
    pub name: &'static str,
    pub setup: Setup,
    /// The law it must break without P5.
    pub without_p5: Expected,
    /// The law it must break although P5 runs.
    pub with_p5: Expected,
}

/// What a mutation must do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Each of these laws, the most significant one last.
    Breaks(&'static [&'static str]),
    /// Everything holds: P5 heals it (defence in depth).
    Heals,
    /// What it mutates only happens with P5.
    NotThere,
}

const CUT_OFF: &[Kind] =
    &[Kind::ConsumerCutOff, Kind::ConsumerCrash, Kind::SystemError, Kind::UnknownCommit, Kind::DoubleClaim];
const REWIND: &[Kind] = &[Kind::RedisCrash, Kind::ConsumerCrash, Kind::ConfirmLost];
const WIPE: &[Kind] = &[Kind::RedisWiped, Kind::ConsumerCrash, Kind::ConfirmLost];

const ALL_ROUND: &[&str] = &[
    "compensated",
    "replay",
    "parked by a relay and ordered",
    "parked by a consumer and ordered",
    "both relays",
    "redelivered",
    "race with P5",
];

const SEVERAL: &[&str] = &["one order sent back", "one message, two dead letters"];
const IN_ONE_FAULT: &[&str] = &["compensated", "replay", "both relays", "redelivered", "race with P5"];
const WITHOUT_P5: &[&str] =
    &["replay", "parked by a relay and ordered", "parked by a consumer and ordered", "both relays", "redelivered"];
const AFTER_A_REWIND: &[&str] = &["frozen", "rebuilt", "redelivered"];

const fn with(setup: Setup, sync: Sync) -> Setup {
    Setup { sync, ..setup }
}

/// What every test run searches.
pub fn configurations() -> Vec<Configuration> {
    let of = |name, setup, states_min, breaks, sees| Configuration { name, setup, states_min, breaks, sees };
    let one_buyer = |setup| Setup { one_buyer: true, ..setup };
    let rewind = Setup::new(2, 1, 2, REWIND);
    let before_answer = with(rewind, Sync::BeforeAnswer);
    let every = "every mechanism, every fault";
    let mut rows = vec![
        of(every, Setup::new(1, 1, 3, BROKER_TOO), 60_000, &[], &[ALL_ROUND, &["failed for good"]]),
        of(every, Setup::new(2, 1, 2, BROKER_TOO), 18_000, &[], &[ALL_ROUND]),
        of(every, Setup::new(2, 2, 1, BROKER_TOO), 110_000, &[], &[IN_ONE_FAULT]),
        of(every, Setup::new(3, 1, 2, BROKER_TOO), 28_000, &[], &[ALL_ROUND]),
        of(
            "every fault but the broker's disk, P5 does not run",
            alone(Setup::new(2, 1, 3, USUAL)),
            50_000,
            &[],
            &[WITHOUT_P5],
        ),
        of("one buyer, one unit each", one_buyer(Setup::new(2, 2, 2, BROKER_TOO)), 18_000, &[], &[ALL_ROUND]),
        of("a consumer goes on without its connection", Setup::new(1, 1, 3, CUT_OFF), 1_000, &[], &[&["compensated"]]),
        of(
            "one buyer, Redis forgot who bought (window 21)",
            Setup { dedup_lost: true, ..one_buyer(Setup::new(2, 2, 1, BROKER_TOO)) },
            160_000,
            &[],
            &[IN_ONE_FAULT, &["failed for good"]],
        ),
        of("Redis behind the database, answers wait for the disk", before_answer, 34_000, &[], &[AFTER_A_REWIND]),
        of(
            "Redis behind the database, answers do not wait",
            with(rewind, Sync::Behind),
            32_000,
            &["P3", "P5"],
            &[AFTER_A_REWIND],
        ),
        of(
            "the same, answers wait, and no number shows it",
            Setup { blind_rewind: true, faults: 1, kinds: &[Kind::RedisCrash], ..before_answer },
            16_000,
            &["P4"],
            &[AFTER_A_REWIND],
        ),
        of("Redis emptied", Setup::new(2, 1, 2, WIPE), 2_500, &["P3", "P5"], &[&["rebuilt", "compensated"]]),
    ];
    let asked = "asked again while the message is on its way";
    rows.push(of(asked, asked_again(2), 1_000, &["P4", "P8"], &[&["two numbers"]]));
    rows.push(of("the same, one unit too few", asked_again(1), 200, &["P3", "P4"], &[]));
    let together = |setup| Setup { together: true, ..setup };
    let trimmed = Setup { trims: true, ..Setup::new(2, 2, 2, BROKER_TOO) };
    let entries = "an entry of several orders, every fault, records are trimmed";
    rows.push(of(entries, together(trimmed), 10_000, &[], &[ALL_ROUND, SEVERAL]));
    rows.push(of("the same, one unit too few", together(Setup::new(3, 2, 1, BROKER_TOO)), 1_000, &[], &[IN_ONE_FAULT]));
    rows.push(of(
        "an entry of several orders, P5 does not run",
        together(alone(Setup::new(2, 2, 3, USUAL))),
        10_000,
        &[],
        &[WITHOUT_P5, SEVERAL],
    ));
    rows.extend(books::configurations());
    rows
}

/// More of the same, for `make model`.
pub fn bigger() -> Vec<Configuration> {
    let row = |name, setup, sees| Configuration { name, setup, states_min: 100_000, breaks: &[], sees };
    let of = |setup| row("every mechanism, every fault", setup, &[IN_ONE_FAULT]);
    let mut rows = vec![
        of(Setup::new(2, 1, 3, BROKER_TOO)),
        of(Setup::new(3, 1, 3, BROKER_TOO)),
        of(Setup::new(3, 2, 1, BROKER_TOO)),
        of(Setup::new(2, 2, 2, BROKER_TOO)),
    ];
    rows.extend(books::bigger());
    rows
}

/// Redis forgets an accept that no number shows, and its buyer repeats it.
const fn asked_again(stock: i8) -> Setup {
    let crash = Setup::new(2, stock, 1, &[Kind::RedisCrash]);
    Setup { repeats: true, blind_rewind: true, short: true, ..with(crash, Sync::BeforeAnswer) }
}

fn alone(setup: Setup) -> Setup {
    Setup { reconcile: false, ..setup }
}

pub fn mutants() -> Vec<Mutant> {
    healed().into_iter().chain(beyond_p5()).chain(books::mutants()).collect()
}

fn mutant(name: &'static str, setup: Setup, without_p5: Expected, with_p5: Expected) -> Mutant {
    Mutant { name, setup, without_p5, with_p5 }
}

/// Lost or stuck on the way: the ledger knows the request still.
fn healed() -> Vec<Mutant> {
    let of = |name, faults, mutation, laws| {
        let setup = Setup { mutation: Some(mutation), ..Setup::new(1, 1, faults, USUAL) };
        mutant(name, setup, Breaks(laws), Heals)
    };
    let broker = Setup::new(1, 1, 1, &[Kind::BrokerLosesData]);
    let several = |name, faults, mutation, laws| {
        let setup = Setup { mutation: Some(mutation), together: true, ..Setup::new(2, 2, faults, USUAL) };
        mutant(name, setup, Breaks(laws), Heals)
    };
    vec![
        of("XACK before the confirm (49)", 2, M::AckBeforeConfirm, &["P3", "P5"]),
        of("no XAUTOCLAIM (27)", 2, M::NoAutoclaim, &["P5"]),
        of("relay DLQ written after XDEL (43)", 3, M::DlqAfterDelete, &["P3", "P5"]),
        of("publish without `mandatory` (36)", 2, M::NotMandatory, &["P3", "P5"]),
        of("`XGROUP DELCONSUMER` with pending entries (30)", 2, M::DelConsumer, &["P5"]),
        of("at-most-once dead-lettering (52)", 2, M::DeadLetterAtMostOnce, &["P3", "P5"]),
        of("ack before the commit (62)", 2, M::AckBeforeCommit, &["P3", "P5"]),
        several("a message is acknowledged with the first of its orders", 1, M::AckWithFirstOrder, &["P3", "P5"]),
        several("an entry is parked as one order", 2, M::FirstOrderIsParked, &["P3", "P5"]),
        mutant("no ledger, and the broker loses its disk (58, 85)", broker, Breaks(&["P3", "P5"]), Heals),
    ]
}

/// What no reconciler can make good.
fn beyond_p5() -> Vec<Mutant> {
    let of = |name, setup, mutation, without, with| {
        mutant(name, Setup { mutation: Some(mutation), ..setup }, without, Breaks(with))
    };
    let both = |name, setup, mutation, laws| of(name, setup, mutation, Breaks(laws), laws);
    let forgot_buyers = Setup { dedup_lost: true, one_buyer: true, ..Setup::new(2, 2, 0, USUAL) };
    let one_crash = with(Setup::new(2, 1, 1, &[Kind::RedisCrash]), Sync::Behind);
    vec![
        mutant("`appendfsync everysec` (13)", one_crash, Breaks(&["P3"]), Breaks(&["P3"])),
        both("no boot fence after a rewind (17)", one_crash, M::NoFence, &["P4"]),
        of(
            "rebuild while something is on its way (17)",
            Setup::new(2, 1, 1, WIPE),
            M::RebuildInFlight,
            NotThere,
            &["P4"],
        ),
        of("rebuild without the quiet time (17)", Setup::new(2, 1, 1, WIPE), M::NoQuietTime, NotThere, &["P4"]),
        of(
            "a request whose number was given twice stays parked",
            Setup { blind_rewind: true, ..with(Setup::new(2, 1, 1, &[Kind::RedisCrash]), Sync::BeforeAnswer) },
            M::ConflictIsKept,
            NotThere,
            &["P5", "P8"],
        ),
        of("a request's id is not searched under another number", asked_again(2), M::KeyedByNumber, NotThere, &["P2"]),
        of(
            "the number that a request is not decided under stays open",
            asked_again(2),
            M::SecondNumberStays,
            NotThere,
            &["P5"],
        ),
        both("the script does not know its requests (9)", Setup::new(1, 2, 1, USUAL), M::ScriptNotIdempotent, &["P4"]),
        both("a DLQ gives its stock back to Redis (90)", Setup::new(2, 1, 2, USUAL), M::DlqGivesStockBack, &["P4"]),
        both("no check of the outcome's key (63)", Setup::new(1, 2, 2, USUAL), M::NoOutcomeKey, &["P2"]),
        both("a late message overrules FAILED (75)", Setup::new(1, 1, 3, USUAL), M::FailedIsOverruled, &["P6"]),
        both("half a transaction is committed (67, 68)", Setup::new(1, 1, 1, USUAL), M::HalfTransaction, &["P1"]),
        // With P5 it never ends: the audit finds undecided what was acknowledged as decided, and lands it in vain.
        of(
            "the buyer's 1062 is taken for success (60)",
            forgot_buyers,
            M::BuyerTakenIsSuccess,
            Breaks(&["P3", "P5"]),
            &["P7"],
        ),
        of(
            "a refusal is acknowledged unrecorded (61)",
            forgot_buyers,
            M::RefusalNotRecorded,
            Breaks(&["P3", "P5"]),
            &["P7"],
        ),
    ]
}
