//! Roles: what a process does. One enum, one exhaustive match, one file a role.
//!
//! Input: settings and a set of roles. Output: [`Running`] tasks. Each role has its own handles on the servers, so that
//! trouble with a pool stays in its role. A role that ends with an error stops the process: a supervisor starts it again,
//! and nothing is lost by that.

mod api;
mod connections;
mod consumer;
mod reconcile;
mod relay;
mod tasks;

pub use connections::{DatabaseRows, Servers, rabbit_config, redis_trust};

use crate::config::Settings;
use crate::events::webhooks::WebhookSetupError;
use crate::http::BoundPort;
use crate::p1_entry::access_tokens::KeyHealth;
use crate::runtime::Stopper;
use crate::store::tls::TlsError;
use crate::telemetry;
use std::collections::HashSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tasks::{FirstError, outcome};
use tokio::task::JoinSet;

/// A role starts working once Redis is connected, or after this time without it: a normal start then logs no trouble.
const CONNECT_GRACE: Duration = Duration::from_secs(2);

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Role {
    /// P1, P2 and P6: the public HTTP API, with buyers' own orders; warms sales up.
    Api,
    /// P3: outbox to broker.
    Relay,
    /// P4: broker to database; publishes the events of orders.
    Consumer,
    /// P5 and P6: audit and compensation; timetables and events of sales; payment deadlines; webhooks.
    Reconcile,
}

impl Role {
    /// Every role, in the order of the pipeline.
    pub const ALL: [Self; 4] = [Self::Api, Self::Relay, Self::Consumer, Self::Reconcile];

    /// The role's one name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Relay => "relay",
            Self::Consumer => "consumer",
            Self::Reconcile => "reconcile",
        }
    }
}

/// Why a process cannot start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The configuration is not enough for a role; exit code 64.
    #[error("configuration is refused:\n  {}", .0.join("\n  "))]
    Config(Vec<String>),
    /// An address cannot be listened on.
    #[error("{key}: cannot listen on {address}: {source}; choose another address or stop what uses it")]
    Listen {
        /// The configuration key.
        key: &'static str,
        /// The value of that key.
        address: String,
        /// Why the system refused it.
        source: std::io::Error,
    },
    /// A role ended by itself.
    #[error("{0}")]
    Ended(String),
}

/// The text names the key.
impl From<TlsError> for RoleError {
    fn from(error: TlsError) -> Self {
        Self::Config(vec![error.to_string()])
    }
}

/// The text names the webhook, or the key.
impl From<WebhookSetupError> for RoleError {
    fn from(error: WebhookSetupError) -> Self {
        Self::Config(vec![error.to_string()])
    }
}

/// What the api role is started with, beside the settings.
#[derive(Debug, Default)]
pub struct ApiOptions {
    /// The public port, bound by the caller when it has to know it first; else `http.listen` is bound.
    pub public_port: Option<BoundPort>,
    /// Serve the demo shop, which only a local stack asks for.
    pub demo_shop: bool,
}

/// What every role works with.
struct RoleContext {
    settings: Arc<Settings>,
    /// This role's own handles.
    servers: Servers,
    stopper: Stopper,
    first_error: FirstError,
}

/// Roles that run as tasks of this process.
pub struct Running {
    roles: JoinSet<Result<(), RoleError>>,
    stopper: Stopper,
    first_error: FirstError,
    /// Public address, when the api role runs.
    pub api: Option<SocketAddr>,
    /// Its keys, for the probes.
    pub(crate) key_health: Option<KeyHealth>,
}

/// Listens on an address of the configuration.
pub fn bind(key: &'static str, address: &str) -> Result<TcpListener, RoleError> {
    TcpListener::bind(address).map_err(cannot_listen(key, address))
}

/// Binds `http.listen`, which the api role opens once it is safe to sell.
pub fn bind_public(address: &str) -> Result<BoundPort, RoleError> {
    BoundPort::new(address).map_err(cannot_listen("http.listen", address))
}

fn cannot_listen(key: &'static str, address: &str) -> impl FnOnce(std::io::Error) -> RoleError {
    let address = address.to_owned();
    move |source| RoleError::Listen { key, address, source }
}

/// Starts `roles`. What the settings make impossible is refused at once, before anything runs.
///
/// # Errors
/// [`RoleError`] when the configuration is not enough for a role, or the public address cannot be bound.
pub fn start(
    settings: &Arc<Settings>,
    roles: &[Role],
    api_options: ApiOptions,
    stopper: &Stopper,
) -> Result<Running, RoleError> {
    telemetry::traces::start(&settings.traces, &settings.node()).map_err(|why| RoleError::Config(vec![why]))?;
    let mut running = Running {
        roles: JoinSet::new(),
        stopper: stopper.clone(),
        first_error: FirstError::default(),
        api: None,
        key_health: None,
    };
    running.spawn_metrics_upkeep();
    let wanted: HashSet<Role> = roles.iter().copied().collect();
    let mut api_options = Some(api_options);
    for role in Role::ALL.into_iter().filter(|role| wanted.contains(role)) {
        let context = RoleContext {
            settings: settings.clone(),
            servers: Servers::new(settings)?,
            stopper: stopper.clone(),
            first_error: running.first_error.clone(),
        };
        tracing::info!(role = role.name(), node = %settings.node(), "role starts");
        match role {
            Role::Api => {
                let endpoint = api::PublicEndpoint::new(settings, api_options.take().unwrap_or_default(), stopper)?;
                running.api = endpoint.address();
                running.key_health = Some(endpoint.key_health());
                running.roles.spawn(api::run(context, endpoint))
            }
            Role::Relay => running.roles.spawn(relay::run(context)),
            Role::Consumer => running.roles.spawn(consumer::run(context)),
            Role::Reconcile => running.roles.spawn(reconcile::run(context)),
        };
    }
    Ok(running)
}

impl Running {
    /// Sorts the values of histograms into their buckets from time to time, also when nothing scrapes them.
    fn spawn_metrics_upkeep(&mut self) {
        let stopper = self.stopper.clone();
        self.roles.spawn(async move {
            telemetry::keep_small(stopper).await;
            Ok(())
        });
    }

    /// Waits until the stopper is pulled or a role ends by itself, then lets everything drain within `deadline`.
    ///
    /// # Errors
    /// The first error of a role; the others are stopped too.
    pub async fn until_stopped(mut self, deadline: Duration) -> Result<(), RoleError> {
        tokio::select! {
            () = self.stopper.stopped() => {}
            ended = self.roles.join_next() => self.first_error.keep(outcome(ended)),
        }
        self.stopper.stop();
        let draining = async {
            while let Some(ended) = self.roles.join_next().await {
                self.first_error.keep(outcome(Some(ended)));
            }
        };
        if tokio::time::timeout(deadline, draining).await.is_err() {
            tracing::warn!(
                deadline_s = deadline.as_secs(),
                "not everything drained in time; the next process picks it up"
            );
        }
        telemetry::traces::flush().await;
        self.first_error.take()
    }
}
