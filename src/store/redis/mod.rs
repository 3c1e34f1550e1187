//! Redis: the only importer of `fred`. Scripts and keys, typed; nothing here decides about a sale.
//!
//! One pipelined connection serves all tasks of a process (a pool brings nothing). No command is ever sent twice by itself:
//! `max_command_attempts` is 1, because a connection lost after a script ran would otherwise run it again.

mod buyers;
mod cached;
mod client;
mod fault;
mod health;
mod keys;
mod lag;
mod ledger;
mod locate;
mod node;
mod nodes;
mod orphans;
mod outbox;
mod outbox_list;
mod outbox_stream;
mod packed;
mod parked;
mod rates;
mod rebuild;
mod replicas;
mod reserve;
mod rights;
mod room;
mod router;
mod sale_keys;
mod scripts;
mod transfers;
mod walk;

pub use buyers::Buyer;
pub use cached::{CachedSale, SoldOutMark};
pub use client::RedisStore;
pub use fault::RedisFault;
pub use health::{Life, Setting, Weight};
pub use keys::Keys;
pub use lag::Progressed;
pub use ledger::LedgerPage;
pub use nodes::{HeldLease, NodeLease};
pub use orphans::OrphanPage;
pub use outbox::{Entry, GROUP, TakenOver};
pub use parked::{ParkedEntry, Parking};
pub use rebuild::{DecidedRecord, Replaceable};
pub use reserve::ReservedGroup;
pub use room::{RoomDoor, RoomPlace};
pub use sale_keys::{Activation, Granted, Meta, ShardCount, Trimmed};
pub use transfers::{Bucket, Given, Taken, Transfer};
pub use walk::{Lying, WalkPage};
