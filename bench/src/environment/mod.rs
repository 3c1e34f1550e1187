//! The environment a benchmark stands on: private servers with a process for each role, or a running local stack.
//! The api role starts first and alone, so that accepting is measured alone; the others start when something is to land.
//! A crash leaves a folder under the system's temporary directory; servers and roles die with this process.

mod database;
mod hosts;
mod making;
mod replica;
mod sales;

use super::program::program;
use super::role_processes::{RoleProcesses, answers};
pub(super) use database::DatabaseSize;
use hosts::Hosts;
use making::Making;
use seckill::cli::{Failure, context};
use seckill::config::{Layers, Settings};
use seckill::dev::{DevState, External, PrivateServers, Server, ServerKind};
use seckill::domain::ids::SaleId;
use seckill::domain::sale::Sale;
use seckill::roles::{Role, RoleError, Servers};
use seckill::runtime::{Stopper, now_ms};
use seckill::store::mysql::{DatabaseAddress, migrate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The api must answer within this time.
const READY: Duration = Duration::from_secs(15);
/// Servers of an environment to which none was given.
const OWN_SERVERS: usize = 3;
const HOUR_MS: i64 = 3_600_000;

/// What is measured, and what it runs on.
pub(super) struct Environment {
    pub api: String,
    pub settings: Arc<Settings>,
    pub servers: Servers,
    pub stop: Stopper,
    /// Sales made here, for the audit at the end.
    pub sales: Vec<Sale>,
    private: Option<Private>,
    /// Sales of these are closed, and Redis has none of their keys.
    archived: Vec<SaleId>,
    /// Processes of a stack that was there before.
    external_pids: BTreeMap<String, u32>,
    run: String,
    /// How many sales and requests were made here so far.
    made: u64,
}

/// In what another environment differs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Difference<'a> {
    /// Each `section.key=value`.
    Settings(&'a [&'a str]),
    /// Another `seckill`.
    Build(&'a Path),
    /// Between its roles and its servers are hosts that can vanish.
    VanishingHosts,
    /// The access tokens are RS256; the file has the public key in PEM form.
    Rs256(&'a Path),
}

struct Private {
    // Fields drop in this order: the roles are gone before their servers.
    role_processes: RoleProcesses,
    servers: PrivateServers,
    /// Of Redis, where the settings want one.
    replica: Option<Server>,
    /// What the roles reach the servers through, where it is to vanish.
    hosts: Option<Hosts>,
    dir: PathBuf,
    /// What the command line said, for another one like it.
    layers: Layers,
    database: DatabaseSize,
}

impl Environment {
    /// A private one, with the api role only.
    pub async fn private(
        program: PathBuf,
        layers: &Layers,
        database: DatabaseSize,
        stop: &Stopper,
    ) -> Result<Self, Failure> {
        let secret = rand::random();
        Self::made(Making { program, layers, database, stop, hosts: false, public_key: None, secret }).await
    }

    async fn made(making: Making<'_>) -> Result<Self, Failure> {
        let run = format!("{:06x}", rand::random::<u32>() & 0x00ff_ffff);
        let dir = std::env::temp_dir().join(format!("seckill-bench-{run}"));
        let started = Self::start(making, &dir, run).await;
        // The servers are dead by now: nothing holds the folder.
        started.inspect_err(|_failure| drop(std::fs::remove_dir_all(&dir)))
    }

    async fn start(making: Making<'_>, dir: &Path, run: String) -> Result<Self, Failure> {
        let servers =
            PrivateServers::start_with_options(External::from_env(), making.database.options(), dir, &|_progress| {})
                .await?;
        let (layers, hosts) = (making.layers_on(&servers.urls()), making.hosts_of(&servers).await?);
        let settings = Arc::new(Settings::load(&layers)?);
        seckill::telemetry::init_logs(&settings.log).map_err(Failure::Usage)?;
        seckill::telemetry::init_metrics();
        let replica = match servers.port(ServerKind::Redis) {
            Some(port) if settings.redis.wait_replicas > 0 => Some(replica::start(dir, port).await?),
            Some(_) | None => None,
        };
        migrate::migrate(DatabaseAddress::new(&settings.mysql).map_err(RoleError::from)?).await?;
        // The roles alone: what reads the servers from here goes to them directly.
        let of_roles = match &hosts {
            Some(hosts) => Arc::new(Settings::load(&making.layers_on(&hosts.urls(servers.urls())))?),
            None => settings.clone(),
        };
        let mut role_processes = RoleProcesses::new(of_roles, &layers, making.program, dir.to_owned())?;
        role_processes.only(&[Role::Api]).await?;
        let (api, handles) = (role_processes.api(), context::servers(&settings).await?);
        let (dir, layers, database) = (dir.to_owned(), making.layers.clone(), making.database);
        let private = Some(Private { role_processes, servers, replica, hosts, dir, layers, database });
        let (stop, sales, external_pids, archived) = (making.stop.clone(), Vec::new(), BTreeMap::new(), Vec::new());
        Ok(Self { api, settings, servers: handles, stop, sales, private, archived, external_pids, run, made: 0 })
    }

    /// Another private one on servers of its own, which differs in one thing. `None` where a server was given: two grounds
    /// cannot share it.
    pub async fn another(&self, difference: Difference<'_>) -> Result<Option<Self>, Failure> {
        let own = |private: &&Private| private.servers.pids().len() == OWN_SERVERS;
        let Some(private) = self.private.as_ref().filter(own) else { return Ok(None) };
        let mut layers = private.layers.clone();
        let (mut hosts, mut public_key, mut program) = (false, None, program()?);
        match difference {
            Difference::Settings(settings) => layers.set.extend(settings.iter().map(|setting| (*setting).to_owned())),
            Difference::Build(other) => other.clone_into(&mut program),
            Difference::VanishingHosts => hosts = true,
            Difference::Rs256(file) => public_key = Some(file),
        }
        let (layers, database, secret) = (&layers, private.database, rand::random());
        Self::made(Making { program, layers, database, stop: &self.stop, hosts, public_key, secret }).await.map(Some)
    }

    /// The local stack that runs in `data_dir`, with all its roles.
    pub async fn here(layers: &Layers, data_dir: &Path, stop: &Stopper) -> Result<Self, Failure> {
        let none =
            || Failure::Failed(format!("no local stack runs in {}; start seckill dev first", data_dir.display()));
        let state = DevState::read(data_dir)?.ok_or_else(none)?;
        let settings = Arc::new(context::settings(layers, data_dir)?);
        answers(&format!("{}/v1/sales", state.api), READY).await?;
        let servers = context::servers(&settings).await?;
        let run = format!("{:06x}", rand::random::<u32>() & 0x00ff_ffff);
        let (stop, sales, external_pids, archived) = (stop.clone(), Vec::new(), state.pids, Vec::new());
        // An earlier run on the same stack has left its rows there, so this one counts from the time: 16 million a second.
        let made = (now_ms().unsigned_abs() / 1000) << 24;
        Ok(Self { api: state.api, settings, servers, stop, sales, private: None, archived, external_pids, run, made })
    }

    pub fn go_on(&self) -> Result<(), Failure> {
        let stopped = || Failure::Failed("stopped before the end, so there is no report".to_owned());
        if self.stop.is_stopped() { Err(stopped()) } else { Ok(()) }
    }

    /// Whether only the api role runs.
    pub fn is_api_alone(&self) -> bool {
        self.private.as_ref().is_some_and(|private| !private.role_processes.runs(Role::Relay))
    }

    /// Makes only the api role run. A stack that was there before is left as it is.
    pub async fn api_only(&mut self) -> Result<(), Failure> {
        self.roles(&[Role::Api]).await
    }

    /// Makes every role run.
    pub async fn all_roles(&mut self) -> Result<(), Failure> {
        self.roles(&Role::ALL).await
    }

    /// Makes these roles run and no others.
    pub async fn roles(&mut self, wanted: &[Role]) -> Result<(), Failure> {
        match &mut self.private {
            Some(private) => private.role_processes.only(wanted).await,
            None => Ok(()),
        }
    }

    /// Makes the api role run as this many processes, of which buyers reach the first. A stack that was there before is left as it is.
    pub async fn api_processes(&mut self, count: u32) -> Result<(), Failure> {
        match &mut self.private {
            Some(private) => private.role_processes.api_processes(count).await,
            None => Ok(()),
        }
    }

    /// Its roles; a stack that was there before has none of its own.
    pub fn role_processes(&self) -> Option<&RoleProcesses> {
        self.private.as_ref().map(|private| &private.role_processes)
    }

    /// Its folder, which goes with it; a stack that was there before has none of its own.
    pub fn folder(&self) -> Option<&Path> {
        self.private.as_ref().map(|private| private.dir.as_path())
    }

    /// Process ids by role and server; servers that were given have none.
    pub fn pids(&self) -> BTreeMap<String, u32> {
        match &self.private {
            Some(private) => private.role_processes.pids().into_iter().chain(private.servers.pids()).collect(),
            None => self.external_pids.clone(),
        }
    }

    /// kill -9 of a role, and a new process at once.
    pub async fn kill_role(&mut self, role: Role) -> Result<(), Failure> {
        match &mut self.private {
            Some(private) => private.role_processes.kill_and_restart(role).await,
            None => Err(Failure::Failed("only roles of its own are killed".to_owned())),
        }
    }

    /// The host of a server vanishes, and another one with its data is there. `false`: there is none to vanish.
    pub fn vanish(&self, kind: ServerKind) -> bool {
        let hosts = self.private.as_ref().and_then(|private| private.hosts.as_ref());
        hosts.is_some_and(|hosts| hosts.vanish(kind))
    }

    /// kill -9 of a server and its restart; returns when it answers. `false`: it was given, so it is left alone.
    pub async fn kill_server(&mut self, kind: ServerKind) -> Result<bool, Failure> {
        match &mut self.private {
            Some(private) if private.servers.pids().contains_key(kind.name()) => {
                private.servers.kill_and_restart(kind).await?;
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Reserves `count` numbers and returns the first. As request ids they are far below those of the entry.
    pub fn numbers(&mut self, count: u64) -> u64 {
        let first = self.made + 1;
        self.made += count;
        first
    }

    /// Entries in all outboxes.
    pub async fn backlog(&self) -> Result<u64, Failure> {
        let mut backlog = 0;
        for shard in 0..self.settings.redis.shards {
            backlog += self.servers.redis.outbox.depth(shard).await?.0;
        }
        Ok(backlog)
    }

    /// Stops what was started; closes the sales of a stack that goes on running.
    pub async fn leave(self) -> Result<(), Failure> {
        let Some(private) = self.private else {
            for sale in &self.sales {
                self.sale_control().close(&sale.sale_id).await?;
            }
            self.servers.redis.quit().await;
            return Ok(());
        };
        self.servers.redis.quit().await;
        // Everything has been counted and the data are deleted: dropping roles and servers kills them.
        drop((private.role_processes, private.servers, private.replica));
        Ok(std::fs::remove_dir_all(&private.dir)?)
    }
}
