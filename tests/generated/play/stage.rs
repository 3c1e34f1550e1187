//! The servers that paths are played on, and the sale of one path: made for it, and nothing of it is left for the next one.

use super::consumers::ConsumerHand;
use super::fence_of;
use super::leaders::LeaderHand;
use super::people::GivingHand;
use super::reading::SeenEntry;
use super::relays::RelayHand;
use crate::setup::Setup;
use crate::state::{CONSUMERS, PAIR, REQUESTS};
use crate::support::basics::resp::{RawRedis, Reply};
use crate::support::processes::own_redis;
use crate::support::world::World;
use crate::support::world::fault_injection::channel;
use amqprs::channel::{Channel, QueuePurgeArguments};
use amqprs::connection::Connection;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::dev::Server;
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::message::OrderMessage;
use seckill::domain::policy::{PurchasePolicy, Quantity};
use seckill::domain::request::Purchase;
use seckill::domain::sale::Sale;
use seckill::p2_reserve::Fence;
use seckill::p5_reconcile::single_steps::SharedWatch;
use seckill::p5_reconcile::{ReconcileContext, SaleAudit};
use seckill::store::rabbit::{Publisher, Topology};
use std::collections::BTreeMap;

/// Retry queues give nothing back by themselves: a path says when a message expires.
const SET: [&str; 5] = [
    // A busy machine is no fault of the model.
    "mysql.connect_timeout_ms=20000",
    "p4_persist.retry_delay_ms=3600000",
    "p4_persist.retry_delay_max_ms=3600000",
    "p3_relay.attempts_max=2",
    "p4_persist.attempts_max=2",
];

/// Rows of orders of the sales in this table are refused, late or at once: a system error of the database.
const CURSES: &str = "CREATE TABLE curses (sale_id VARBINARY(64) NOT NULL, late TINYINT NOT NULL); \
    CREATE TRIGGER curse_late BEFORE UPDATE ON sales FOR EACH ROW \
      IF EXISTS (SELECT 1 FROM curses WHERE sale_id = NEW.sale_id AND late = 1) AND NEW.stock < OLD.stock \
        THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'; END IF; \
    CREATE TRIGGER curse_early BEFORE INSERT ON request_outcome FOR EACH ROW \
      IF EXISTS (SELECT 1 FROM curses WHERE sale_id = NEW.sale_id AND late = 0) \
        THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'; END IF";

/// The sale of one path.
pub struct Scene {
    pub sale: SaleId,
    /// Its requests are this one and those after it.
    first: u64,
    one_buyer: bool,
    /// Names of the grants, in the order of the model's places.
    pub grants: Vec<String>,
    /// What a crash of Redis leaves: every key and its value.
    pub durable: BTreeMap<String, Vec<u8>>,
    /// Audits whose repairs are to come, by request; and dead letters that a person is about to replay.
    pub audits: [Option<SaleAudit>; REQUESTS],
    pub replays: [Option<OrderMessage>; REQUESTS],
    /// The epoch of Redis' keys and the outbox, as they were read last.
    pub redis_epoch: u32,
    pub entries: Vec<SeenEntry>,
}

impl Scene {
    fn new(sale: SaleId, first: u64, one_buyer: bool) -> Self {
        Self {
            sale,
            first,
            one_buyer,
            grants: Vec::new(),
            durable: BTreeMap::new(),
            audits: Default::default(),
            replays: Default::default(),
            redis_epoch: 0,
            entries: Vec::new(),
        }
    }

    /// The id of a request, by its place in the model.
    pub fn request_id(&self, at: usize) -> RequestId {
        RequestId::new(self.first + at as u64).expect("a request id")
    }

    /// The place of a request in the model.
    pub fn place_of(&self, id: &str) -> Option<usize> {
        let id: u64 = id.parse().ok()?;
        usize::try_from(id.checked_sub(self.first)?).ok().filter(|at| *at < REQUESTS)
    }

    /// Who asks.
    pub fn buyer(&self, at: usize) -> UserId {
        let name = if self.one_buyer { "the one buyer".to_owned() } else { format!("buyer {at}") };
        UserId::parse(&name).expect("a user id")
    }

    /// What a buyer asks for.
    pub fn purchase(&self, at: usize) -> Purchase {
        Purchase {
            request_id: self.request_id(at),
            sale_id: self.sale.clone(),
            user_id: self.buyer(at),
            person: None,
            quantity: Quantity::ONE,
        }
    }
}

/// One set of servers, and who is at work on them.
pub struct Stage {
    pub world: World,
    pub redis: RawRedis,
    pub database: AsyncMysqlConnection,
    pub fence: Fence,
    pub context: ReconcileContext,
    pub topology: Topology,
    /// For what the test itself does at the broker.
    pub admin: Channel,
    pub orders_queue: String,
    pub retry_queue: String,
    pub dead_letters: String,
    pub relays: [RelayHand; PAIR],
    pub consumers: [ConsumerHand; CONSUMERS],
    pub leaders: [LeaderHand; PAIR],
    /// What they see of the retry queues.
    pub watch: SharedWatch,
    pub giver: Option<GivingHand>,
    /// Sends what is copied.
    pub sender: Option<Publisher>,
    pub scene: Scene,
    paths: u64,
    worker: u64,
    _broker: Connection,
    _server: Server,
}

impl Stage {
    /// A set of servers of its own: paths flush the scripts of Redis.
    pub async fn new(worker: u64) -> Self {
        let name = format!("generated{worker}");
        let server = own_redis::start(&name).await;
        let world = World::on_redis(&server.url(), &name, &[], &SET).await;
        let mut database = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.expect("mysql");
        database.batch_execute(CURSES).await.expect("triggers");
        let fence = fence_of(&world, 1);
        let topology = Topology::new(&world.servers.rabbit);
        let relays = [RelayHand::new(&world, 0).await, RelayHand::new(&world, 1).await];
        let consumers = [ConsumerHand::new(&world).await, ConsumerHand::new(&world).await];
        let (broker, admin) = channel(&world.servers.rabbit).await;
        Self {
            redis: RawRedis::of(&world).await,
            database,
            fence,
            context: world.reconcile_context(),
            orders_queue: topology.orders_queue(0),
            retry_queue: topology.retry_exchange(1),
            dead_letters: topology.dlq(),
            topology,
            admin,
            relays,
            consumers,
            leaders: Default::default(),
            watch: SharedWatch::default(),
            giver: None,
            sender: None,
            scene: Scene::new(SaleId::parse("none").expect("a sale id"), 1, false),
            paths: 0,
            worker,
            world,
            _broker: broker,
            _server: server,
        }
    }

    /// Clears away what the last path left, and opens a sale for the next one.
    pub async fn set_up(&mut self, setup: &Setup) {
        self.paths += 1;
        self.leaders = Default::default();
        self.giver = None;
        for relay in &mut self.relays {
            relay.forget();
        }
        for consumer in &mut self.consumers {
            consumer.throw_away().await;
        }
        self.empty_the_broker().await;
        self.redis.clear().await;
        let before = &self.scene.sale;
        let close = format!("UPDATE sales SET status = 'closed' WHERE sale_id = '{before}'; DELETE FROM curses");
        self.database.batch_execute(&close).await.expect("closed");
        let name = format!("path-{}", self.paths);
        let policy = if setup.one_buyer { Some(1) } else { None };
        let open = |sale: &mut Sale| sale.policy = PurchasePolicy::from_limit(policy);
        let sale = self.world.sale_with(&name, setup.stock.into(), open).await;
        let first = 1_000_000_000_000 + self.paths * 8 + self.worker * 1_000_000_000;
        self.scene = Scene::new(sale, first, setup.one_buyer);
        self.fence.pass(0).await.expect("the fence");
        self.sync().await;
    }

    /// Throws away every message.
    pub async fn empty_the_broker(&mut self) {
        for queue in [&self.orders_queue, &self.retry_queue, &self.dead_letters] {
            let purge = QueuePurgeArguments::new(queue);
            self.admin.queue_purge(purge).await.expect("purged");
        }
    }

    /// Notes what is durable from now on.
    pub async fn sync(&mut self) {
        self.scene.durable.clear();
        for (key, value) in self.redis.dump().await {
            if let Reply::Bytes(value) = value {
                self.scene.durable.insert(key, value);
            }
        }
    }

    /// Brings back what was durable, and nothing else.
    pub async fn rewind(&mut self) {
        self.redis.clear().await;
        for (key, value) in &self.scene.durable {
            let restored = self.redis.try_call(&[b"RESTORE", key.as_bytes(), b"0", value]).await;
            assert!(!matches!(restored, Reply::Error(_)), "{key}: {restored:?}");
        }
    }

    /// The scripts are gone, as after any restart.
    pub async fn forget_scripts(&mut self) {
        self.redis.call(&["SCRIPT", "FLUSH"]).await;
    }

    /// The sale as the database has it.
    pub async fn sale(&self) -> Sale {
        let sale = self.world.servers.rows.sales.get(&self.scene.sale).await.expect("the database");
        sale.expect("the sale")
    }
}
