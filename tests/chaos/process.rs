//! A role of the real binary as a process, with a link of its own to each server, and what a service manager does for it: it starts it again.

use super::files::seckill;
use super::support::links::link::Link;
use super::time::{pause, time_passes};
use crate::support::processes::supervised::Supervised;
use seckill::roles::Role;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Between an end and the next start, as a service manager would wait.
const RESTART_MS: u64 = 200;

/// An environment variable for the processes of a role, e.g. `FAILPOINTS`.
#[derive(Debug, Clone)]
pub struct RoleEnv {
    /// Whose.
    pub role: Role,
    /// Variable.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Only in each process' first life; those that are started after an end do not have it.
    pub first_life_only: bool,
}

/// The links of one process, each with conditions of its own.
pub struct Links {
    /// To Redis.
    pub redis: Link,
    /// To RabbitMQ.
    pub amqp: Link,
    /// To the database.
    pub mysql: Link,
    /// From buyers; only in front of an api process.
    pub clients: Option<Link>,
}

impl Links {
    /// All of them with their names.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Link)> {
        let servers = [("redis", &self.redis), ("amqp", &self.amqp), ("mysql", &self.mysql)];
        servers.into_iter().chain(self.clients.as_ref().map(|clients| ("clients", clients)))
    }
}

/// The end of a life.
#[derive(Debug, Clone)]
pub struct End {
    /// Process.
    pub name: String,
    /// Which of its lives, from 1.
    pub life: u32,
    /// How.
    pub status: ExitStatus,
    /// Whether it was ended from here, by a signal.
    pub ordered: bool,
}

/// How to start a process, again and again.
pub struct Recipe {
    /// Its role.
    pub role: Role,
    /// Its name and `runtime.node`, e.g. `relay-0`.
    pub name: String,
    /// Arguments of the binary.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<RoleEnv>,
    /// Output of all its lives.
    pub log: PathBuf,
    /// The folder for its lines, in a run that is traced.
    pub traces: Option<PathBuf>,
    /// Its admin listener.
    pub admin_port: u16,
    /// Its public listener; 0 for none.
    pub public_port: u16,
}

/// A role process over all its lives.
pub struct Process {
    /// How it is started.
    pub recipe: Recipe,
    /// To the servers, and from buyers.
    pub links: Links,
    program: Supervised,
    /// Whether it should run.
    wanted: AtomicBool,
    /// Whether its end was ordered.
    ordered: AtomicBool,
    ends: Mutex<Vec<End>>,
    /// Where the next life is to end, for `FAILPOINTS`.
    armed: Mutex<Option<String>>,
    http: reqwest::Client,
}

impl Process {
    /// Not started yet.
    pub fn new(recipe: Recipe, links: Links, http: reqwest::Client) -> Arc<Self> {
        Arc::new(Self {
            program: Supervised::new(&recipe.name, &recipe.log),
            recipe,
            links,
            wanted: AtomicBool::new(false),
            ordered: AtomicBool::new(false),
            ends: Mutex::default(),
            armed: Mutex::default(),
            http,
        })
    }

    /// Its name, e.g. `relay-0`.
    pub fn name(&self) -> &str {
        &self.recipe.name
    }

    /// How often it was started.
    pub fn lives(&self) -> u32 {
        self.program.lives()
    }

    /// Ends that were not ordered here: by a crash point, by an error, by itself.
    pub fn unordered_ends(&self) -> Vec<End> {
        self.ends.lock().expect("not poisoned").iter().filter(|end| !end.ordered).cloned().collect()
    }

    /// Whether it should run; a supervisor starts it within moments.
    pub fn want(&self, wanted: bool) {
        self.wanted.store(wanted, SeqCst);
    }

    /// Whether it should run.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(SeqCst)
    }

    /// Its process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.program.pid()
    }

    /// Sends a signal, if it runs.
    pub fn signal(&self, signal: i32) {
        self.program.signal(signal);
    }

    /// Ends its life, so that the next one begins with these fault points armed beside those of its environment.
    pub fn rearm(&self, failpoints: &str) {
        *self.armed.lock().expect("not poisoned") = Some(failpoints.to_owned());
        self.kill();
    }

    /// kill -9.
    pub fn kill(&self) {
        self.ordered.store(true, SeqCst);
        self.signal(libc::SIGKILL);
    }

    /// SIGTERM; returns how it ended and how long that took, `None` when it had to be killed after `limit`.
    pub async fn terminate(&self, limit: Duration) -> Option<(ExitStatus, Duration)> {
        let begun = Instant::now();
        self.ordered.store(true, SeqCst);
        let life = self.lives();
        self.signal(libc::SIGTERM);
        // A stopped process would not see the SIGTERM.
        self.signal(libc::SIGCONT);
        while begun.elapsed() < limit {
            if let Some(status) = self.ended(life) {
                return Some((status, begun.elapsed()));
            }
            pause().await;
        }
        self.kill();
        None
    }

    /// Whether it answers that it is ready, and serves when it is an api.
    pub async fn is_ready(&self) -> bool {
        let ok = async |url: String| self.http.get(url).send().await.is_ok_and(|answer| answer.status().is_success());
        let (admin, public) = (self.recipe.admin_port, self.recipe.public_port);
        ok(format!("http://127.0.0.1:{admin}/readyz")).await
            && (public == 0 || ok(format!("http://127.0.0.1:{public}/v1/sales")).await)
    }

    /// Whether it says that a server it needs answers.
    pub async fn reaches(&self, server: &str) -> bool {
        let url = format!("http://127.0.0.1:{}/readyz", self.recipe.admin_port);
        let Ok(answer) = self.http.get(url).send().await else { return false };
        let body: serde_json::Value =
            serde_json::from_slice(&answer.bytes().await.unwrap_or_default()).unwrap_or_default();
        let needs = body["needs"].as_array().cloned().unwrap_or_default();
        !needs.iter().any(|need| need["name"] == server && need["ok"] == false)
    }

    /// Its metrics as text; `None` while it does not answer.
    pub async fn metrics(&self) -> Option<String> {
        let url = format!("http://127.0.0.1:{}/metrics", self.recipe.admin_port);
        self.http.get(url).send().await.ok()?.text().await.ok()
    }

    /// Keeps it running while it is wanted. `restarts`: also after it has ended.
    pub async fn supervise(self: Arc<Self>, restarts: bool) {
        loop {
            pause().await;
            let life = self.lives();
            let ended = if life == 0 { None } else { self.ended(life) };
            if life > 0 && ended.is_none() {
                continue;
            }
            if let Some(status) = ended {
                self.note(life, status);
                if !restarts {
                    return;
                }
                time_passes(RESTART_MS).await;
            }
            while !self.is_wanted() {
                pause().await;
            }
            self.start().await;
        }
    }

    fn ended(&self, life: u32) -> Option<ExitStatus> {
        let (last, ended) = self.program.last_life();
        if last == life {
            return ended;
        }
        let ends = self.ends.lock().expect("not poisoned");
        ends.iter().find(|end| end.life == life).map(|end| end.status)
    }

    fn note(&self, life: u32, status: ExitStatus) {
        let ordered = self.ordered.swap(false, SeqCst);
        let end = End { name: self.name().to_owned(), life, status, ordered };
        self.ends.lock().expect("not poisoned").push(end);
    }

    async fn start(&self) {
        let args: Vec<&str> = self.recipe.args.iter().map(String::as_str).collect();
        let mut command = seckill(&args);
        command.env_remove("FAILPOINTS");
        if let Some(traces) = &self.recipe.traces {
            command.env("SECKILL_TRACE", traces);
        }
        let of_life = self.recipe.env.iter().filter(|env| !env.first_life_only || self.lives() == 0);
        let mut failpoints: Vec<String> = self.armed.lock().expect("not poisoned").take().into_iter().collect();
        for env in of_life {
            if env.name == "FAILPOINTS" {
                failpoints.push(env.value.clone());
            } else {
                command.env(&env.name, &env.value);
            }
        }
        if !failpoints.is_empty() {
            command.env("FAILPOINTS", failpoints.join(";"));
        }
        self.program.start(command).await;
    }
}
