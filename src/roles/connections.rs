//! Handles on the three servers, made from the settings. Making them connects to nothing.
//!
//! Input: the settings. Output: [`Servers`], or the key that cannot be used. A crash leaves nothing.

use super::RoleError;
use crate::buyers::forget::BuyerForget;
use crate::buyers::rows::BlockRows;
use crate::buyers::rows::forgotten::ForgottenRows;
use crate::config::{P5Reconcile, ServerUrl, Settings};
use crate::events::rows::{AnnouncementRows, OrderEventRows, OutcomeEventRows};
use crate::events::webhooks::rows::{Subscriptions, WebhookRows};
use crate::lines::rows::LineRows;
use crate::orders::persist::Persister;
use crate::orders::rows::{OrderRows, RegisterRows, RequestRows};
use crate::p2_reserve::{DurabilityGuard, Fence, FenceHandles, Reserve, ReserveHandles};
use crate::p4_persist::PersistRows;
use crate::p5_reconcile::archive::rows::ArchiveRows;
use crate::p5_reconcile::rows::{BookRows, DecidedRows, FindingRows};
use crate::p5_reconcile::{Reconcile, ReconcileContext, ReconcileHandles, ReconcileRows};
use crate::p6_fulfil::FulfilContext;
use crate::sales::grants::SaleAndGrantRows;
use crate::sales::rows::{ActRows, ArchivedRows, GrantRows, SaleRows};
use crate::sales::{SaleControl, SaleHandles};
use crate::store::mysql::leader_election::{LeaderElection, LedWork};
use crate::store::mysql::{DatabaseAddress, Db, DbConfig};
use crate::store::rabbit::RabbitConfig;
use crate::store::redis::RedisStore;
use crate::store::tls::{TlsError, TlsFiles, Trust};
use std::sync::Arc;

/// Handles on the three servers. Nothing is connected by making them.
#[derive(Clone)]
pub struct Servers {
    /// Sales that sell, the ledger and the outbox.
    pub redis: RedisStore,
    /// Sales, orders and outcomes.
    pub db: Db,
    /// The handles on its tables.
    pub rows: DatabaseRows,
    /// How to reach the broker.
    pub rabbit: RabbitConfig,
}

/// The handles on the tables of the database; a phase is given those that it uses.
#[derive(Clone)]
pub struct DatabaseRows {
    /// The sales.
    pub sales: SaleRows,
    /// Units that were given to them.
    pub grants: GrantRows,
    /// What is kept of removed ones.
    pub archived: ArchivedRows,
    /// The record of what operators did.
    pub acts: ActRows,
    /// Buyers who may not buy.
    pub(crate) blocks: BlockRows,
    /// Lines of sales and their entries.
    pub lines: LineRows,
    /// Writes accepted requests.
    pub persister: Persister,
    /// Orders and their payments.
    pub orders: OrderRows,
    /// What is on record of requests.
    pub requests: RequestRows,
    /// The register of failed requests.
    pub register: RegisterRows,
    /// Events of orders that wait for the broker.
    pub order_events: OrderEventRows,
    /// Events of outcomes that wait for the broker.
    pub outcome_events: OutcomeEventRows,
    /// What of sales was announced.
    pub announcements: AnnouncementRows,
    /// Deliveries of webhooks.
    pub webhooks: WebhookRows,
    /// The books of sales.
    pub books: BookRows,
    /// Decided requests, for a rebuild.
    pub decided: DecidedRows,
    /// Findings of the audits.
    pub findings: FindingRows,
    /// The rows of a sale that is archived.
    pub archive: ArchiveRows,
}

impl DatabaseRows {
    /// On this database, for the webhooks of these subscriptions.
    #[must_use]
    pub fn new(db: &Db, subscriptions: Subscriptions) -> Self {
        Self {
            sales: SaleRows::new(db.clone()),
            grants: GrantRows::new(db.clone()),
            archived: ArchivedRows::new(db.clone()),
            acts: ActRows::new(db.clone()),
            blocks: BlockRows::new(db.clone()),
            lines: LineRows::new(db.clone(), subscriptions.clone()),
            persister: Persister::new(db.clone(), subscriptions.clone()),
            announcements: AnnouncementRows::new(db.clone(), subscriptions.clone()),
            orders: OrderRows::new(db.clone(), subscriptions),
            requests: RequestRows::new(db.clone()),
            register: RegisterRows::new(db.clone()),
            order_events: OrderEventRows::new(db.clone()),
            outcome_events: OutcomeEventRows::new(db.clone()),
            webhooks: WebhookRows::new(db.clone()),
            books: BookRows::new(db.clone()),
            decided: DecidedRows::new(db.clone()),
            findings: FindingRows::new(db.clone()),
            archive: ArchiveRows::new(db.clone()),
        }
    }

    /// What P4 may touch.
    #[must_use]
    pub fn of_persist(&self) -> PersistRows {
        PersistRows {
            persister: self.persister.clone(),
            requests: self.requests.clone(),
            outcome_events: self.outcome_events.clone(),
        }
    }

    fn giving(&self) -> SaleAndGrantRows {
        SaleAndGrantRows { sales: self.sales.clone(), grants: self.grants.clone() }
    }
}

impl Servers {
    /// Handles for the servers of `settings`.
    pub fn new(settings: &Settings) -> Result<Self, RoleError> {
        let refused = |key: &str, error: &dyn std::fmt::Display| RoleError::Config(vec![format!("{key}: {error}")]);
        let trust = redis_trust(settings)?;
        let redis = RedisStore::start(&settings.redis, trust.as_ref()).map_err(|error| refused("redis.url", &error))?;
        let mysql = &settings.mysql;
        let db = Db::connect(DbConfig {
            address: DatabaseAddress::new(mysql)?,
            pool_max: mysql.pool_max,
            wait_timeout_ms: mysql.pool_wait_ms,
            connect_timeout_ms: mysql.connect_timeout_ms,
            statement_timeout_ms: mysql.statement_timeout_ms,
        })
        .map_err(|error| refused("mysql.url", &error))?;
        let subscriptions = Subscriptions::new(db.clone(), settings.webhook_subscriptions());
        let rows = DatabaseRows::new(&db, subscriptions);
        let rabbit = rabbit_config(settings)?;
        rabbit.check().map_err(|error| refused("rabbitmq", &error))?;
        Ok(Self { redis, db, rows, rabbit })
    }

    /// What changes sales: for operators, and for P1's automatic warm-up.
    #[must_use]
    pub fn sale_control(&self, settings: &Settings) -> SaleControl {
        SaleControl {
            redis: self.of_sale(),
            rows: self.rows.giving(),
            archived: self.rows.archived.clone(),
            acts: self.rows.acts.clone(),
            shards: settings.redis.shards,
            backlog_max: settings.p1_entry.backlog_max,
        }
    }

    /// The boot fence of this process.
    pub(super) fn fence(&self, guard: &DurabilityGuard, shards: u16) -> Fence {
        let redis = &self.redis;
        let handles = FenceHandles {
            servers: redis.boot_fence.clone(),
            sale_keys: redis.sale_keys.clone(),
            transfers: redis.transfers.clone(),
        };
        Fence::new(handles, self.rows.sales.clone(), guard.clone(), shards)
    }

    /// An entrance to P2, on the runtime this is called in.
    pub(super) fn reserve(&self, fence: Fence, settings: &Settings) -> Reserve {
        let redis = &self.redis;
        let (stock, ledger, transfers) = (redis.stock.clone(), redis.ledger.clone(), redis.transfers.clone());
        Reserve::new(ReserveHandles { stock, ledger, transfers }, fence, settings.redis.shards, &settings.p2_reserve)
    }

    /// What P5 works with, in its role and in operators' commands.
    #[must_use]
    pub fn reconcile_context(&self, settings: &Settings) -> ReconcileContext {
        let redis = &self.redis;
        let handles = ReconcileHandles {
            sale_keys: redis.sale_keys.clone(),
            sale_cache: redis.sale_cache.clone(),
            #[cfg(feature = "faults")]
            stock: redis.stock.clone(),
            transfers: redis.transfers.clone(),
            buyers: redis.buyers.clone(),
            ledger: redis.ledger.clone(),
            outbox: redis.outbox.clone(),
            relay_dlq: redis.relay_dlq.clone(),
            rebuild: redis.rebuild.clone(),
            health: redis.health.clone(),
        };
        let rows = ReconcileRows {
            books: self.rows.books.clone(),
            decided: self.rows.decided.clone(),
            findings: self.rows.findings.clone(),
            archive: self.rows.archive.clone(),
            giving: self.rows.giving(),
            archived: self.rows.archived.clone(),
            acts: self.rows.acts.clone(),
            orders: self.rows.orders.clone(),
            lines: self.rows.lines.clone(),
            requests: self.rows.requests.clone(),
            register: self.rows.register.clone(),
            outcome_events: self.rows.outcome_events.clone(),
            persister: self.rows.persister.clone(),
        };
        ReconcileContext::new(rows, handles, self.rabbit.clone(), settings)
    }

    /// The reconciler of a process, which waits to be the leader.
    #[must_use]
    pub fn reconcile(&self, settings: &Settings, pace: P5Reconcile) -> Reconcile {
        self.led_reconcile(settings, pace, self.election(LedWork::Reconcile))
    }

    /// The same in an election of the caller's.
    pub(super) fn led_reconcile(&self, settings: &Settings, pace: P5Reconcile, election: LeaderElection) -> Reconcile {
        Reconcile::new(self.reconcile_context(settings), election, pace, settings.p1_entry.backlog_max)
    }

    /// An election for this work, in which this process has not stood yet.
    pub(super) fn election(&self, work: LedWork) -> LeaderElection {
        LeaderElection::new(self.db.clone(), work)
    }

    /// What forgetting a buyer works with.
    pub(crate) fn buyer_forget(&self, settings: &Settings) -> BuyerForget {
        BuyerForget {
            rows: ForgottenRows::new(self.db.clone()).patient(),
            sales: self.rows.sales.clone(),
            keys: self.redis.forgotten.clone(),
            sale_keys: self.redis.sale_keys.clone(),
            outbox: self.redis.outbox.clone(),
            relay_dlq: self.redis.relay_dlq.clone(),
            rabbit: self.rabbit.clone(),
            shards: settings.redis.shards,
        }
    }

    /// What P6 works with.
    pub(crate) fn fulfil_context(&self, settings: &Settings) -> FulfilContext {
        FulfilContext {
            rows: self.rows.giving(),
            orders: self.rows.orders.clone(),
            requests: self.rows.requests.clone(),
            acts: self.rows.acts.clone(),
            redis: self.of_sale(),
            ledger: self.redis.ledger.clone(),
            shards: settings.redis.shards,
        }
    }

    /// What the work on a sale may touch in Redis.
    fn of_sale(&self) -> SaleHandles {
        SaleHandles { sale_keys: self.redis.sale_keys.clone(), sale_cache: self.redis.sale_cache.clone() }
    }
}

/// Certificates for Redis, when its URL encrypts.
pub fn redis_trust(settings: &Settings) -> Result<Option<Trust>, TlsError> {
    let s = &settings.redis;
    let files = TlsFiles { section: "redis", ca: &s.tls_ca_file, cert: &s.tls_cert_file, key: &s.tls_key_file };
    s.url.is_encrypted().then(|| Trust::read(files)).transpose()
}

/// How to reach the broker, and how its queues are laid out.
pub fn rabbit_config(settings: &Settings) -> Result<RabbitConfig, TlsError> {
    let rabbit = &settings.rabbitmq;
    let files = TlsFiles {
        section: "rabbitmq",
        ca: &rabbit.tls_ca_file,
        cert: &rabbit.tls_cert_file,
        key: &rabbit.tls_key_file,
    };
    let urls = rabbit.urls_in_use();
    let trust = urls.iter().any(ServerUrl::is_encrypted).then(|| Trust::read(files)).transpose()?;
    Ok(RabbitConfig {
        trust: trust.map(Arc::new),
        prefix: rabbit.prefix.clone(),
        queue_type: rabbit.queue_type,
        queues: rabbit.queues,
        declare: rabbit.declare,
        heartbeat_s: rabbit.heartbeat_s,
        connect_timeout_ms: rabbit.connect_timeout_ms,
        retry_delay_ms: settings.p4_persist.retry_delay_ms,
        retry_delay_max_ms: settings.p4_persist.retry_delay_max_ms,
        ..RabbitConfig::of_nodes(urls.iter().map(|url| url.expose().to_owned()).collect())
    })
}
