//! One moment of a drop with two sales.

use super::setup::{DropsSetup, Wish};

pub const SALES: usize = 2;
/// Requests that fit into a state.
pub const REQUESTS: usize = 3;
/// What limits may count: a person, or each account.
pub const KEYS: usize = 2;

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// Not accepted yet.
    #[default]
    Nowhere,
    Outbox,
    Queue,
    Parked,
    Ordered,
    /// Its order is cancelled, and Redis has not given its units back yet.
    Returning,
    Returned,
    Refused,
    /// Accepted, and gone with what Redis lost.
    Lost,
}

impl Place {
    /// Whether it may still become an order by itself.
    pub fn is_on_its_way(self) -> bool {
        matches!(self, Self::Outbox | Self::Queue)
    }
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requested {
    pub place: Place,
    /// It was in the MQ DLQ: a rebuild may have opened its sale without it.
    pub was_parked: bool,
}

/// What the keys of a sale say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sells {
    Open,
    Frozen,
    /// A rebuild has begun; nothing is loaded.
    Begun,
    Loaded,
    Closed,
    Archived,
}

/// A sale in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SaleKeys {
    pub sells: Sells,
    /// The buyers hash is there.
    pub has_buyers: bool,
    /// Units by what the limit counts.
    pub owned: [u8; KEYS],
}

/// What a restart of Redis may bring back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saved {
    pub sales: [SaleKeys; SALES],
    pub in_outbox: [bool; REQUESTS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DropMoment {
    pub requests: [Requested; REQUESTS],
    pub sales: [SaleKeys; SALES],
    pub saved: Option<Saved>,
    /// By the database: it is closed.
    pub is_over: [bool; SALES],
    /// `drop_purchases` by what the limit counts.
    pub noted: [u8; KEYS],
    pub faults_left: u8,
    /// The script accepted a request whose buyer had the drop's limit.
    pub over: bool,
    /// The script refused because another sale of the drop was frozen.
    pub waited: bool,
    /// The database refused what Redis had accepted.
    pub guarded: bool,
    /// A request was accepted after an order in the other sale was returned.
    pub bought_again: bool,
}

impl DropMoment {
    pub fn start(setup: &DropsSetup) -> Self {
        Self {
            requests: [Requested::default(); REQUESTS],
            sales: [SaleKeys { sells: Sells::Open, has_buyers: true, owned: [0; KEYS] }; SALES],
            saved: None,
            is_over: [false; SALES],
            noted: [0; KEYS],
            faults_left: setup.faults,
            over: false,
            waited: false,
            guarded: false,
            bought_again: false,
        }
    }

    /// The requests of a search with their wishes.
    pub fn wished<'a>(&'a self, setup: &'a DropsSetup) -> impl Iterator<Item = (Wish, &'a Requested)> {
        setup.wishes.iter().zip(&self.requests).filter_map(|(wish, request)| Some(((*wish)?, request)))
    }

    /// Units of the person that are orders now.
    pub fn ordered(&self) -> u8 {
        self.requests.iter().map(|request| u8::from(request.place == Place::Ordered)).sum()
    }

    /// Orders of one sale, or of both, that count against this key.
    pub fn ordered_of(&self, setup: &DropsSetup, sale: Option<usize>, key: usize) -> u8 {
        let counts = |(wish, request): &(Wish, &Requested)| {
            request.place == Place::Ordered
                && setup.key(wish.account) == key
                && sale.is_none_or(|sale| sale == wish.sale)
        };
        self.wished(setup).filter(counts).map(|_| 1).sum()
    }

    /// Units of this key in Redis, over both sales.
    pub fn owned(&self, key: usize) -> u8 {
        self.sales.iter().map(|sale| sale.owned[key]).sum()
    }
}
