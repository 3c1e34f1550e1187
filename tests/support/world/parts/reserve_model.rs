//! The reserve script as a few lines of Rust: what it must answer and leave behind.

use proptest::prelude::*;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::MetaState;
use seckill::domain::sale_door::SaleDoor;
use std::collections::HashMap;

/// One request of a group, by small numbers so that repeats happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Number of the request id.
    pub id: u64,
    /// Number of the buyer.
    pub user: u8,
    /// Units.
    pub quantity: u32,
}

impl Ask {
    /// Requests with an odd number come without a purchase token, every eighth is an offer of the line.
    pub fn by(self) -> SaleDoor {
        match self.id % 8 {
            0 => SaleDoor::Line,
            2 | 4 | 6 => SaleDoor::Token,
            _ => SaleDoor::Open,
        }
    }
}

/// One step of a sequence.
#[derive(Debug, Clone)]
pub enum Step {
    /// A group in one call, with the epoch the caller believes in.
    Group(Vec<Ask>, u32),
    /// A group as a rush has it, of more requests than an entry holds: all of different buyers for one unit, but for twins.
    Crowd(Vec<Ask>),
    /// An operator moves the sale.
    State(MetaState),
    /// An operator changes who may come in.
    Door(SaleDoor),
    /// Units are added.
    Grant(u32),
    /// Unsold units are taken off sale.
    Withdraw(u32),
    /// The relay removes this number of entries.
    Relay(usize),
    /// Somebody deletes every entry by hand.
    Emptied,
}

/// The sale as it must be.
#[derive(Debug)]
pub struct Model {
    /// 0: none.
    pub limit: u64,
    /// Outbox entries at which requests are refused.
    pub cap: usize,
    /// Units left.
    pub stock: u64,
    /// Units ever given.
    pub granted: u64,
    /// Newest acceptance number.
    pub number: u64,
    /// State.
    pub state: MetaState,
    /// Who may come in.
    pub door: SaleDoor,
    /// Entries waiting.
    pub outbox: usize,
    /// Units and first request of each buyer.
    pub buyers: HashMap<u8, (u64, u64)>,
    /// Request id → buyer, units, number.
    pub ledger: HashMap<u64, (u8, u32, u64)>,
    /// Whether limits count persons, of whom each has two accounts in a row. `buyers` are then by person.
    pub by_person: bool,
    /// The limit of its drop, and what buyers have in the drop's other sales; none: it is a plain sale.
    pub drop: Option<(u64, HashMap<u8, u64>)>,
}

/// The epoch of every sale here.
pub const EPOCH: u32 = 1;

impl Model {
    /// A fresh, open sale.
    pub fn new(limit: u64, cap: usize, stock: u64) -> Self {
        Self {
            limit,
            cap,
            stock,
            granted: stock,
            number: 0,
            state: MetaState::Open,
            door: SaleDoor::Open,
            outbox: 0,
            buyers: HashMap::new(),
            ledger: HashMap::new(),
            by_person: false,
            drop: None,
        }
    }

    /// The number under which a buyer's units count.
    pub const fn key(&self, user: u8) -> u8 {
        if self.by_person { user / 2 } else { user }
    }

    /// Decides one request; a group is its requests one after the other.
    pub fn decide(&mut self, ask: Ask, epoch: u32) -> Reserved {
        let units = u64::from(ask.quantity);
        if let Some(&(user, quantity, _)) = self.ledger.get(&ask.id) {
            let same = user == ask.user && quantity == ask.quantity;
            return if same { Reserved::Replayed } else { Reserved::Conflict };
        }
        match self.state {
            MetaState::Open if epoch != EPOCH => return Reserved::StaleEpoch,
            MetaState::Open => {}
            MetaState::Loaded | MetaState::Paused => return Reserved::Paused,
            MetaState::Closed => return Reserved::Closed,
            MetaState::Frozen => return Reserved::Frozen,
        }
        match self.door {
            SaleDoor::Token if ask.by() < SaleDoor::Token => return Reserved::TokenMissing,
            SaleDoor::Line if ask.by() < SaleDoor::Line => return Reserved::OnlyByLine,
            SaleDoor::Open | SaleDoor::Token | SaleDoor::Line => {}
        }
        let key = self.key(ask.user);
        let owned = self.buyers.get(&key).copied();
        let owned_units = owned.map_or(0, |(units, _)| units);
        if let (1, Some((_, first))) = (self.limit, owned) {
            return Reserved::DuplicateBuyer(super::script_model::request_id(first));
        }
        if self.limit > 0 && owned_units + units > self.limit {
            return Reserved::LimitExceeded(owned_units);
        }
        if let Some((limit, elsewhere)) = &self.drop {
            let owned = owned_units + elsewhere.get(&key).copied().unwrap_or(0);
            if owned + units > *limit {
                return Reserved::DropLimitExceeded(owned);
            }
        }
        if self.stock < units {
            return Reserved::Short(self.stock);
        }
        if self.outbox >= self.cap {
            return Reserved::Backlog;
        }
        self.number += 1;
        self.stock -= units;
        self.outbox += 1;
        self.buyers.insert(key, (owned_units + units, owned.map_or(ask.id, |(_, first)| first)));
        self.ledger.insert(ask.id, (ask.user, ask.quantity, self.number));
        Reserved::Accepted
    }
}

/// Buyers in a row; then one of them may come again, or another one with his request id, or he with another request.
fn crowd() -> impl Strategy<Value = Step> {
    let twin = proptest::option::weighted(0.5, (any::<proptest::sample::Index>(), any::<(bool, bool)>(), 200u64..210));
    (24u64..400, 0u8..250, 1u8..150, twin).prop_map(|(id, user, count, twin)| {
        let ask = |no: u8| Ask { id: id + u64::from(no), user: user.wrapping_add(no), quantity: 1 };
        let mut group: Vec<Ask> = (0..count).map(ask).collect();
        if let Some((at, (same_id, same_user), other)) = twin {
            let mut twin = group[at.index(group.len())];
            twin.id = if same_id { twin.id } else { other };
            twin.user = if same_user { twin.user } else { twin.user.wrapping_add(1) };
            group.push(twin);
        }
        Step::Crowd(group)
    })
}

/// One step of a sequence.
pub fn step() -> impl Strategy<Value = Step> {
    let ask = (0u64..24, 0u8..10, 1u32..5).prop_map(|(id, user, quantity)| Ask { id, user, quantity });
    let group = proptest::collection::vec(ask, 1..12);
    let epoch = prop_oneof![9 => Just(EPOCH), 1 => Just(EPOCH + 1)];
    let states = [MetaState::Open, MetaState::Paused, MetaState::Closed, MetaState::Frozen, MetaState::Loaded];
    prop_oneof![
        8 => (group, epoch).prop_map(|(group, epoch)| Step::Group(group, epoch)),
        4 => crowd(),
        1 => proptest::sample::select(states.to_vec()).prop_map(Step::State),
        1 => Just(Step::State(MetaState::Open)),
        2 => proptest::sample::select(vec![SaleDoor::Open, SaleDoor::Token, SaleDoor::Line]).prop_map(Step::Door),
        1 => (1u32..6).prop_map(Step::Grant),
        1 => (0u32..6).prop_map(Step::Withdraw),
        1 => (1usize..9).prop_map(Step::Relay),
        1 => Just(Step::Emptied),
    ]
}
