//! What a test does past the product: raw commands to the three servers, roles started and killed one by one, crowds.
//!
//! Faults and acts of operators are made here, never by the code under test.

use super::World;
use super::shared_servers::is_shared_redis;
use crate::support::basics::raw_commands::try_redis;
pub use crate::support::basics::raw_commands::try_sql;
use crate::support::basics::resp::spares_the_others;
use crate::support::basics::time::eventually;
pub use crate::support::links::{port_of, through};
pub use crate::support::processes::breakable_servers::{breakable_servers, consumer_timeout};
use amqprs::channel::{
    Channel, ExchangeDeleteArguments, QueueDeclareArguments, QueueDeleteArguments, QueuePurgeArguments,
    QueueUnbindArguments,
};
use amqprs::connection::{Connection, OpenConnectionArguments};
use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use seckill::config::Settings;
use seckill::dev::PrivateServers;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::{self, ApiOptions, Role, RoleError};
use seckill::runtime::Stopper;
use seckill::store::rabbit::{
    Confirms, Outgoing, PublishEvent, PublishResult, PublishRoute, Publisher, QueueDepth, RabbitConfig, RabbitError,
    Topology, queue_depths,
};
use seckill_bench::loadgen::{self, LoadPlan, LoadReport};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A trigger that refuses the orders of the buyer `cursed`: a system error of one row.
pub const REFUSING_TRIGGER: &str = "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW \
    IF NEW.user_id = 'cursed' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'; END IF";

/// Runs an Erlang expression in the broker that has to say `ok`.
pub async fn run_in_broker(servers: &PrivateServers, program: &str) {
    let answer = servers.ask_broker(program).await.expect("an answer");
    assert!(answer.contains("{ok, ok}"), "{program}: {answer}");
}

/// Raises or lifts the broker's memory alarm: with it no publisher is read from.
pub async fn memory_alarm(servers: &PrivateServers, on: bool) {
    let mark = if on { "{absolute, 1}" } else { "0.4" };
    run_in_broker(servers, &format!("vm_memory_monitor:set_vm_memory_high_watermark({mark}).\n")).await;
}

/// Roles that run beside those of the world.
pub struct ExtraRoles {
    stopper: Stopper,
    task: Option<JoinHandle<Result<(), RoleError>>>,
}

/// A test that failed leaves none behind.
impl Drop for ExtraRoles {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

impl ExtraRoles {
    /// Stops them in order.
    pub async fn stop(mut self) {
        self.stopper.stop();
        let task = self.task.take().expect("they were running");
        task.await.expect("roles end").expect("roles end well");
    }

    /// Drops them where they stand: nothing is drained.
    pub async fn kill(mut self) {
        let task = self.task.take().expect("they were running");
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()), "they were running");
    }
}

impl World {
    /// A world on the breakable servers, with `name` as database, virtual host and prefix.
    pub async fn on_breakable(servers: &PrivateServers, name: &str, roles: &[Role], set: &[&str]) -> Self {
        servers.add_vhost(name).await.expect("a virtual host");
        let urls = servers.urls();
        let amqp = urls.amqp_url.replace("%2f", name);
        let mysql = urls.mysql_url.replace("/seckill", &format!("/{name}"));
        Self::on((&urls.redis_url, &amqp, &mysql), name, roles, set).await
    }

    /// Starts roles beside the running ones, on settings that `change` may change.
    pub fn extra_roles(&self, roles: &[Role], change: impl FnOnce(&mut Settings)) -> ExtraRoles {
        let mut settings = (*self.settings).clone();
        change(&mut settings);
        let stopper = Stopper::new();
        let running = roles::start(&Arc::new(settings), roles, ApiOptions::default(), &stopper).expect("roles start");
        ExtraRoles { stopper, task: Some(tokio::spawn(running.until_stopped(Duration::from_secs(10)))) }
    }

    /// Sends one command to Redis past the store, and returns its answer as JSON.
    pub async fn redis(&self, command: &[&str]) -> Value {
        let url = self.settings.redis.url.expose();
        spares_the_others(is_shared_redis(url), &command.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        redis(url, command).await
    }

    /// Runs SQL statements past the store.
    pub async fn sql(&self, statements: &str) {
        sql(self.settings.mysql.url.expose(), statements).await;
    }

    /// The whole number that a query selects as `n`.
    pub async fn number(&self, query: &str) -> i64 {
        let mut connection = AsyncMysqlConnection::establish(self.settings.mysql.url.expose()).await.expect("mysql");
        // A test may have made the server refuse what examines more than a few rows.
        connection.batch_execute("SET SESSION sql_big_selects = 1").await.expect("mysql");
        diesel::sql_query(query).get_result::<Number>(&mut connection).await.expect(query).n
    }

    /// How many rows of `table` match.
    pub async fn rows(&self, table: &str, matching: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) AS n FROM {table} WHERE {matching}")).await
    }

    /// An order without a request, taken from the stock like any other.
    pub async fn foreign_order(&self, sale: &SaleId, user: &str, request_id: u64) {
        // It has a unit and an outcome of its own, from before Redis had the sale: the books are right with it.
        let row = format!("SELECT {request_id}, '{sale}'");
        self.sql(&format!(
            "BEGIN; INSERT INTO request_outcome (request_id, sale_id, kind, shard, epoch, number, payload_hash) \
             {row}, 'ORDER', 0, 0, COUNT(*) + 1, REPEAT('x', 16) FROM request_outcome WHERE sale_id = '{sale}' AND epoch = 0; \
             INSERT INTO orders (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at) \
             {row}, '{user}', '{user}', 1, 100, 'replay', UTC_TIMESTAMP(3); \
             UPDATE sales SET granted = granted + 1 WHERE sale_id = '{sale}'; \
             INSERT INTO stock_flow (sale_id, delta, kind, orders_count, ref) VALUES \
             ('{sale}', 1, 'grant', 0, 'foreign-{request_id}'), ('{sale}', -1, 'order', 1, '{request_id}'); \
             COMMIT"
        ))
        .await;
    }

    /// Length of the outbox and its pending entries.
    pub async fn outbox(&self) -> (u64, u64) {
        self.servers.redis.outbox.depth(0).await.expect("redis")
    }

    /// Messages that wait in a queue of this world. The roles declare the queues one after another: waits for the last of them.
    pub async fn waiting_in(&self, queue: &str) -> u64 {
        let mut depths: Vec<QueueDepth> = Vec::new();
        eventually("all queues are declared", async || match queue_depths(&self.servers.rabbit).await {
            Err(RabbitError::NoQueue { .. }) => false,
            counted => {
                depths = counted.expect("queues");
                true
            }
        })
        .await;
        depths.iter().filter(|depth| depth.queue.starts_with(queue)).map(|depth| depth.ready).sum()
    }

    /// Publishes bodies to the order queue past the relay, and waits until the broker has them.
    pub async fn publish(&self, bodies: &[Vec<u8>]) {
        let mut publisher = Publisher::connect(&self.servers.rabbit).await.expect("a publisher");
        let mut confirms = Confirms::new();
        let exchange = Topology::new(&self.servers.rabbit).orders_exchange();
        for body in bodies {
            let tag = publisher
                .publish(Outgoing::new(PublishRoute { exchange: &exchange, key: "0" }, "by hand", body.clone()))
                .await
                .expect("sent");
            confirms.sent(tag, (), Instant::now());
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while !confirms.is_empty() {
            let event = publisher.next_event(deadline).await.expect("an answer in time");
            assert!(!matches!(event, PublishEvent::Closed(_)), "{event:?}");
            assert!(confirms.apply(event).iter().all(|(_, verdict)| *verdict == PublishResult::Confirmed));
        }
    }

    /// A plan for buyers of this world; they buy as fast as they are answered.
    pub fn crowd(&self, sale: &SaleId, buyers: u64) -> LoadPlan {
        let secret = self.settings.auth.secret.clone();
        LoadPlan { buyers, connections: 32, ..LoadPlan::new(self.api.clone(), sale.clone(), secret) }
    }

    /// Lets `buyers` buy one unit each, all of them successfully.
    pub async fn sell(&self, sale: &SaleId, buyers: u64) -> LoadReport {
        let report = loadgen::run(self.crowd(sale, buyers)).await.expect("a crowd");
        assert_eq!(report.accepted, buyers, "{:?}", report.by_status);
        report
    }

    /// Buys one unit and returns the request id.
    pub async fn bought(&self, sale: &SaleId, user: &str) -> RequestId {
        let answer = self.buy(sale, user, 1, None).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        RequestId::parse(&answer.text("request_id")).expect("a request id")
    }

    /// Orders of a sale.
    pub async fn orders(&self, sale: &SaleId) -> i64 {
        self.rows("orders", &format!("sale_id = '{sale}'")).await
    }

    /// Status and reason that the buyer gets now.
    pub async fn status_of(&self, sale: &SaleId, user: &str, request_id: RequestId) -> (String, String) {
        let answer = self.status(sale, user, &request_id.to_string(), 0).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        (answer.text("status"), answer.text("reason"))
    }
}

/// Sends one command that must succeed to the Redis at `url`, and returns its answer as JSON.
pub async fn redis(url: &str, command: &[&str]) -> Value {
    try_redis(url, command).await.unwrap_or_else(|error| panic!("redis: {error}"))
}

/// Runs SQL statements on the database at `url`.
pub async fn sql(url: &str, statements: &str) {
    try_sql(url, statements).await.expect(statements);
}

/// Declares the durable queue `kept`; passively, it has to be there.
pub async fn queue(amqp_url: &str, passive: bool) {
    let (connection, channel) = channel(&RabbitConfig::new(amqp_url)).await;
    let mut queue = QueueDeclareArguments::durable_client_named("kept");
    queue.passive(passive);
    channel.queue_declare(queue).await.expect("the queue");
    connection.close().await.expect("closed");
}

/// A channel as an operator would have one.
pub async fn channel(config: &RabbitConfig) -> (Connection, Channel) {
    let login = config.urls[0].split_once("//").and_then(|(_, rest)| rest.split_once('@')).expect("a login").0;
    let (user, password) = login.split_once(':').expect("a password");
    let mut arguments = OpenConnectionArguments::new("127.0.0.1", port_of(&config.urls[0]), user, password);
    arguments.virtual_host(&config.urls[0].rsplit_once('/').expect("a virtual host").1.replace("%2f", "/"));
    let connection = Connection::open(&arguments).await.expect("a connection");
    let channel = connection.open_channel(None).await.expect("a channel");
    (connection, channel)
}

/// Empties the MQ DLQ, as a broker that loses its disk does.
pub async fn purge_mq_dlq(config: &RabbitConfig) {
    let (connection, channel) = channel(config).await;
    let queue = Topology::new(config).dlq();
    channel.queue_purge(QueuePurgeArguments::new(&queue)).await.expect("purged");
    connection.close().await.expect("closed");
}

/// Deletes the first order queue with everything in it.
pub async fn delete_order_queue(config: &RabbitConfig) {
    let (connection, channel) = channel(config).await;
    let queue = Topology::new(config).orders_queue(0);
    channel.queue_delete(QueueDeleteArguments::new(&queue)).await.expect("deleted");
    connection.close().await.expect("closed");
}

/// Deletes the exchange of the order queues.
pub async fn delete_order_exchange(config: &RabbitConfig) {
    let (connection, channel) = channel(config).await;
    let exchange = Topology::new(config).orders_exchange();
    channel.exchange_delete(ExchangeDeleteArguments::new(&exchange)).await.expect("deleted");
    connection.close().await.expect("closed");
}

/// Takes the first order queue off its exchange.
pub async fn unbind_order_queue(config: &RabbitConfig) {
    let (connection, channel) = channel(config).await;
    let topology = Topology::new(config);
    let unbind = QueueUnbindArguments::new(&topology.orders_queue(0), &topology.orders_exchange(), "0");
    channel.queue_unbind(unbind).await.expect("unbound");
    connection.close().await.expect("closed");
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}
