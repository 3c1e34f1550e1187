//! One server of a set: a `redis-server` with a settings file, a port and data of its own.

use crate::support::basics::raw_commands::try_redis_all;
use crate::support::processes::supervised::Supervised;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A server that stands still answers no call; one that is only slow has this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Sentinels check replicas every ten seconds and rest for thirty when their own clock jumped, as it does on a crowded
/// machine; this is for tests that do not wait so long. Not kept over a restart.
const HASTE: [&str; 8] = ["SENTINEL", "DEBUG", "INFO-PERIOD", "1000", "PUBLISH-PERIOD", "500", "TILT-PERIOD", "2000"];

/// A server of a set. It dies with the value.
pub struct Node {
    server: Supervised,
    dir: PathBuf,
    port: u16,
    is_sentinel: bool,
    password: Option<String>,
    /// False from a kill or a freeze until it is undone: a query of all nodes leaves it out.
    runs: AtomicBool,
}

/// How a server is started.
pub(super) struct Plan<'a> {
    /// Of its folder, and in messages.
    pub(super) name: String,
    pub(super) port: u16,
    /// Lines of its settings file.
    pub(super) config: Vec<String>,
    pub(super) password: Option<&'a str>,
    pub(super) is_sentinel: bool,
}

impl Node {
    /// Starts one below `parent`; [`Node::ready`] waits for it.
    pub(super) async fn spawn(parent: &Path, plan: Plan<'_>) -> Self {
        let Plan { name, port, mut config, password, is_sentinel } = plan;
        let dir = parent.join(&name);
        std::fs::create_dir_all(&dir).expect("a folder");
        config.push(format!("port {port}"));
        config.push(format!("dir {}", dir.display()));
        std::fs::write(dir.join("redis.conf"), config.join("\n") + "\n").expect("a settings file");
        let (server, password) = (Supervised::new(&name, &dir.join("log")), password.map(str::to_owned));
        server.start(command(&dir, is_sentinel)).await;
        Self { server, dir, port, is_sentinel, password, runs: AtomicBool::new(true) }
    }

    /// Waits until it answers and has its data.
    pub(super) async fn ready(&self) {
        let pings = async || self.try_call(&["PING"]).await.is_ok_and(|answer| answer == "PONG");
        self.server.until("answers", pings).await;
        if self.is_sentinel {
            self.call(&HASTE).await;
        }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it is, for a client of this one server.
    pub fn url(&self) -> String {
        format!("redis://{}127.0.0.1:{}", self.login(), self.port)
    }

    /// What stands before the host in an address.
    pub(super) fn login(&self) -> String {
        self.password.as_ref().map_or_else(String::new, |password| format!(":{password}@"))
    }

    /// False while it is killed or frozen.
    pub fn runs(&self) -> bool {
        self.runs.load(Ordering::SeqCst)
    }

    /// Sends it one command; a refusal, a dead server and no answer in time are errors.
    pub async fn try_call(&self, command: &[&str]) -> io::Result<Value> {
        self.try_calls(&[command]).await
    }

    /// Sends it commands on one connection; the last one's answer.
    pub async fn try_calls(&self, commands: &[&[&str]]) -> io::Result<Value> {
        let url = self.url();
        tokio::time::timeout(ANSWER_TIMEOUT, try_redis_all(&url, commands)).await.map_err(io::Error::from)?
    }

    /// Sends it one command that must succeed.
    pub async fn call(&self, command: &[&str]) -> Value {
        let answer = self.try_call(command).await;
        answer.unwrap_or_else(|error| panic!("{} ({}) to {command:?}: {error}", self.server.name(), self.port))
    }

    /// A section of INFO: `name:value` lines. Empty when it does not answer.
    pub async fn info(&self, section: &str) -> BTreeMap<String, String> {
        let text = self.try_call(&["INFO", section]).await.unwrap_or_default();
        fields(text.as_str().unwrap_or_default())
    }

    /// How often it has run a command (`evalsha`, `config|get`) since its start.
    pub async fn calls(&self, command: &str) -> u64 {
        let stats = self.info("commandstats").await;
        let Some(stat) = stats.get(&format!("cmdstat_{command}")) else { return 0 };
        let calls = stat.split(',').find_map(|field| field.strip_prefix("calls="));
        calls.and_then(|calls| calls.parse().ok()).unwrap_or_else(|| panic!("no calls in {stat}"))
    }

    /// SIGKILL. Its data stay.
    pub async fn kill(&self) {
        self.runs.store(false, Ordering::SeqCst);
        self.server.kill().await;
    }

    /// Starts it again, on its port, its data and its settings as they are now; waits until it answers.
    pub async fn restart(&self) {
        self.server.start(command(&self.dir, self.is_sentinel)).await;
        self.ready().await;
        self.runs.store(true, Ordering::SeqCst);
    }

    /// SIGSTOP: it keeps its connections, takes new ones, and answers no call.
    pub async fn freeze(&self) {
        self.runs.store(false, Ordering::SeqCst);
        self.server.signal(libc::SIGSTOP);
    }

    /// SIGCONT: it goes on where it was, and does not know that time has passed.
    pub async fn thaw(&self) {
        self.server.signal(libc::SIGCONT);
        self.runs.store(true, Ordering::SeqCst);
    }
}

/// `name:value` lines.
pub(super) fn fields(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

fn command(dir: &Path, is_sentinel: bool) -> Command {
    let mut command = Command::new(
        seckill::dev::server_program(seckill::dev::ServerKind::Redis, "redis-server").expect("a redis-server"),
    );
    command.current_dir(dir).arg(dir.join("redis.conf"));
    if is_sentinel {
        command.arg("--sentinel");
    }
    command
}
