//! The whole system on one machine: private servers, a migrated database, a demo sale, every role.
//!
//! Input: a folder and the configuration's layers. Output: `dev.json`, written last, when every role is ready. What dies is
//! started again on its data and port. A crash of this process takes servers and roles with it (the kernel kills them);
//! their data stay.

use super::secrets::Secrets;
use super::split::Split;
pub(crate) use super::stack_plan::{StackError, StackPlan};
use super::stack_plan::{StackListeners, has_shop};
use super::{DevError, DevState, External, PrivateServers, ServerUrls, demo};
use crate::admin::{self, Admin};
use crate::config::{ConfigError, Settings};
use crate::roles::{self, ApiOptions, Role, RoleError, Running, Servers};
use crate::runtime::Stopper;
use crate::store::mysql::{DatabaseAddress, migrate};
use crate::store::rabbit::declare;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Dead servers and roles are searched this often.
const WATCH: Duration = Duration::from_millis(200);

/// A running local stack.
pub(crate) struct Stack {
    shop: bool,
    servers: PrivateServers,
    roles: StackRoles,
    state: DevState,
    stopper: Stopper,
    drain: Duration,
}

enum StackRoles {
    Here(Running),
    Split(Split),
}

impl Stack {
    /// Starts everything; returns when every role is ready. After an error nothing that it started still runs.
    pub(crate) async fn start(
        plan: &StackPlan,
        on_progress: &(dyn Fn(super::ServerProgress) + Sync),
    ) -> Result<Self, StackError> {
        // Mistakes in the configuration show before anything is started.
        let plan = &plan.with_members(&Settings::load(&plan.layers)?);
        let servers = PrivateServers::start_beside(External::from_env(), &plan.dir, on_progress).await?;
        let secrets = Secrets::kept_in(servers.dir())?;
        let settings = Arc::new(settings(plan, &servers.urls(), &secrets)?);
        migrate::migrate(DatabaseAddress::new(&settings.mysql).map_err(RoleError::from)?).await?;
        // Every role would do it; before them none of them finds a queue missing.
        if let Err(error) = declare(&roles::rabbit_config(&settings).map_err(RoleError::from)?).await {
            tracing::warn!(%error, "the queues are left to the roles");
        }
        if plan.demo {
            demo::create(&settings).await?;
        }
        let stopper = Stopper::new();
        let mut state = DevState {
            redis_url: servers.urls().redis_url,
            amqp_url: servers.urls().amqp_url,
            mysql_url: servers.urls().mysql_url,
            admin_token: settings.admin.token.expose().to_owned(),
            jwt_secret: settings.auth.signing_secret().expose().to_owned(),
            pass_secret: settings.passes.signing_secret().map_or_else(String::new, |secret| secret.expose().to_owned()),
            config: plan
                .layers
                .files
                .iter()
                .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
                .collect(),
            set: plan.layers.set.clone(),
            ..DevState::default()
        };
        let listeners = StackListeners {
            public: default_or_free(&settings.http.listen, roles::bind_public)?,
            admin: default_or_free(&settings.admin.listen, |address| roles::bind("admin.listen", address))?,
        };
        let mut roles = if plan.split {
            StackRoles::Split(Split::start(plan, &settings, listeners, &mut state).await?)
        } else {
            StackRoles::Here(here(&settings, listeners, &stopper, &mut state)?)
        };
        wait_ready(&state, &mut roles).await?;
        let drain = Duration::from_millis(settings.runtime.drain_ms);
        let mut stack = Self { shop: has_shop(&settings), servers, roles, state, stopper, drain };
        stack.write_state(&plan.dir)?;
        Ok(stack)
    }

    /// Where everything is.
    #[must_use]
    pub(crate) const fn state(&self) -> &DevState {
        &self.state
    }

    /// Whether it serves the demo shop.
    #[must_use]
    pub(crate) const fn has_shop(&self) -> bool {
        self.shop
    }

    fn write_state(&mut self, dir: &Path) -> Result<(), DevError> {
        let mut pids: BTreeMap<String, u32> = self.servers.pids();
        match &self.roles {
            StackRoles::Here(_) => pids.extend(Role::ALL.map(|role| (role.name().to_owned(), std::process::id()))),
            StackRoles::Split(split) => pids.extend(split.pids()),
        }
        if pids == self.state.pids {
            return Ok(());
        }
        self.state.pids = pids;
        self.state.write(dir)
    }

    /// Keeps everything running until `stop` is pulled, then stops roles and servers in order.
    ///
    /// # Errors
    /// The first thing that went wrong on the way down, or a role that ended by itself.
    pub(crate) async fn until_stopped(mut self, plan: &StackPlan, stop: &Stopper) -> Result<(), StackError> {
        let mut outcome = Ok(());
        let roles = match self.roles {
            StackRoles::Here(running) => {
                let drain = self.drain;
                let mut running = tokio::spawn(running.until_stopped(drain));
                while !stop.is_stopped() && !running.is_finished() {
                    watch(&mut self.servers, &mut self.state, &plan.dir).await?;
                    stop.sleep(WATCH).await;
                }
                self.stopper.stop();
                if let Ok(ended) = (&mut running).await {
                    outcome = ended.map_err(StackError::from);
                }
                None
            }
            StackRoles::Split(mut split) => {
                while !stop.is_stopped() {
                    watch(&mut self.servers, &mut self.state, &plan.dir).await?;
                    if split.restart_dead().await? {
                        self.state.pids.extend(split.pids());
                        self.state.write(&plan.dir)?;
                    }
                    stop.sleep(WATCH).await;
                }
                Some(split)
            }
        };
        if let Some(split) = roles {
            split.stop(self.drain).await;
        }
        // The servers' data stay, but `dev.json` goes: a reader would think that they still run.
        let kept = DevState::remove(&plan.dir);
        self.servers.stop().await?;
        kept?;
        outcome
    }
}

/// Restarts servers that died.
async fn watch(servers: &mut PrivateServers, state: &mut DevState, dir: &Path) -> Result<(), StackError> {
    for (kind, restarted) in servers.check_and_restart_dead().await {
        match restarted {
            Ok(()) => {
                tracing::warn!(server = kind.name(), "died and was started again on its data and port");
                state.pids.extend(servers.pids());
                state.write(dir)?;
            }
            Err(error) => tracing::error!(server = kind.name(), %error, "died and cannot be started, trying again"),
        }
    }
    Ok(())
}

/// The user's layers with the servers' addresses on top, and secrets where none are configured.
fn settings(plan: &StackPlan, urls: &ServerUrls, secrets: &Secrets) -> Result<Settings, ConfigError> {
    let given = Settings::load(&plan.layers)?;
    let mut layers = plan.layers.clone();
    layers.set.extend([
        format!("redis.url={}", urls.redis_url),
        format!("rabbitmq.url={}", urls.amqp_url),
        format!("mysql.url={}", urls.mysql_url),
        "rabbitmq.urls=".to_owned(),
        "mysql.urls=".to_owned(),
    ]);
    if given.auth.secrets_in_use().is_empty() && given.auth.uses_secrets() {
        layers.set.push(format!("auth.secret={}", secrets.jwt));
    }
    if given.admin.token.expose().is_empty() {
        layers.set.push(format!("admin.token={}", secrets.admin));
    }
    if given.p1_entry.token_secrets_in_use().is_empty() {
        // Derived, so that purchase tokens outlive a restart on kept data as access tokens do.
        layers.set.push(format!("p1_entry.token_secret=purchase-{}", secrets.jwt));
    }
    if given.passes.signing_secret().is_none() {
        // So that drops which need facts of their buyers can be tried (`make drop`).
        layers.set.push(format!("passes.secrets=pass-{}", secrets.jwt));
    }
    Settings::load(&layers)
}

/// The configured address; a free port instead when a default one is taken.
fn default_or_free<P>(address: &str, bind: impl Fn(&str) -> Result<P, RoleError>) -> Result<P, RoleError> {
    match bind(address) {
        Err(RoleError::Listen { .. }) if crate::config::DEFAULT_TOML.contains(&format!("listen = \"{address}\"")) => {
            bind("127.0.0.1:0")
        }
        bound => bound,
    }
}

fn url(address: std::io::Result<SocketAddr>) -> Result<String, StackError> {
    let address = address.map_err(|error| StackError::NotReady(error.to_string()))?;
    Ok(format!("http://{address}"))
}

fn here(
    settings: &Arc<Settings>,
    listeners: StackListeners,
    stopper: &Stopper,
    state: &mut DevState,
) -> Result<Running, StackError> {
    let StackListeners { public, admin } = listeners;
    state.api = url(public.address())?;
    state.admin = url(admin.local_addr())?;
    state.admins = Role::ALL.map(|role| (role.name().to_owned(), state.admin.clone())).into();
    let options = ApiOptions { public_port: Some(public), demo_shop: has_shop(settings) };
    let running = roles::start(settings, &Role::ALL, options, stopper)?;
    let of_roles = Admin::new(settings, &Servers::new(settings)?, &Role::ALL, stopper);
    let server = admin::serve(of_roles.with_keys(running.key_health.clone()), admin, stopper.clone())
        .map_err(|error| StackError::NotReady(format!("admin server: {error}")))?;
    tokio::spawn(server);
    Ok(running)
}

/// Waits until every role says it is ready and the public API answers. A role process that ended is not waited for: what it said
/// last is the error.
async fn wait_ready(state: &DevState, roles: &mut StackRoles) -> Result<(), StackError> {
    let mut urls: Vec<String> = state.admins.values().map(|admin| format!("{admin}/readyz")).collect();
    urls.sort();
    urls.dedup();
    urls.push(format!("{}/v1/sales", state.api));
    let client = reqwest::Client::builder().timeout(Duration::from_secs(3)).no_proxy().build();
    let client = client.map_err(|error| StackError::NotReady(error.to_string()))?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    for url in urls {
        loop {
            if let StackRoles::Split(split) = roles {
                split.must_run()?;
            }
            let problem = match client.get(&url).send().await {
                Ok(answer) if answer.status().is_success() => break,
                Ok(answer) => format!("{} {}", answer.status(), answer.text().await.unwrap_or_default()),
                Err(error) => error.to_string(),
            };
            if tokio::time::Instant::now() > deadline {
                return Err(StackError::NotReady(format!("{url} is not ready: {problem}")));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
