//! Handles on the three servers, made from the settings. Making them connects to nothing.
//!
//! Input: the settings. Output: [`Servers`], or the key that cannot be used. A crash leaves nothing.

use super::RoleError;
use crate::config::{ServerUrl, Settings};
use crate::events::webhooks::rows::Subscriptions;
use crate::orders::persist::Persister;
use crate::orders::rows::OrderRows;
use crate::p5_reconcile::{ReconcileContext, ReconcileHandles};
use crate::p6_fulfil::FulfilContext;
use crate::sales::{SaleControl, SaleHandles};
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
    /// Writes accepted requests.
    pub persister: Persister,
    /// Orders and their payments.
    pub orders: OrderRows,
    /// How to reach the broker.
    pub rabbit: RabbitConfig,
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
        let persister = Persister::new(db.clone(), subscriptions.clone());
        let orders = OrderRows::new(db.clone(), subscriptions);
        let rabbit = rabbit_config(settings)?;
        rabbit.check().map_err(|error| refused("rabbitmq", &error))?;
        Ok(Self { redis, db, persister, orders, rabbit })
    }

    /// What changes sales: for operators, and for P1's automatic warm-up.
    #[must_use]
    pub fn sale_control(&self, settings: &Settings) -> SaleControl {
        let redis = &self.redis;
        SaleControl {
            redis: SaleHandles { sale_keys: redis.sale_keys.clone(), sale_cache: redis.sale_cache.clone() },
            db: self.db.clone(),
            shards: settings.redis.shards,
            backlog_max: settings.p1_entry.backlog_max,
        }
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
        ReconcileContext::new(self.db.clone(), self.persister.clone(), handles, self.rabbit.clone(), settings)
    }

    /// What P6 works with.
    pub(crate) fn fulfil_context(&self, settings: &Settings) -> FulfilContext {
        let (sale_keys, sale_cache) = (self.redis.sale_keys.clone(), self.redis.sale_cache.clone());
        let redis = SaleHandles { sale_keys, sale_cache };
        let ledger = self.redis.ledger.clone();
        FulfilContext { db: self.db.clone(), orders: self.orders.clone(), redis, ledger, shards: settings.redis.shards }
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
