//! One moment of two sales whose messages share an order queue and a retry queue.

use super::setup::NeighboursSetup;

/// The sales: the one that is rebuilt, and the one whose row another session holds.
pub const QUIET: usize = 0;
pub const BUSY: usize = 1;
pub const SALES: usize = 2;
/// Requests of each that fit into a state.
pub const REQUESTS: usize = 2;
pub const CONSUMERS: u8 = 2;
/// Tries of a message before it is parked.
pub const ATTEMPTS_MAX: u8 = 2;

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// This setup has no such request, or it is not accepted yet.
    #[default]
    Nowhere,
    Outbox,
    Queue,
    /// In the group of a consumer.
    Hand(u8),
    Retry,
    Parked,
    Decided,
}

impl Place {
    /// Whether it may still become an order by itself.
    pub fn is_on_its_way(self) -> bool {
        matches!(self, Self::Outbox | Self::Queue | Self::Hand(..) | Self::Retry)
    }
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bought {
    pub place: Place,
    pub attempts: u8,
    /// Its buyer may still buy.
    pub is_wanted: bool,
    /// The ledger has it.
    pub is_known: bool,
    /// It has moved since this search of the queues began.
    pub has_moved: bool,
    /// It was in the order queue or in a hand when the quiet time of the rebuild began, and has not been sent back since.
    pub is_old: bool,
    /// It came into a retry queue since the rebuild made its first check.
    pub came_back: bool,
}

/// What the writers of a process know of the busy sale's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lock {
    #[default]
    Unknown,
    /// Found locked a moment ago: its orders are sent back untried.
    LeftAlone,
    /// The moment is over: the next call tries it, apart from the others.
    ToBeTried,
}

/// What a rebuild finds out, in this order; all of it once more after the quiet time. A message that leaves a retry queue is in the
/// order queue next, which is counted later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    Ledger,
    Outbox,
    OrderQueue,
    RetryQueue,
    Quiet,
    Opens,
}

pub const CHECKS: [Check; 10] = [
    Check::Ledger,
    Check::Outbox,
    Check::RetryQueue,
    Check::OrderQueue,
    Check::Quiet,
    Check::Ledger,
    Check::Outbox,
    Check::RetryQueue,
    Check::OrderQueue,
    Check::Opens,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    pub requests: [[Bought; REQUESTS]; SALES],
    /// The quiet sale sells.
    pub is_open: bool,
    /// The check that its rebuild makes next.
    pub check: u8,
    /// Another session holds the row of the busy sale.
    pub is_locked: bool,
    pub lock: Lock,
    pub row_is_wrong: bool,
    pub faults_left: u8,
    /// The quiet sale was opened while something of it was on its way.
    pub opened_early: bool,
    /// A request of the quiet sale has lost a try through the busy one.
    pub blamed: bool,
    pub rebuilt: bool,
}

impl Shared {
    pub fn start(setup: &NeighboursSetup) -> Self {
        let mut requests = [[Bought::default(); REQUESTS]; SALES];
        for (of_sale, count) in requests.iter_mut().zip(setup.requests) {
            of_sale.iter_mut().take(count).for_each(|request| request.is_wanted = true);
        }
        Self {
            requests,
            is_open: true,
            check: 0,
            is_locked: false,
            lock: Lock::Unknown,
            row_is_wrong: false,
            faults_left: setup.faults,
            opened_early: false,
            blamed: false,
            rebuilt: false,
        }
    }

    /// Which request of a sale is which does not matter, nor which consumer.
    pub fn in_order(mut self) -> Self {
        let mut mirrored = self;
        for request in mirrored.requests.iter_mut().flatten() {
            if let Place::Hand(consumer) = request.place {
                request.place = Place::Hand(1 - consumer);
            }
        }
        self.requests.iter_mut().for_each(|of_sale| of_sale.sort_unstable());
        mirrored.requests.iter_mut().for_each(|of_sale| of_sale.sort_unstable());
        if mirrored.requests < self.requests { mirrored } else { self }
    }

    pub fn of(&self, sale: usize) -> impl Iterator<Item = &Bought> {
        self.requests[sale].iter()
    }

    pub fn all(&self) -> impl Iterator<Item = &Bought> {
        self.requests.iter().flatten()
    }

    /// Orders in a consumer's group.
    pub fn group(&self, consumer: u8) -> impl Iterator<Item = (usize, &Bought)> {
        let held = move |request: &Bought| request.place == Place::Hand(consumer);
        let of_sale = move |sale: usize| self.of(sale).filter(move |one| held(one)).map(move |one| (sale, one));
        (0..SALES).flat_map(of_sale)
    }
}
