//! One connection to a Redis server, given up and made anew when the server is silent on it.
//!
//! Input: commands. Output: their answers, or what is known about them. A crash here leaves what was sent: its outcome is
//! unknown.
//!
//! A host that vanishes without a word, and a proxy or an address translation that forgets a connection, leave one that
//! seems well. It is given up when commands have waited for [`SILENT_TIMEOUTS`] of their time-outs and nothing at all was
//! answered. (fred's own timer begins anew with each write, so under load it never ends. The kernel's, `TCP_USER_TIMEOUT`,
//! sees lost packets only: a frozen server and a proxy go on acknowledging.)
//!
//! To give up means to drop the client with its task, and with it the socket: a task that is stuck in a write would never
//! see a request to reconnect. What was under way has an unknown outcome.
//!
//! A server has several connections of one process. When one of them was silent, one that has answered nothing since is doubted:
//! without a command under way it is made anew at once, else its first time-out ends it. Otherwise a relay would learn of one
//! vanished host once a connection, one after the other.

use super::fault::{RedisFault, given_to_all};
use super::link_settings::connection_config;
use super::silence::{Doubt, Silence};
use super::trouble::{LastError, LinkTrouble};
use crate::config::Redis;
use crate::store::tls::advised;
use fred::clients::Client;
use fred::error::{Error, ErrorKind};
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::{Config, PerformanceConfig, ReconnectPolicy};
use fred::types::{Builder, ClusterHash, CustomCommand, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A connection that is closed waits this long for the answers to what was sent.
const QUIT_WAIT: Duration = Duration::from_secs(1);
/// Time-outs of a command for which a connection may be silent.
const SILENT_TIMEOUTS: u32 = 2;

/// How fred calls a connection that it found silent by itself, before this module did.
const UNRESPONSIVE: &str = "Unresponsive connection.";

/// What a connection is made from.
#[derive(Clone)]
pub(super) struct LinkPlan {
    config: Config,
    settings: Redis,
    /// Shared by all connections to this server, as is the doubt.
    last_error: LastError,
    doubt: Doubt,
    /// Of this connection.
    trouble: Arc<LinkTrouble>,
    /// Where the connection's tasks live. A worker of the HTTP server has a runtime of its own, which ends before this one.
    runtime: Handle,
}

/// The client in use.
struct Current {
    client: Client,
    /// Drives the socket and holds it.
    task: AbortHandle,
    silence: Mutex<Silence>,
    under_way: AtomicUsize,
}

/// The task holds the client itself: without this, a connection that is not used any more would be kept, and rebuilt, for ever.
impl Drop for Current {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection, rebuilt for as long as it is kept.
pub(super) struct RedisLink {
    plan: LinkPlan,
    current: RwLock<Arc<Current>>,
}

impl LinkPlan {
    pub(super) fn new(config: Config, settings: &Redis, last_error: LastError) -> Result<Self, RedisFault> {
        let runtime = Handle::try_current().map_err(|none| RedisFault::Refused(none.to_string()))?;
        let (doubt, trouble) = (Doubt::default(), Arc::default());
        Ok(Self { config, settings: settings.clone(), last_error, doubt, trouble, runtime })
    }

    /// `host:port`.
    fn address(&self) -> String {
        self.config.server.hosts().first().map(ToString::to_string).unwrap_or_default()
    }

    fn silence_max(&self) -> Duration {
        Duration::from_millis(self.settings.command_timeout_ms) * SILENT_TIMEOUTS
    }

    /// Starts connecting and returns at once.
    fn connect(&self) -> Result<Arc<Current>, RedisFault> {
        let _entered = self.runtime.enter();
        let client = Builder::from_config(self.config.clone())
            .set_performance_config(PerformanceConfig {
                default_command_timeout: Duration::from_millis(self.settings.command_timeout_ms),
                ..PerformanceConfig::default()
            })
            .set_connection_config(connection_config(&self.settings, self.silence_max()))
            .set_policy(ReconnectPolicy::new_constant(0, 100))
            .build()
            .map_err(|error| RedisFault::unusable(&error))?;
        // Connection errors are logged here; without a listener fred would not report them.
        let (last_error, encrypted) = (self.last_error.clone(), self.config.tls.is_some());
        let (doubt, trouble, server) = (self.doubt.clone(), self.trouble.clone(), self.address());
        // Of a connection that is refused, fred does not say to which server.
        client.on_error(move |(error, _)| {
            if error.details() == UNRESPONSIVE {
                doubt.begins(Instant::now());
            }
            let text = error.to_string();
            if let Some(errors) = trouble.note(&text, Instant::now()) {
                tracing::warn!(%error, server, errors, "redis connection");
            }
            last_error.set(advised("redis", encrypted, &text));
            async { Ok(()) }
        });
        let task = client.connect().abort_handle();
        let (silence, under_way) = (Mutex::new(Silence::begun(Instant::now())), AtomicUsize::new(0));
        Ok(Arc::new(Current { client, task, silence, under_way }))
    }
}

impl RedisLink {
    /// Starts connecting and returns at once.
    pub(super) fn start(plan: LinkPlan) -> Result<Self, RedisFault> {
        let plan = LinkPlan { trouble: Arc::default(), ..plan };
        let current = RwLock::new(plan.connect()?);
        Ok(Self { plan, current })
    }

    fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the connection stands, as far as this process knows. One that is in doubt and has nothing under way is made anew.
    pub(super) fn is_connected(&self) -> bool {
        let current = self.current();
        if current.under_way.load(Ordering::Acquire) == 0 && self.doubts(&current) {
            self.give_up(&current, Duration::ZERO);
            return false;
        }
        current.client.is_connected()
    }

    /// Whether another connection to the server was silent since this one has answered anything.
    fn doubts(&self, current: &Current) -> bool {
        self.plan.doubt.is_about(&current.silence.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the first connection.
    pub(super) async fn wait_connected(&self) -> bool {
        self.current().client.wait_for_connect().await.is_ok()
    }

    /// What closes it.
    pub(super) fn quit(&self) -> Quit {
        Quit(self.current())
    }

    /// Sends one command. It must be connected: a command queued while it is not could run much later, after its caller has got
    /// a failure.
    pub(super) async fn call(&self, name: &'static str, args: Vec<Value>) -> Result<Value, RedisFault> {
        let waiting = Waiting::begin(self);
        let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
        let answer = ClientLike::custom::<Value, Value>(&waiting.on.client, command, args).await;
        waiting.end(answer.as_ref().err());
        answer.map_err(|error| self.fault(&error))
    }

    /// Sends these one behind the other. An answer for each, or one fault for all.
    pub(super) async fn pipeline(
        &self,
        steps: impl IntoIterator<Item = (&'static str, Vec<Value>)>,
    ) -> Result<Vec<Result<Value, RedisFault>>, RedisFault> {
        let waiting = Waiting::begin(self);
        let pipeline = waiting.on.client.pipeline();
        for (name, args) in steps {
            let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
            // It is only written down here.
            ClientLike::custom::<Value, Value>(&pipeline, command, args).await.map_err(|error| self.fault(&error))?;
        }
        let answers = pipeline.try_all::<Value>().await;
        waiting.end(answers.iter().find_map(|answer| answer.as_ref().err()));
        Ok(answers.into_iter().map(|answer| answer.map_err(|error| self.fault(&error))).collect())
    }

    fn fault(&self, error: &Error) -> RedisFault {
        RedisFault::of(error, given_to_all(self.plan.settings.mode))
    }

    /// Drops the connection `silent` and begins another one, unless that was done before.
    fn give_up(&self, silent: &Arc<Current>, silence: Duration) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&current, silent) {
            return;
        }
        let server = self.plan.address();
        match self.plan.connect() {
            Ok(fresh) => {
                if silence.is_zero() {
                    tracing::info!(server, "redis was silent on another connection, this one is made anew, too");
                } else {
                    let silence_ms = u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
                    tracing::warn!(
                        server,
                        silence_ms,
                        "redis is silent on this connection, it is given up and made anew"
                    );
                    self.plan.doubt.begins(Instant::now());
                }
                silent.task.abort();
                *current = fresh;
            }
            Err(error) => tracing::warn!(server, %error, "redis is silent, and no other connection can be made"),
        }
    }
}

/// A call under way. Dropped before its end, it was given up by its caller: no answer came until then.
struct Waiting<'a> {
    link: &'a RedisLink,
    on: Arc<Current>,
    sent: Instant,
    ended: bool,
}

impl<'a> Waiting<'a> {
    fn begin(link: &'a RedisLink) -> Self {
        let on = link.current();
        on.under_way.fetch_add(1, Ordering::AcqRel);
        Self { link, on, sent: Instant::now(), ended: false }
    }

    /// With an answer, or with the error that came instead.
    fn end(mut self, error: Option<&Error>) {
        if error.is_none() {
            self.link.plan.last_error.answered();
            if self.link.plan.trouble.ends() {
                tracing::info!(server = self.link.plan.address(), "redis answers again");
            }
        }
        self.ended = !matches!(error.map(Error::kind), Some(ErrorKind::Timeout | ErrorKind::Backpressure));
        if self.ended {
            // Also when the connection broke: it is another one afterwards.
            self.on.silence.lock().unwrap_or_else(PoisonError::into_inner).ends(Instant::now());
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.on.under_way.fetch_sub(1, Ordering::AcqRel);
        if self.ended {
            return;
        }
        let now = Instant::now();
        let doubted = self.link.doubts(&self.on);
        let silence = self.on.silence.lock().unwrap_or_else(PoisonError::into_inner).goes_on(self.sent, now);
        // A caller may give up sooner than a command's time-out: that alone says nothing.
        let timed_out = silence >= self.link.plan.silence_max() / SILENT_TIMEOUTS;
        if silence >= self.link.plan.silence_max() || doubted && timed_out {
            self.link.give_up(&self.on, silence);
        }
    }
}

/// Closes a connection after what was sent is answered.
pub(super) struct Quit(Arc<Current>);

impl Quit {
    pub(super) async fn wait(self) {
        drop(tokio::time::timeout(QUIT_WAIT, self.0.client.quit()).await);
        // One that is silent does not end by itself.
        self.0.task.abort();
    }
}
