//! What the model remembers: for each request where it is at rest and who has it in hand, and the totals of Redis and the
//! database. Small on purpose: a search keeps millions of these.

use crate::books::{Books, Decided, GRANTS, SavedRequest};
use seckill::domain::states::{P3Relay, RequestEvent, State as Journey};

/// Requests that fit into a state; a setup may use fewer.
pub const REQUESTS: usize = 3;
/// Relays, and leaders.
pub const PAIR: usize = 2;
/// Deliveries of one message that consumers may hold beside each other; a connection that breaks gives each of its own to another one.
pub const CONSUMERS: usize = crate::CONSUMERS_MAX;
/// Tries of an entry by the relays, and of a message by the consumers, that fit into a state; a setup may use fewer.
pub const ATTEMPTS_MAX: u8 = crate::TRIES_MAX;
/// Bits of [`Request::outcome`]. Two rows cannot be there together; a mutation without the key shows why.
pub const ORDER: u8 = 1;
pub const FAILED: u8 = 2;

/// Published, and what comes next is the database's.
pub const SENT: Journey = Journey::P3(P3Relay::SentOk);

/// What the buyer knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answered {
    /// This setup has no such request.
    #[default]
    Absent,
    Nothing,
    /// 504: ask again with the same token.
    Unknown,
    /// Accepted and not answered yet: the answer waits until the accept is durable.
    Waiting,
    /// 202.
    Accepted,
    /// Sold out, or the buyer has bought.
    Refused,
}

/// The outbox entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    #[default]
    None,
    New,
    /// In the pending list of this relay.
    Pending(u8),
    /// Read once and in no pending list: what `XGROUP DELCONSUMER` leaves.
    Orphan,
}

/// What Redis keeps of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kept {
    /// Epoch of the ledger record, 0 without one.
    pub ledger: u8,
    pub entry: Entry,
    pub attempts: u8,
    /// An entry in the relay DLQ.
    pub parked: bool,
    /// Epoch of a settled record that is only counted any more, 0 without one.
    pub trimmed: u8,
}

/// An entry in a relay's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hand {
    #[default]
    None,
    Ready,
    /// Sent, the broker has it, its confirm is on the way.
    Sent,
    /// Sent, and lost on the way.
    Unsent,
    Confirmed,
    Failed,
    /// Attempts are spent, to be parked.
    Spent,
    /// Mutation: deleted from the outbox, not yet in the DLQ.
    Deleted,
}

/// How far a consumer is with its delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    #[default]
    None,
    Received,
    /// The database has its outcome, the ack is due.
    Decided,
    /// To be copied to the retry queue, then acknowledged.
    Retry,
    /// To be copied to the MQ DLQ, then acknowledged.
    Park,
    /// The broker confirmed the copy, the ack is due.
    Copied,
}

/// A delivery in a consumer's hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delivery {
    pub stage: Stage,
    pub attempts: u8,
    /// Its connection is gone, and the message waits again; its consumer does not know that yet.
    pub is_cut_off: bool,
}

/// One request, everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    pub answered: Answered,
    /// A script call that no process waits for any more and that may still run.
    pub late: bool,
    /// Epoch and acceptance number, as in the message.
    pub epoch: u8,
    pub number: u8,
    /// Where an entry has several orders (those of a stream do): the number of its first one; 0 where it has one.
    pub entry_of: u8,
    pub kept: Kept,
    /// What a crash of Redis leaves, where that is not everything.
    pub durable: Kept,
    pub hand: [Hand; PAIR],
    /// Messages in the order queue by the attempts in their header.
    pub queue: [u8; ATTEMPTS_MAX as usize],
    /// Copies that wait for their next try, by its attempts.
    pub retry: [u8; ATTEMPTS_MAX as usize],
    pub mq_dlq: bool,
    pub consumer: [Delivery; CONSUMERS],
    /// The audit found it undecided and will land it.
    pub audited: bool,
    /// Another place has the same request under another number.
    pub repeated: bool,
    pub outcome: u8,
    pub orders: u8,
    pub decided: Decided,
    /// What a backup of the database has of it.
    pub saved: SavedRequest,
    /// Where the domain's transition table says it is.
    pub journey: Option<Journey>,
}

impl Request {
    /// Moves the journey by the domain's table. `false`: the table says this must not happen.
    #[must_use]
    pub fn happened(&mut self, event: RequestEvent) -> bool {
        let Some(from) = self.journey else { return false };
        let to = from.after(event);
        self.journey = Some(to.unwrap_or(from));
        to.is_ok()
    }

    /// Whether either DLQ has it.
    pub fn is_parked(&self) -> bool {
        self.kept.parked || self.mq_dlq
    }

    /// Whether a relay or a consumer has it in hand, or P5 is about to land it.
    pub fn in_hand(&self) -> bool {
        self.hand != [Hand::None; PAIR] || self.consumer != [Delivery::default(); CONSUMERS] || self.audited
    }

    /// Whether a copy of it is in a retry queue.
    pub fn waits_for_a_retry(&self) -> bool {
        self.retry != [0; ATTEMPTS_MAX as usize]
    }

    /// Whether the broker has a message of it that waits in a queue.
    pub fn is_queued(&self) -> bool {
        self.queue != [0; ATTEMPTS_MAX as usize] || self.waits_for_a_retry()
    }

    /// Whether it was accepted and anything at all is left of that.
    pub fn survives(&self) -> bool {
        let in_redis = self.kept.ledger > 0 || self.kept.entry != Entry::None;
        self.outcome > 0 || in_redis || self.is_parked() || self.is_queued() || self.in_hand()
    }
}

/// Whether Redis sells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sale {
    #[default]
    Open,
    Frozen,
    /// Its keys are gone.
    Missing,
}

/// What Redis keeps of the sale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Meta {
    pub sale: Sale,
    pub epoch: u8,
    pub number: u8,
    pub stock: i8,
    /// Units that this epoch's keys were given: the sum of `grants`.
    pub granted: i8,
    /// Grants whose id is in `grants`, as bits.
    pub ids: u8,
    /// How often the units of each grant are in what the keys were given. No process knows this; a law needs it.
    pub offered: [u8; GRANTS],
    /// Begun by a rebuild and not opened.
    pub building: bool,
}

/// The whole system at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub requests: [Request; REQUESTS],
    pub meta: Meta,
    pub durable: Meta,
    /// Whether Redis has the reserve script.
    pub script_loaded: bool,
    pub relay_lives: [bool; PAIR],
    pub db_stock: i8,
    pub db_epoch: u8,
    pub faults_left: u8,
    /// Something happened that the transition table forbids.
    pub illegal: bool,
    pub books: Books,
}

impl World {
    pub fn note(&mut self, request: usize, event: RequestEvent) {
        self.illegal |= !self.requests[request].happened(event);
    }

    /// Whether two requests are orders of one entry. An entry, and the message made of it, has one fate.
    pub fn share_entry(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.requests[one], &self.requests[other]);
        one.entry_of > 0 && (one.epoch, one.entry_of) == (other.epoch, other.entry_of)
    }

    /// Whether this is the one that stands for all orders of its entry.
    pub fn leads_entry(&self, at: usize) -> bool {
        (0..at).all(|before| !self.share_entry(before, at))
    }

    /// All orders of the entry of this one.
    pub fn orders_of_entry(&self, at: usize) -> Vec<usize> {
        (0..REQUESTS).filter(|other| *other == at || self.share_entry(*other, at)).collect()
    }

    /// The highest acceptance number of the current epoch that the database decided.
    pub fn highest_number(&self) -> u8 {
        let decided = self.requests.iter().filter(|r| r.holds_number() && r.epoch == self.db_epoch);
        decided.map(|r| r.number).max().unwrap_or(0)
    }

    /// Whether somebody else's outcome, or a closed gap, holds this one's acceptance number: a unique key of the database.
    pub fn number_is_taken(&self, request: usize) -> bool {
        let mine = &self.requests[request];
        let others = self.requests.iter().enumerate().filter(|(at, r)| *at != request && r.holds_number());
        let by_another = others.into_iter().any(|(_, r)| (r.epoch, r.number) == (mine.epoch, mine.number));
        mine.number > 0 && by_another
    }

    /// The same world with relays, consumers and requests in one fixed order: nothing distinguishes the two relays but what
    /// they hold, so a search need not visit both orders.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        let relay = |k: usize| {
            let of = |r: &Request| {
                let pending = |entry| u64::from(entry == Entry::Pending(index(k)));
                (1 << (3 * r.hand[k] as u64)) + (pending(r.kept.entry) << 40) + (pending(r.durable.entry) << 44)
            };
            self.requests.iter().map(of).sum::<u64>() + (u64::from(self.relay_lives[k]) << 48)
        };
        let consumer = |k: usize| {
            let weight = |d: Delivery| 1_u64 << (3 * (2 * d.stage as u64 + u64::from(d.attempts)));
            self.requests.iter().map(|r| weight(r.consumer[k])).sum::<u64>()
        };
        let (swap_relays, swap_consumers) = (relay(0) > relay(1), consumer(0) > consumer(1));
        for request in &mut self.requests {
            if swap_relays {
                request.hand.swap(0, 1);
                request.kept.entry = other_owner(request.kept.entry);
                request.durable.entry = other_owner(request.durable.entry);
            }
            if swap_consumers {
                request.consumer.swap(0, 1);
            }
        }
        if swap_relays {
            self.relay_lives.swap(0, 1);
        }
        self.requests.sort_unstable();
        self.books.leaders.sort_unstable();
        self
    }
}

fn other_owner(entry: Entry) -> Entry {
    if let Entry::Pending(owner) = entry { Entry::Pending(1 - owner) } else { entry }
}

/// An index as it is stored.
pub fn index(at: usize) -> u8 {
    u8::try_from(at).unwrap_or(u8::MAX)
}
