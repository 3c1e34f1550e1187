//! What the handlers of the admin API share.

use super::cached::Cached;
use super::readiness::Readiness;
use super::sign_in::SignIn;
use crate::buyers::forget::BuyerForget;
use crate::config::{Passes, Settings, Webhook};
use crate::domain::ids::{DropId, SaleId};
use crate::domain::sale::Sale;
use crate::p1_entry::access_tokens::KeyHealth;

use crate::p5_reconcile::ReconcileContext;
use crate::p5_reconcile::dlq::DlqListing;
use crate::p6_fulfil::FulfilContext;
use crate::roles::{Role, Servers};
use crate::runtime::Stopper;
use crate::sales::SaleControl;
use crate::store::rabbit::QueueDepth;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore};

/// The snapshot of the pipeline and the list of sales are at most this old, milliseconds.
const SNAPSHOT_MS: u64 = 1_000;
/// The queues' depths are at most this old: reading them takes a connection.
const QUEUES_MS: u64 = 1_500;
/// The parked entries are at most this old: reading them holds the messages for a moment.
const PARKED_MS: u64 = 3_000;

/// Calls of the admin API at once; probes and `/metrics` need no place.
pub(super) const CALLS_MAX: usize = 64;
/// Exports at once, of one process: each has a connection to the database much of the time.
pub(super) const EXPORTS_MAX: usize = 2;

/// What the handlers share.
pub struct Admin {
    pub(super) sign_in: SignIn,
    pub(super) readiness: Readiness,
    pub(super) servers: Servers,
    pub(super) context: ReconcileContext,
    pub(super) fulfil: FulfilContext,
    pub(super) forget: BuyerForget,
    pub(super) roles: Vec<Role>,
    pub(super) window_ms: u64,
    /// How much older than its acceptance the id of an order may be, seconds.
    pub(super) token_ttl_s: u64,
    /// Of the configuration.
    pub(super) webhooks: Vec<Webhook>,
    /// Of the configuration; the first secret signs.
    pub(super) passes: Passes,
    pub(super) sale_control: SaleControl,
    pub(super) sales: Cached<Vec<Sale>>,
    pub(super) snapshot: Cached<Value>,
    pub(super) queues: Cached<Result<Vec<QueueDepth>, String>>,
    pub(super) parked: Cached<DlqListing>,
    /// Held while a replay or give-up is under way.
    pub(super) acting: Arc<Mutex<()>>,
    /// Held while all dead deliveries of webhooks are replayed.
    pub(super) replaying: Mutex<()>,
    /// Held while an audit is made for a caller: it reads the whole ledger of a sale. Others do not wait for it.
    pub(super) auditing: Mutex<()>,
    /// A place for each call that is under way.
    pub(super) calls: Arc<Semaphore>,
    /// A place for each export that is under way.
    pub(super) exporting: Arc<Semaphore>,
}

impl Admin {
    /// The state of the admin server in a process that runs `roles` until the stopper is pulled.
    #[must_use]
    pub fn new(settings: &Settings, servers: &Servers, roles: &[Role], stopper: &Stopper) -> Self {
        Self {
            sign_in: SignIn::new(&settings.admin),
            readiness: Readiness::new(servers, roles, stopper.clone()),
            context: servers.reconcile_context(settings),
            fulfil: servers.fulfil_context(settings),
            forget: servers.buyer_forget(settings),
            servers: servers.clone(),
            roles: roles.to_vec(),
            window_ms: settings.p5_reconcile.window_ms,
            token_ttl_s: settings.p1_entry.token_ttl_s,
            webhooks: settings.webhooks.clone(),
            passes: settings.passes.clone(),
            sale_control: servers.sale_control(settings),
            sales: Cached::new(SNAPSHOT_MS),
            snapshot: Cached::new(SNAPSHOT_MS),
            queues: Cached::new(QUEUES_MS),
            parked: Cached::new(PARKED_MS),
            acting: Arc::default(),
            replaying: Mutex::default(),
            auditing: Mutex::default(),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            exporting: Arc::new(Semaphore::new(EXPORTS_MAX)),
        }
    }

    /// The same, whose `/readyz` checks the keys of this process's api role, too.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys: Option<KeyHealth>) -> Self {
        self.readiness = self.readiness.with_keys(keys);
        self
    }

    /// After a write: the next read is a new one, and the log has the change.
    pub(super) async fn changed(&self, sale: &SaleId, what: &str) {
        tracing::info!(phase = "admin", sale = %sale, what, "sale changed through the admin API");
        self.forget().await;
    }

    /// The same of a drop.
    pub(super) async fn drop_changed(&self, drop: &DropId, what: &str) {
        tracing::info!(phase = "admin", drop = %drop, what, "drop changed through the admin API");
        self.forget().await;
    }

    async fn forget(&self) {
        self.sales.forget().await;
        self.snapshot.forget().await;
    }
}
