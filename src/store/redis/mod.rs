//! Redis: the only importer of `fred`. Scripts and keys, typed; nothing here decides about a sale.
//!
//! One pipelined connection serves all tasks of a process (a pool brings nothing). No command is ever sent twice by itself:
//! `max_command_attempts` is 1, because a connection lost after a script ran would otherwise run it again.

mod cached;
mod client;
mod health;
mod keys;
mod ledger;
mod nodes;
mod outbox;
mod parked;
mod rates;
mod rebuild;
mod reserve;
mod sale_keys;
mod scripts;

pub use cached::{CachedSale, SoldOutMark};
pub use client::{RedisFault, RedisStore};
pub use health::Setting;
pub use keys::Keys;
pub use ledger::LedgerPage;
pub use nodes::NodeLease;
pub use outbox::{Entry, GROUP};
pub use parked::ParkedEntry;
pub use rebuild::{DecidedRecord, RebuildBegin};
pub use sale_keys::{Activation, Granted, Meta, ShardCount, Trimmed};
