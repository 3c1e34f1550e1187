//! One connection to a Redis server, given up and made anew when the server is silent on it.
//!
//! Input: commands. Output: their answers, or what is known about them. A crash here leaves what was sent: its outcome is
//! unknown.
//!
//! A host that vanishes without a word, and a proxy or an address translation that forgets a connection, leave one that
//! looks well. It is given up when commands have waited for [`SILENT_TIMEOUTS`] of their time-outs and nothing at all was
//! answered. (fred's own timer begins anew with each write, so under load it never ends. The kernel's, `TCP_USER_TIMEOUT`,
//! sees lost packets only: a frozen server and a proxy go on acknowledging.)
//!
//! To give up means to drop the client with its task, and with it the socket: a task that is stuck in a write would never
//! see a request to reconnect. What was under way has an unknown outcome.
//!
//! A server has several connections of one process. When one of them was silent, one that has answered nothing since is doubted:
//! without a command under way it is made anew at once, else its first time-out ends it. Otherwise a relay would learn of one
//! vanished host once a connection, one after the other.

use super::fault::{RECONNECT_CODES, RedisFault, given_to_all};
use super::silence::{Doubt, Silence};
use crate::config::{Redis, RedisMode};
use crate::store::tls::advised;
use fred::clients::Client;
use fred::error::{Error, ErrorKind};
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::{
    Config, ConnectionConfig, PerformanceConfig, ReconnectError, ReconnectPolicy, TcpConfig, UnresponsiveConfig,
};
use fred::types::{Builder, ClusterHash, CustomCommand, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Commands that wait in this process for the connection; more of them fail at once instead of piling up in an outage.
const BUFFERED_COMMANDS_MAX: usize = 65_536;
/// A connection that is closed waits this long for the answers to what was sent.
const QUIT_WAIT: Duration = Duration::from_secs(1);
/// Time-outs of a command for which a connection may be silent.
const SILENT_TIMEOUTS: u32 = 2;

/// How fred calls a connection that it found silent by itself, before this module did.
const UNRESPONSIVE: &str = "Unresponsive connection.";

/// Why the last attempt to connect failed, for people.
pub(super) type LastError = Arc<Mutex<Option<String>>>;

/// What a connection is made from.
#[derive(Clone)]
pub(super) struct LinkPlan {
    config: Config,
    settings: Redis,
    last_error: LastError,
    /// Shared by all connections to this server.
    doubt: Doubt,
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

/// The task holds the client itself: without this, a connection that nobody uses any more would be kept, and rebuilt, for ever.
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
        Ok(Self { config, settings: settings.clone(), last_error, doubt: Doubt::default(), runtime })
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
            .set_connection_config(self.connection())
            .set_policy(ReconnectPolicy::new_constant(0, 100))
            .build()
            .map_err(|error| RedisFault::unusable(&error))?;
        // Each connection error is logged here once; without a listener fred would not report it.
        let (last_error, encrypted) = (self.last_error.clone(), self.config.tls.is_some());
        let doubt = self.doubt.clone();
        client.on_error(move |(error, server)| {
            if error.details() == UNRESPONSIVE {
                doubt.begins(Instant::now());
            }
            let server = server.map(|server| server.to_string()).unwrap_or_default();
            tracing::warn!(%error, server, "redis connection");
            *last_error.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(advised("redis", encrypted, &error.to_string()));
            async { Ok(()) }
        });
        let task = client.connect().abort_handle();
        let (silence, under_way) = (Mutex::new(Silence::begun(Instant::now())), AtomicUsize::new(0));
        Ok(Arc::new(Current { client, task, silence, under_way }))
    }

    fn connection(&self) -> ConnectionConfig {
        let settings = &self.settings;
        ConnectionConfig {
            connection_timeout: Duration::from_millis(settings.connect_timeout_ms),
            internal_command_timeout: Duration::from_millis(settings.connect_timeout_ms),
            max_command_attempts: 1,
            max_command_buffer_len: BUFFERED_COMMANDS_MAX,
            reconnect_on_auth_error: true,
            // A socket that is dropped takes with it what the kernel has not sent. Else the kernel would go on sending for a minute
            // and more, and a purchase would run long after its buyer was told that its outcome is unknown.
            tcp: TcpConfig { nodelay: Some(true), linger: Some(Duration::ZERO), ..TcpConfig::default() },
            unresponsive: UnresponsiveConfig {
                max_timeout: Some(self.silence_max()),
                interval: Duration::from_millis((settings.command_timeout_ms / 2).max(10)),
            },
            reconnect_errors: match settings.mode {
                // The same address may belong to another server by now.
                RedisMode::Single => RECONNECT_CODES.map(ReconnectError::Custom).to_vec(),
                // The topology finds the server that has the data now; this server's address does not change.
                RedisMode::Sentinel | RedisMode::Cluster => Vec::new(),
            },
            ..ConnectionConfig::default()
        }
    }
}

impl RedisLink {
    /// Starts connecting and returns at once.
    pub(super) fn start(plan: LinkPlan) -> Result<Self, RedisFault> {
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
        let server = self.plan.config.server.hosts().first().map(ToString::to_string).unwrap_or_default();
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
