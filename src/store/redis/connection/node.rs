//! One Redis server and the connections to it.
//!
//! A cluster is a set of these, each with its own connection. fred's cluster client is not used: it stalls as a whole while one
//! server is dead, and here a dead server must cost its own share only (B4).

use super::DoneWhen;
use super::fault::RedisFault;
use super::link::{LinkPlan, Quit, RedisLink};
use super::replicas::{Replicated, ReplicationBarrier};
use super::trouble::LastError;
use crate::config::{Redis, RedisMode};
use fred::types::Value;
use fred::types::config::{Config, Server, ServerConfig};
use futures::future::join_all;
use std::sync::OnceLock;
use std::time::Duration;

/// One Redis server.
pub(in crate::store::redis) struct Node {
    /// `host:port`, as it is known to this process.
    pub(in crate::store::redis) address: String,
    link: RedisLink,
    plan: LinkPlan,
    settings: Redis,
    last_error: LastError,
    /// Connected with the first command that has to be on replicas.
    barrier: OnceLock<ReplicationBarrier>,
    /// The same for reads of polls; connected with the first one.
    poll_barrier: OnceLock<ReplicationBarrier>,
    /// For polls where no replica is waited for, and purchases use the link; connected with the first poll.
    poll_link: OnceLock<RedisLink>,
}

impl Node {
    /// Starts connecting to `server` with the credentials of `config` and returns at once; the connection is rebuilt for as
    /// long as the node is kept.
    pub(super) fn start(server: &Server, config: &Config, settings: &Redis) -> Result<Self, RedisFault> {
        let server = ServerConfig::Centralized { server: server.clone() };
        let config = Config { server, fail_fast: false, ..config.clone() };
        let address = config.server.hosts().first().map(ToString::to_string).unwrap_or_default();
        let last_error = LastError::default();
        let plan = LinkPlan::new(config, settings, last_error.clone())?;
        let link = RedisLink::start(plan.clone())?;
        let (settings, barrier, poll_barrier, poll_link) =
            (settings.clone(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        let node = Self { address, link, plan, settings, last_error, barrier, poll_barrier, poll_link };
        if node.settings.mode == RedisMode::Single {
            node.prepare();
        }
        Ok(node)
    }

    /// Opens the connections that calls will need, so that the first purchase does not wait for them.
    pub(super) fn prepare(&self) {
        if self.settings.wait_replicas > 0
            && let Err(error) = self.connected(&self.barrier)
        {
            tracing::warn!(server = self.address, %error, "redis: no connection for what has to be on replicas");
        }
    }

    /// Whether a connection stands right now.
    pub(super) fn is_connected(&self) -> bool {
        self.link.is_connected() && self.barrier.get().is_none_or(|barrier| barrier.link.is_connected())
    }

    /// The text "no connection", with the reason if it is known: a wrong password is no dead server.
    pub(super) fn not_connected(&self) -> String {
        match self.last_error.text() {
            Some(last_error) => format!("no connection to {}: {last_error}", self.address),
            None => format!("no connection to {}", self.address),
        }
    }

    /// Waits for the first connection.
    pub(in crate::store::redis) async fn wait_connected(&self) -> bool {
        if let Some(barrier) = self.barrier.get()
            && !barrier.link.wait_connected().await
        {
            return false;
        }
        self.link.wait_connected().await
    }

    /// Closes the connections after what was sent is answered.
    pub(in crate::store::redis) async fn quit(&self) {
        quit(self.open()).await;
    }

    /// What closes its connections.
    fn open(&self) -> Vec<Quit> {
        let barriers = [&self.barrier, &self.poll_barrier].into_iter().filter_map(OnceLock::get);
        let links = [&self.link].into_iter().chain(self.poll_link.get());
        barriers.map(|barrier| barrier.link.quit()).chain(links.map(RedisLink::quit)).collect()
    }

    /// Sends one command and returns its answer when it counts as done. `key_at` is the position of its key among the arguments.
    pub(in crate::store::redis) async fn send(
        &self,
        done_when: DoneWhen,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Replicated, RedisFault> {
        if self.settings.wait_replicas > 0 {
            match done_when {
                // Purchases use the barrier's connection, so the link is the polls'.
                DoneWhen::Answered | DoneWhen::Polled => {}
                DoneWhen::Replicated => return self.connected(&self.barrier)?.send(name, key_at, args).await,
                DoneWhen::PolledReplicated => {
                    let barrier = self.connected(&self.poll_barrier)?;
                    // Not yet there at the first poll. Without a connection `send` says so.
                    let deadline = Duration::from_millis(self.settings.connect_timeout_ms);
                    drop(tokio::time::timeout(deadline, barrier.link.wait_connected()).await);
                    return barrier.send(name, key_at, args).await;
                }
            }
        }
        let apart = self.settings.wait_replicas == 0 && done_when == DoneWhen::Polled;
        let answer = if apart { self.polled(name, args).await? } else { self.command(name, args).await? };
        Ok(Replicated { answer, replicated: true })
    }

    /// Sends one command over the polls' own connection.
    async fn polled(&self, name: &'static str, args: Vec<Value>) -> Result<Value, RedisFault> {
        let link = match self.poll_link.get() {
            Some(link) => link,
            None => {
                let fresh = RedisLink::start(self.plan.clone())?;
                // Of two made at the same time, the second is dropped with its connection.
                self.poll_link.get_or_init(|| fresh)
            }
        };
        // Not yet there at the first poll. While no connection to this server stands, no call waits for one.
        if !link.is_connected() && self.link.is_connected() {
            let deadline = Duration::from_millis(self.settings.connect_timeout_ms);
            drop(tokio::time::timeout(deadline, link.wait_connected()).await);
        }
        if !link.is_connected() {
            return Err(RedisFault::NotSent(self.not_connected()));
        }
        link.call(name, args).await
    }

    /// Sends one command.
    pub(in crate::store::redis) async fn command(
        &self,
        name: &'static str,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        // A command queued while disconnected could run much later, after its caller has got a failure.
        if !self.link.is_connected() {
            return Err(RedisFault::NotSent(self.not_connected()));
        }
        self.link.call(name, args).await
    }

    /// The connection for what has to be on replicas, made when there is none.
    fn connected<'a>(&self, barrier: &'a OnceLock<ReplicationBarrier>) -> Result<&'a ReplicationBarrier, RedisFault> {
        if let Some(barrier) = barrier.get() {
            return Ok(barrier);
        }
        let fresh = ReplicationBarrier::new(RedisLink::start(self.plan.clone())?, &self.settings);
        // Of two made at the same time, the second is dropped with its connection.
        Ok(barrier.get_or_init(|| fresh))
    }
}

/// The library's tasks hold their client themselves: without `quit` they would keep the connection, and rebuild it, for ever.
impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(quit(self.open()));
        }
    }
}

async fn quit(open: Vec<Quit>) {
    join_all(open.into_iter().map(Quit::wait)).await;
}
