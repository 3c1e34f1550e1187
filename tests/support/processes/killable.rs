//! A role as a process of its own beside the roles of a world. A test can kill it, or arm it with fault points
//! (`src/faults.rs`): it dies at a crash point, or works without a mechanism.

use super::programs::{Folder, Program, runs, without_surroundings};
use crate::support::world::{QUICK, World, eventually};
use seckill::dev::ports::free_port;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A process of the real binary.
pub struct KillableProcess {
    /// To wait for its end, or to end it.
    pub program: Program,
    listen: String,
    admin: String,
    _folder: Folder,
}

/// What a process has of its own.
#[derive(Default)]
pub struct ProcessOptions<'a> {
    /// Armed fault points, in the grammar of `FAILPOINTS`.
    pub failpoints: &'a str,
    /// Settings, over those of the world.
    pub sets: &'a [&'a str],
    /// Variables of its environment.
    pub env: Vec<(&'static str, String)>,
    /// Most files and sockets it may have open.
    pub open_files: Option<u64>,
    /// Another build than this one.
    pub program: Option<PathBuf>,
    /// Where its log goes, instead of to a file that the test reads.
    pub stderr: Option<Stdio>,
}

/// What 0.2.0 does not know.
const SETTINGS_SINCE: [&str; 8] = [
    "http.write_timeout_s=",
    "admin.tokens=",
    "rabbitmq.urls=",
    "mysql.urls=",
    "p1_entry.cache_stale_max_ms=",
    "p5_reconcile.auto_close_after_s=",
    "p6_fulfil.",
    "webhook",
];

/// Whether the version before takes a setting; it refuses what it does not know.
pub fn is_known_before(set: &str) -> bool {
    !SETTINGS_SINCE.iter().any(|unknown| set.starts_with(unknown))
}

/// The build of this source.
fn this_build() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_seckill"))
}

/// The last value of a setting among `sets`.
fn last_set<'a>(sets: &[&'a str], key: &str) -> Option<&'a str> {
    sets.iter().rev().find_map(|set| set.strip_prefix(key)?.strip_prefix('='))
}

fn limit_open_files(command: &mut Command, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    let set = move || {
        // SAFETY: reads what it is given, which lives until it is back.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    };
    // SAFETY: a system call and no allocation, which is allowed between fork and exec.
    unsafe { command.pre_exec(set) };
}

fn free_address() -> String {
    format!("127.0.0.1:{}", free_port().expect("a port"))
}

impl World {
    /// A build on this world's servers, with `FAILPOINTS`; settings in `args` override those of the world.
    pub fn binary(&self, program: &Path, failpoints: &str, args: &[&str]) -> Command {
        let sets = QUICK.iter().map(|set| (*set).to_owned()).chain(self.own_sets());
        let sets = sets.filter(|set| program == this_build() || is_known_before(set));
        // No settings of a `make run` that runs in this folder.
        let own = ["--data-dir", "/nonexistent"].map(str::to_owned).into_iter();
        let config = self.config_file().into_iter().flat_map(|file| ["--config".into(), file.display().to_string()]);
        let all: Vec<String> = own.chain(config).chain(sets.flat_map(|set| ["--set".to_owned(), set])).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).chain(args.iter().copied()).collect();
        let mut command = without_surroundings(program, &all);
        command.env("FAILPOINTS", failpoints);
        command
    }

    /// Settings of processes that work on sales which the test itself warms.
    fn armed_sets(&self) -> [String; 2] {
        let quiet_ms = self.settings.p5_reconcile.quiet_ms;
        [format!("p5_reconcile.quiet_ms={quiet_ms}"), "p5_reconcile.warm_ahead_ms=0".to_owned()]
    }

    /// Runs a subcommand to its end with `failpoints`; whether it was killed.
    pub fn run_armed(&self, failpoints: &str, args: &[&str]) -> bool {
        let sets = self.armed_sets();
        let all: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).chain(args.iter().copied()).collect();
        let output = self.binary(this_build(), failpoints, &all).output().expect("the binary runs");
        if output.status.code().is_some() {
            eprintln!("{args:?} lived: {} {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        output.status.code().is_none()
    }

    /// Starts `role` with `failpoints` and settings; empty for none.
    pub fn process(&self, role: &str, failpoints: &str, sets: &[&str]) -> KillableProcess {
        self.spawn(role, ProcessOptions { failpoints, sets, ..ProcessOptions::default() })
    }

    /// Starts a role with `failpoints`. An api is waited for until it serves buyers.
    pub async fn start_armed(&self, failpoints: &str, role: &str) -> KillableProcess {
        let sets = self.armed_sets();
        let process = self.process(role, failpoints, &sets.each_ref().map(String::as_str));
        if role == "api" {
            process.serves_buyers().await;
        }
        process
    }

    /// A reconciler that audits as often as can be.
    pub fn busy_reconciler(&self, sets: &[&str]) -> KillableProcess {
        self.process("reconcile", "", &[&["p5_reconcile.interval_ms=100"], sets].concat())
    }

    /// Starts a role and waits for nothing.
    pub fn spawn(&self, role: &str, options: ProcessOptions<'_>) -> KillableProcess {
        let s = &self.settings;
        let address = |key: &str| last_set(options.sets, key).map_or_else(free_address, str::to_owned);
        let (listen, admin) = (address("http.listen"), address("admin.listen"));
        let own = [
            format!("runtime.node={}-{role}", s.runtime.node),
            format!("http.listen={listen}"),
            format!("admin.listen={admin}"),
        ];
        let sets = own.iter().map(String::as_str).chain(options.sets.iter().copied());
        let args: Vec<&str> = sets.flat_map(|set| ["--set", set]).chain(["--role", role]).collect();
        let program = options.program.as_deref().unwrap_or_else(|| this_build());
        let mut command = self.binary(program, options.failpoints, &args);
        command.envs(options.env);
        options.open_files.into_iter().for_each(|most| limit_open_files(&mut command, most));
        let folder = Folder::new(&format!("{}-{role}-{:x}", s.redis.prefix, rand::random::<u32>()));
        let program = Program::run_to(folder.path(), command, options.stderr);
        KillableProcess { program, listen, admin, _folder: folder }
    }

    /// Buys at another process; `None` when the answer never came.
    pub async fn buy_at(&self, at: &KillableProcess, sale: &str, user: &str, token: Option<&str>) -> Option<u16> {
        let mut request = self
            .http
            .post(format!("{}/v1/sales/{sale}/orders", at.api_url()))
            .bearer_auth(self.access(user))
            .json(&serde_json::json!({ "quantity": 1 }));
        if let Some(token) = token {
            request = request.header("Idempotency-Key", token);
        }
        request.send().await.ok().map(|answer| answer.status().as_u16())
    }
}

impl KillableProcess {
    /// The public address of an api process.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// Where its metrics and its readiness are, `ip:port`.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Waits until it died of its own SIGKILL at a crash point.
    pub async fn dies_at(mut self, point: &str) {
        let code = self.program.ended().await;
        let log = self.program.stderr();
        assert!(code.is_none() && log.contains("dying at a crash point"), "{point}: {code:?} {log}");
    }

    /// Whether it is gone.
    pub fn has_died(&self) -> bool {
        !runs(self.program.pid())
    }

    /// Waits until it has died at its crash point.
    pub async fn died(&self) {
        eventually("it dies at its crash point", async || self.has_died()).await;
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.program.kill();
    }

    /// Waits until it serves buyers.
    pub async fn serves_buyers(&self) {
        let sales = format!("{}/v1/sales", self.api_url());
        eventually("the api answers", async || reqwest::get(&sales).await.is_ok()).await;
    }

    /// Whether it answers that it is alive.
    pub async fn is_alive(&self) -> bool {
        let answer = reqwest::get(format!("http://{}/livez", self.admin)).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Whether it says that it is ready, and what it says about one thing that it needs.
    pub async fn readiness(&self, of: &str) -> Option<(bool, serde_json::Value)> {
        let answer = reqwest::get(format!("http://{}/readyz", self.admin)).await.ok()?;
        let body: serde_json::Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
        let need = body["needs"].as_array()?.iter().find(|need| need["name"] == of).cloned();
        Some((body["ready"] == true, need.unwrap_or_default()))
    }

    /// The counter of a state of P5; -1 while the process does not answer or does not have it.
    pub async fn p5_state(&self, code: &str) -> f64 {
        let name = format!("seckill_state_total{{phase=\"p5_reconcile\",code=\"{code}\"}}");
        self.metric(&name).await.unwrap_or(-1.0)
    }

    /// The value of a metric, with all its labels; `None` while the process does not answer or does not have it.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let text = reqwest::get(format!("http://{}/metrics", self.admin)).await.ok()?.text().await.ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until a metric is as wanted.
    pub async fn until_metric(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        eventually(name, async || self.metric(name).await.is_some_and(&wanted)).await;
    }
}
