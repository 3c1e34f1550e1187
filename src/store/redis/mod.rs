//! Redis: the only importer of `fred`. Scripts and keys, typed; nothing here decides about a sale.
//!
//! Layers, each knowing only those before it: `connection` (servers, no keys), `scripts` (SHA-1 and NOSCRIPT, no routing),
//! `keyspace` (both, with the names of the keys), and one handle a family of keys. A phase is given the handles it may touch.
//!
//! One call, for example a purchase: `Stock::reserve` → `ReserveScripts::call` (picks server and script, builds the command) →
//! `Node::send` → fred.

mod boot_fence;
mod buyers;
mod connection;
mod forgotten;
mod health;
mod keys;
mod keyspace;
mod leases;
mod ledger;
mod outbox;
mod rates;
mod rebuild;
mod replica_health;
mod rights;
mod rooms;
mod sale_cache;
mod sale_ids;
mod sale_keys;
mod sale_states;
mod scripts;
mod stock;
mod terms;
mod transfers;
mod withdrawals;
mod write_health;

pub(crate) use boot_fence::BootFence;
pub use buyers::{Buyer, Buyers};
pub use connection::RedisFault;
pub(crate) use forgotten::{BuyerKeys, RenamedBuyer};
pub(crate) use health::{RedisHealth, Setting, Weight};
pub use keys::Keys;
pub use keyspace::GROUP;
pub use leases::LeaseTime;
pub(crate) use leases::{HeldLease, NodeLease, NodeLeases};
pub(crate) use ledger::{Progressed, RequestLedger};
pub use outbox::TakenOver;
pub use outbox::{LocatedEntry, Outbox, OutboxEntry, PageFrom, ParkReason, ParkedOrder, Parking, RelayDlq, SentEntry};
pub(crate) use outbox::{OrphanPage, ParkedEntry};
pub(crate) use rates::RateBuckets;
pub(crate) use rebuild::{DecidedRecord, RebuildKeys, Replaceable};
pub use rooms::RoomPlace;
pub(crate) use rooms::RoomQueue;
pub use sale_cache::SoldOutMark;
pub(crate) use sale_cache::{CachedSale, SaleCache};
pub use sale_keys::{Activation, Granted, Meta, Trimmed};
pub(crate) use sale_keys::{SaleKeys, ShardCount};
pub(crate) use stock::ReservedGroup;
pub use stock::{DoorsOfGroup, Stock};
pub use terms::ReadAt;
pub use transfers::{Between, Bucket, Given, Taken, Transfer, Transfers};
pub use withdrawals::Withdrawn;
pub(crate) use write_health::WriteStops;

use crate::config::Redis;
use crate::store::tls::Trust;
use fred::types::Value;
use keyspace::Keyspace;
use std::sync::Arc;
use std::time::Duration;

/// Every handle on one Redis, for the roles, the commands and the tests. The handles share the connections. A phase is given
/// those handles that it works with, never this bundle.
#[derive(Clone)]
pub struct RedisStore {
    /// The units of a sale.
    pub stock: Stock,
    /// A sale's keys as a whole.
    pub sale_keys: SaleKeys,
    /// The cached sale.
    pub sale_cache: SaleCache,
    /// The buyers of a sale and their units.
    pub buyers: Buyers,
    /// The ledger of accepted requests.
    pub ledger: RequestLedger,
    /// Accepted requests that are not sent yet.
    pub outbox: Outbox,
    /// Entries that the relay gave up.
    pub relay_dlq: RelayDlq,
    /// Units between two shards.
    pub transfers: Transfers,
    /// Keys under reconstruction.
    pub rebuild: RebuildKeys,
    /// The order in waiting rooms.
    pub rooms: RoomQueue,
    /// Buyers' token buckets.
    pub rates: RateBuckets,
    /// Where a buyer who is forgotten is named.
    pub(crate) forgotten: BuyerKeys,
    /// Node ids for request ids.
    pub leases: NodeLeases,
    /// Settings, versions and rights of the servers.
    pub health: RedisHealth,
    /// The fence that a restarted server has to pass.
    pub boot_fence: BootFence,
    /// The keys of this system.
    pub keys: Keys,
    keyspace: Arc<Keyspace>,
}

impl RedisStore {
    /// Starts connecting and returns at once; connections are rebuilt for as long as a handle lives. With `trust` they are
    /// encrypted.
    ///
    /// # Errors
    /// [`RedisFault::Refused`] when `redis.url` cannot be used at all.
    pub fn start(settings: &Redis, trust: Option<&Trust>) -> Result<Self, RedisFault> {
        let keyspace = Keyspace::start(settings, trust)?;
        let redis = || keyspace.clone();
        Ok(Self {
            stock: Stock { redis: redis() },
            sale_keys: SaleKeys { redis: redis() },
            sale_cache: SaleCache { redis: redis() },
            buyers: Buyers { redis: redis() },
            ledger: RequestLedger { redis: redis() },
            outbox: Outbox { redis: redis() },
            relay_dlq: RelayDlq { redis: redis() },
            transfers: Transfers { redis: redis() },
            rebuild: RebuildKeys { redis: redis() },
            rooms: RoomQueue { redis: redis() },
            rates: RateBuckets { redis: redis() },
            forgotten: BuyerKeys { redis: redis() },
            leases: NodeLeases { redis: redis() },
            health: RedisHealth { redis: redis(), durability: settings.durability },
            boot_fence: BootFence { redis: redis() },
            keys: keyspace.keys.clone(),
            keyspace,
        })
    }

    /// Waits for the first connection to every server that has data, at most `deadline`; whether there is any.
    pub async fn wait_connected(&self, deadline: Duration) -> bool {
        self.keyspace.connection.wait_connected(deadline).await
    }

    /// Closes the connections after what was sent is answered.
    pub async fn quit(&self) {
        self.keyspace.connection.quit().await;
    }

    /// Shards by the server they are on at the moment; those whose server is not known stand together.
    #[must_use]
    pub(crate) fn shards_by_server(&self) -> Vec<Vec<u16>> {
        self.keyspace.shards_by_server()
    }

    /// Every server that has data, and its shards.
    #[must_use]
    pub fn servers(&self) -> Vec<(String, Vec<u16>)> {
        let keyspace = &self.keyspace;
        let has = |node: &Arc<connection::Node>, shard: &u16| {
            keyspace.node_of_shard(*shard).is_ok_and(|of| Arc::ptr_eq(&of, node))
        };
        let nodes = keyspace.connection.primaries();
        nodes
            .iter()
            .map(|node| (node.address.clone(), (0..keyspace.shards).filter(|shard| has(node, shard)).collect()))
            .collect()
    }

    /// Sends one command to the server of its key. `key_at` is the position of the key among the arguments. For baselines of
    /// the benchmark; the product has a handle for everything it does.
    pub async fn command(&self, name: &'static str, key_at: usize, args: Vec<Value>) -> Result<Value, RedisFault> {
        self.keyspace.command(name, key_at, args).await
    }

    /// Sends one command to every server that has data. Returns their answers.
    /// After an error the servers before the failed one have run the command.
    pub async fn command_on_every_server(&self, name: &'static str, args: &[Value]) -> Result<Vec<Value>, RedisFault> {
        let mut answers = Vec::new();
        for node in self.keyspace.connection.primaries() {
            answers.push(node.command(name, args.to_vec()).await?);
        }
        Ok(answers)
    }
}
