//! The roles of a private environment: one process each, as in production, so that the machine's work can be distinguished by
//! process. Started and stopped as a measurement needs them; the load generator is this process.
//!
//! A crash of this process kills them (the kernel does).

use seckill::cli::Failure;
use seckill::config::{Layers, Settings};
use seckill::dev::{Child, Listen, RoleProcess, environment, ports::free_port};
use seckill::roles::Role;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A role must be ready within this time.
const READY: Duration = Duration::from_secs(30);
const CHECK_EVERY: Duration = Duration::from_millis(10);
/// A role that is not wanted for the next measurement has this long to drain.
const DRAIN: Duration = Duration::from_secs(5);
/// Settings whose values are secrets or hold passwords: they go by the environment, never by a command line.
const SECRET: [&str; 6] =
    ["redis.url=", "rabbitmq.url=", "mysql.url=", "auth.secret=", "admin.token=", "p1_entry.token_secret="];

/// The role processes.
pub(super) struct RoleProcesses {
    settings: Arc<Settings>,
    layers: Layers,
    dir: PathBuf,
    /// `seckill`, whose roles these are.
    program: PathBuf,
    listens: BTreeMap<Role, Listen>,
    running: BTreeMap<Role, RoleProcess>,
    /// Of the api role beside the first.
    further_apis: Vec<RoleProcess>,
}

impl RoleProcesses {
    /// No process yet. `layers` are those that made `settings`.
    pub fn new(settings: Arc<Settings>, layers: &Layers, program: PathBuf, dir: PathBuf) -> Result<Self, Failure> {
        let address = || Ok::<_, Failure>(format!("127.0.0.1:{}", free_port()?));
        let public = address()?;
        let mut listens = BTreeMap::new();
        for role in Role::ALL {
            listens.insert(role, Listen { public: public.clone(), admin: address()?, shop: false });
        }
        let plain = |set: &&String| !SECRET.iter().any(|secret| set.starts_with(secret));
        let set = layers.set.iter().filter(plain).cloned().collect();
        let layers = Layers { files: layers.files.clone(), set };
        Ok(Self { settings, layers, dir, program, listens, running: BTreeMap::new(), further_apis: Vec::new() })
    }

    /// Where the api role is.
    pub fn api(&self) -> String {
        self.listens.get(&Role::Api).map(|listen| format!("http://{}", listen.public)).unwrap_or_default()
    }

    /// Whether `role` runs.
    pub fn runs(&self, role: Role) -> bool {
        self.running.contains_key(&role)
    }

    /// Makes these roles run and no others; returns when all are ready.
    pub async fn only(&mut self, wanted: &[Role]) -> Result<(), Failure> {
        for role in Role::ALL.into_iter().filter(|role| !wanted.contains(role)) {
            if let Some(process) = self.running.remove(&role) {
                process.stop(DRAIN).await?;
            }
        }
        for role in wanted.iter().copied().filter(|role| !self.running.contains_key(role)).collect::<Vec<_>>() {
            let Some(listen) = self.listens.get(&role) else { continue };
            let process =
                RoleProcess::start(role, &self.program, (&self.layers, &self.settings), listen, &self.dir).await?;
            self.running.insert(role, process);
        }
        for role in wanted {
            self.ready(*role).await?;
        }
        Ok(())
    }

    /// Makes the api role run as this many processes; returns when all are ready. Only the first is one of [`Self::pids`].
    pub async fn api_processes(&mut self, count: u32) -> Result<(), Failure> {
        let further = usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
        for process in self.further_apis.drain(self.further_apis.len().min(further)..) {
            process.stop(DRAIN).await?;
        }
        while self.further_apis.len() < further {
            let address = || Ok::<_, Failure>(format!("127.0.0.1:{}", free_port()?));
            let listen = Listen { public: address()?, admin: address()?, shop: false };
            let dir = self.dir.join(format!("api-{}", self.further_apis.len() + 2));
            std::fs::create_dir_all(&dir)?;
            let settings = (&self.layers, self.settings.as_ref());
            self.further_apis.push(RoleProcess::start(Role::Api, &self.program, settings, &listen, &dir).await?);
            answers(&format!("http://{}/v1/sales", listen.public), READY).await?;
        }
        Ok(())
    }

    async fn ready(&self, role: Role) -> Result<(), Failure> {
        let Some(listen) = self.listens.get(&role) else { return Ok(()) };
        let url = match role {
            Role::Api => format!("http://{}/v1/sales", listen.public),
            Role::Relay | Role::Consumer | Role::Reconcile => format!("http://{}/readyz", listen.admin),
        };
        answers(&url, READY).await
    }

    /// kill -9 of a role, and a new process at once; it is not waited for.
    pub async fn kill_and_restart(&mut self, role: Role) -> Result<(), Failure> {
        let none = || Failure::Failed(format!("the role {} does not run", role.name()));
        Ok(self.running.get_mut(&role).ok_or_else(none)?.kill_and_restart().await?)
    }

    /// Another child of this program: `words` after the settings that the roles have. What it prints is its log.
    pub async fn child(&self, name: &str, words: &[String]) -> Result<Child, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        for file in &self.layers.files {
            command.arg("--config").arg(file);
        }
        for set in &self.layers.set {
            command.arg("--set").arg(set);
        }
        command.args(words).envs(environment(&self.settings));
        Ok(Child::spawn(name, command, &self.dir.join(format!("{name}.log"))).await?)
    }

    /// Process ids by role.
    pub fn pids(&self) -> BTreeMap<String, u32> {
        self.running.iter().map(|(role, process)| (role.name().to_owned(), process.pid())).collect()
    }
}

/// Waits until `url` answers with success.
pub(super) async fn answers(url: &str, within: Duration) -> Result<(), Failure> {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(3)).no_proxy().build();
    let client = client.map_err(|error| Failure::Failed(error.to_string()))?;
    let end = Instant::now() + within;
    loop {
        match client.get(url).send().await {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(_) | Err(_) if Instant::now() < end => tokio::time::sleep(CHECK_EVERY).await,
            Ok(answer) => return Err(Failure::Failed(format!("{url} answers {}", answer.status()))),
            Err(error) => return Err(Failure::Failed(format!("{url} does not answer: {error}"))),
        }
    }
}
