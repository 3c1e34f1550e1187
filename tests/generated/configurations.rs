//! Which configurations of the model are played.

use crate::lines::LinesSetup;
use crate::lines::setup::{Kind as LineKind, LineFault};
use crate::operator::Act;
use crate::orders::OrdersSetup;
use crate::orders::setup::OrderFault;
use crate::setup::{BROKER_TOO, Kind, Setup, Sync};
use crate::transfers::TransfersSetup;
use crate::transfers::setup::TransferFault;

/// A configuration, and its part of the paths.
pub struct Configuration<M> {
    pub name: &'static str,
    pub model: M,
    /// Of a hundred paths.
    pub share: u64,
}

const GRANTS: &[Act] = &[Act::TopUp, Act::Cancel, Act::Reclaim];
const EMPTIED: &[Kind] = &[Kind::RedisWiped, Kind::GiverCrash, Kind::LeaderCrash];
const TWO_LEADERS: &[Kind] = &[Kind::RedisWiped, Kind::SecondLeader];
const BACKUP: &[Kind] = &[Kind::DatabaseGoesBack];
const PARKED_AND_EMPTIED: &[Kind] = &[Kind::SystemError, Kind::GiveUp, Kind::RedisWiped];
const DATABASE: &[Kind] = &[Kind::SystemError, Kind::UnknownCommit, Kind::ConsumerCrash, Kind::GiveUp];
const REWIND: &[Kind] = &[Kind::RedisCrash, Kind::ConsumerCrash, Kind::ConfirmLost];

/// With an operator who does two things, and a short way from the outbox to the database.
const fn books(requests: usize, stock: i8, faults: u8, kinds: &'static [Kind]) -> Setup {
    Setup { short: true, acts: GRANTS, acts_max: 2, ..Setup::new(requests, stock, faults, kinds) }
}

/// Any request of any relay and consumer, with two faults of any kind.
pub const EVERY_FAULT: Setup = Setup::new(2, 1, 2, BROKER_TOO);
/// One buyer gets in twice: what Redis does not know any more, the database refuses.
pub const FORGOT_BUYERS: Setup = Setup { dedup_lost: true, one_buyer: true, ..Setup::new(2, 2, 1, DATABASE) };
/// Redis loses what was not on disk, and the fence sees it.
pub const REWOUND: Setup = Setup { sync: Sync::BeforeAnswer, ..Setup::new(2, 1, 2, REWIND) };
/// Grants, and rebuilds in their steps.
pub const EMPTIED_BOOKS: Setup = books(2, 2, 2, EMPTIED);
/// One order, and everything that can happen to it.
pub const ONE_ORDER: OrdersSetup = shop(1, 1, (2, 2), 3, DEATHS);

/// Requests on their way, and the books.
pub fn of_the_protocol() -> Vec<Configuration<Setup>> {
    let of = |name, share, model| Configuration { name, model, share };
    let one_buyer = Setup { one_buyer: true, ..Setup::new(2, 2, 2, BROKER_TOO) };
    let together = Setup { together: true, trims: true, ..Setup::new(2, 2, 1, BROKER_TOO) };
    vec![
        of("relays and consumers, every fault", 12, EVERY_FAULT),
        of("one buyer, one unit each", 5, one_buyer),
        of("one buyer, Redis forgot who bought", 8, FORGOT_BUYERS),
        of("an entry of several orders, records are trimmed", 7, together),
        of("Redis behind, answers wait for the disk", 8, REWOUND),
        of("Redis emptied, givers and leaders die", 12, EMPTIED_BOOKS),
        of("two leaders rebuild", 6, books(1, 1, 2, TWO_LEADERS)),
        of("the database goes back to a backup", 6, Setup { trims: true, ..books(2, 1, 1, BACKUP) }),
        of("something is parked when Redis is emptied", 6, books(1, 1, 3, PARKED_AND_EMPTIED)),
    ]
}

const DEATHS: &[OrderFault] = &[OrderFault::ProcessDies, OrderFault::AnswerLost, OrderFault::ClockGoesBack];
const SHOP_EMPTIED: &[OrderFault] = &[OrderFault::RedisWiped, OrderFault::RebuildDies, OrderFault::ProcessDies];

const fn shop(
    buyers: usize,
    stock: i8,
    (money, acts): (u8, u8),
    faults: u8,
    kinds: &'static [OrderFault],
) -> OrdersSetup {
    OrdersSetup { buyers, stock, money, acts, faults, kinds, lacking: None }
}

/// Orders after CONFIRMED.
pub fn of_orders() -> Vec<Configuration<OrdersSetup>> {
    let of = |name, share, model| Configuration { name, model, share };
    vec![
        of("one order, everything about it", 10, ONE_ORDER),
        of("batches of two", 5, shop(2, 2, (1, 1), 1, DEATHS)),
        of("Redis emptied, its rebuild dies", 5, shop(2, 1, (1, 1), 2, SHOP_EMPTIED)),
    ]
}

const SLEEPS: &[LineFault] = &[LineFault::LeaderSleeps, LineFault::LeaderDies, LineFault::CallGivenUp];
const DOORS: &[LineFault] = &[LineFault::LeaderSleeps, LineFault::DoorForgotten, LineFault::CallGivenUp];
const FORGETS: &[LineFault] = &[LineFault::RedisForgets, LineFault::LeaderSleeps, LineFault::LeaderDies];

const fn raffle(wants: [u8; 3], faults: u8, kinds: &'static [LineFault]) -> LinesSetup {
    LinesSetup {
        kind: LineKind::Raffle,
        units: 1,
        wants,
        clicks: 1,
        limited: false,
        leaves: true,
        blocks: true,
        followers: 0,
        at_once: false,
        faults,
        kinds,
        absent: None,
    }
}

const fn waitlist(wants: [u8; 3], followers: usize, faults: u8, kinds: &'static [LineFault]) -> LinesSetup {
    LinesSetup { kind: LineKind::Waitlist, clicks: 2, followers, ..raffle(wants, faults, kinds) }
}

/// Units of a raffle go to two ranks, one after the other, by leaders that die and sleep.
pub const TWO_RANKS: LinesSetup = raffle([1, 1, 0], 2, SLEEPS);
/// The door of a waiting list, which others set, too, and Redis forgets.
pub const DOOR_OF_LIST: LinesSetup = waitlist([1, 0, 0], 2, 1, DOORS);
/// Redis forgets the sale, and what it had accepted.
pub const LINE_FORGOTTEN: LinesSetup = waitlist([1, 0, 0], 0, 2, FORGETS);
/// Two leaders choose the same units: one finds too few of them.
pub const SHORT_OF_UNITS: LinesSetup = LinesSetup { clicks: 0, blocks: false, ..TWO_RANKS };
/// One raffle's offer that Redis forgets.
pub const OFFER_FORGOTTEN: LinesSetup = raffle([1, 0, 0], 1, FORGETS);

/// The line of a sale.
pub fn of_lines() -> Vec<Configuration<LinesSetup>> {
    let of = |name, share, model| Configuration { name, model, share };
    let limited = LinesSetup { limited: true, units: 2, ..waitlist([1, 1, 0], 0, 2, SLEEPS) };
    vec![
        of("raffle: two ranks, leaders die and sleep", 6, TWO_RANKS),
        of("waitlist: two ranks, the door is forgotten", 5, waitlist([1, 1, 0], 0, 2, DOORS)),
        of("waitlist: others set the door", 5, DOOR_OF_LIST),
        of("waitlist: who has clicked enters", 4, limited),
        of("waitlist: Redis forgets the sale", 5, LINE_FORGOTTEN),
        of("raffle: Redis forgets an offer", 3, OFFER_FORGOTTEN),
    ]
}

const REPLACED: &[TransferFault] = &[TransferFault::FailsOver, TransferFault::MoverDies, TransferFault::CallIsLate];

/// Transfers between two buckets.
pub fn of_transfers() -> Vec<Configuration<TransfersSetup>> {
    let of = |name, share, model| Configuration { name, model, share };
    let setup = |waits, calm, faults, kinds| TransfersSetup {
        stock: 2,
        waits,
        calm,
        movers: 2,
        takes: 2,
        faults,
        kinds,
        absent: None,
    };
    vec![
        of("writes wait for the replicas", 6, setup(true, false, 2, REPLACED)),
        of("a server is replaced at any moment", 4, setup(false, false, 1, &[TransferFault::FailsOver])),
    ]
}
