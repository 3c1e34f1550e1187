//! The set of three servers that `seckill dev` and the integration tests run on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::encryption::Encryption;
use super::kind::ServerKind;
use super::lock::DirLock;
use super::ports::free_port;
use super::rabbitmq::{self, BrokerNode, RabbitPorts};
use super::server::{self, Server};
use super::state::DevState;
use super::{DevError, mariadb, redis};

/// Where the three servers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrls {
    /// Redis, as `redis://127.0.0.1:port`.
    pub redis_url: String,
    /// RabbitMQ, as `amqp://guest:guest@127.0.0.1:port/%2f`.
    pub amqp_url: String,
    /// The database, as `mysql://root@127.0.0.1:port/seckill`.
    pub mysql_url: String,
}

/// Existing servers to use instead of private ones; they are never started, stopped or killed here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct External {
    urls: BTreeMap<ServerKind, String>,
}

impl External {
    /// From `SECKILL_REDIS_URL`, `SECKILL_AMQP_URL` and `SECKILL_MYSQL_URL`; empty ones do not count.
    #[must_use]
    pub fn from_env() -> Self {
        let url = |kind: ServerKind| std::env::var(kind.url_variable()).ok().filter(|url| !url.is_empty());
        Self { urls: ServerKind::ALL.into_iter().filter_map(|kind| Some((kind, url(kind)?))).collect() }
    }
}

/// What `start` reports while it works.
#[derive(Debug, Clone, Copy)]
pub enum ServerProgress {
    /// The server is being started.
    Starting(ServerKind),
    /// The server answers.
    Ready {
        /// The server that gets ready.
        kind: ServerKind,
        /// Time since its start.
        took: Duration,
    },
}

/// In what servers differ from those of `seckill dev`.
#[derive(Debug, Clone, Default)]
struct Making {
    /// They take TLS only.
    encryption: Option<Encryption>,
    /// More options of the database.
    mysql_options: Vec<String>,
}

/// The private servers of one data folder. Dropping the value kills them; `stop` is the gentle way.
#[derive(Debug)]
pub struct PrivateServers {
    // Fields drop in this order: the servers are dead before the folder is free for another owner.
    servers: BTreeMap<ServerKind, Server>,
    external: External,
    /// The private broker, for administration.
    broker: Option<BrokerNode>,
    dir: PathBuf,
    _lock: DirLock,
}

impl PrivateServers {
    /// Starts all three at once on the data in `dir` (made when missing) and waits until all answer. Ports are new at
    /// each start and stay for the life of the value. When one fails, the others are killed.
    pub async fn start(dir: &Path, on_progress: &(dyn Fn(ServerProgress) + Sync)) -> Result<Self, DevError> {
        Self::start_beside(External::default(), dir, on_progress).await
    }

    /// Like [`PrivateServers::start`], but only those that `external` does not name.
    /// When one fails, the others are killed.
    pub async fn start_beside(
        external: External,
        dir: &Path,
        on_progress: &(dyn Fn(ServerProgress) + Sync),
    ) -> Result<Self, DevError> {
        Self::start_all(external, Making::default(), dir, on_progress).await
    }

    /// Like [`PrivateServers::start_beside`], with more options on the database's command line, as `--log-bin=binlog`.
    /// When one fails, the others are killed.
    pub async fn start_with_options(
        external: External,
        mysql_options: &[&str],
        dir: &Path,
        on_progress: &(dyn Fn(ServerProgress) + Sync),
    ) -> Result<Self, DevError> {
        let mysql_options = mysql_options.iter().map(|option| (*option).to_owned()).collect();
        let making = Making { mysql_options, ..Making::default() };
        Self::start_all(external, making, dir, on_progress).await
    }

    /// Like [`PrivateServers::start`], but the servers take TLS only. When one fails, the others are killed.
    pub async fn start_encrypted(dir: &Path, encryption: Encryption) -> Result<Self, DevError> {
        let making = Making { encryption: Some(encryption), ..Making::default() };
        Self::start_all(External::default(), making, dir, &|_progress| {}).await
    }

    async fn start_all(
        external: External,
        making: Making,
        dir: &Path,
        on_progress: &(dyn Fn(ServerProgress) + Sync),
    ) -> Result<Self, DevError> {
        let dir = server::make_dir(dir)?;
        let lock = DirLock::take(&dir)?;
        let ports = RabbitPorts { amqp: free_port()?, dist: free_port()? };
        let broker = (!external.urls.contains_key(&ServerKind::Rabbitmq))
            .then(|| BrokerNode { dir: dir.join(ServerKind::Rabbitmq.name()), ports });
        let wanted = ServerKind::ALL.into_iter().filter(|kind| !external.urls.contains_key(kind));
        let starts = wanted.map(|kind| {
            let (dir, making) = (dir.join(kind.name()), making.clone());
            async move {
                on_progress(ServerProgress::Starting(kind));
                let begin = Instant::now();
                let server = start_one(kind, &dir, ports, making).await?;
                on_progress(ServerProgress::Ready { kind, took: begin.elapsed() });
                Ok::<_, DevError>((kind, server))
            }
        });
        let servers = futures::future::try_join_all(starts).await?.into_iter().collect();
        Ok(Self { servers, external, broker, dir, _lock: lock })
    }

    /// The data folder, absolute.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the servers are, private or not.
    #[must_use]
    pub fn urls(&self) -> ServerUrls {
        let url = |kind| match (self.servers.get(&kind), self.external.urls.get(&kind)) {
            (Some(server), _) => server.url(),
            (None, Some(url)) => url.clone(),
            (None, None) => String::new(),
        };
        ServerUrls {
            redis_url: url(ServerKind::Redis),
            amqp_url: url(ServerKind::Rabbitmq),
            mysql_url: url(ServerKind::Mysql),
        }
    }

    /// Process ids by name (`redis`, `rabbitmq`, `mysql`), of the private ones. They change with a restart.
    #[must_use]
    pub fn pids(&self) -> BTreeMap<String, u32> {
        self.servers.iter().map(|(kind, server)| (kind.name().to_owned(), server.pid())).collect()
    }

    /// The port of a private one.
    #[must_use]
    pub fn port(&self, kind: ServerKind) -> Option<u16> {
        self.servers.get(&kind).map(Server::port)
    }

    /// One server, to kill, pause, resume or restart it.
    pub fn server(&mut self, kind: ServerKind) -> Result<&mut Server, DevError> {
        self.servers.get_mut(&kind).ok_or(DevError::NotPrivate(kind))
    }

    /// kill -9, then a start on the same data and port; returns when the server answers again.
    pub async fn kill_and_restart(&mut self, kind: ServerKind) -> Result<(), DevError> {
        // `restart` kills what still runs.
        self.server(kind)?.restart().await
    }

    /// Makes a virtual host on the private broker, for one test alone. Fine when it is there already.
    pub async fn add_vhost(&self, name: &str) -> Result<(), DevError> {
        self.broker()?.add_vhost(name).await
    }

    /// Removes a virtual host of the private broker with everything in it. Fine when it is gone already.
    pub async fn remove_vhost(&self, name: &str) -> Result<(), DevError> {
        self.broker()?.remove_vhost(name).await
    }

    /// Runs an Erlang expression in the private broker and returns `{ok, Value}` or what went wrong, as text: alarms,
    /// policies and closed connections for tests.
    pub async fn ask_broker(&self, program: &str) -> Result<String, DevError> {
        self.broker()?.evaluate(program).await
    }

    fn broker(&self) -> Result<&BrokerNode, DevError> {
        self.broker.as_ref().ok_or(DevError::NotPrivate(ServerKind::Rabbitmq))
    }

    /// Restarts every server that has died, on its data and port, and says which and how that went. A server that could
    /// not be restarted stays dead and is tried again by the next call. Dropping the future early is safe.
    pub async fn check_and_restart_dead(&mut self) -> Vec<(ServerKind, Result<(), DevError>)> {
        let dead = self.servers.iter_mut().filter_map(|(kind, server)| (!server.is_alive()).then_some((*kind, server)));
        futures::future::join_all(dead.map(|(kind, server)| async move { (kind, server.restart().await) })).await
    }

    /// Stops the broker, then Redis, then the database. All are dead afterwards, whatever is returned.
    /// A failure keeps no other server running.
    pub async fn stop(mut self) -> Result<(), DevError> {
        let mut result = Ok(());
        for server in self.servers.values_mut() {
            result = result.and(server.stop().await.map(|_status| ()));
        }
        result
    }
}

/// Forgets the data in `dir`, unless a running stack holds it.
pub fn clear(dir: &Path) -> Result<(), DevError> {
    if !dir.exists() {
        return Ok(());
    }
    let _lock = DirLock::take(dir)?;
    for kind in ServerKind::ALL {
        let data = dir.join(kind.name());
        if data.exists() {
            std::fs::remove_dir_all(&data).map_err(DevError::io("remove", &data))?;
        }
    }
    let secrets = super::secrets::path(dir);
    if secrets.exists() {
        std::fs::remove_file(&secrets).map_err(DevError::io("remove", &secrets))?;
    }
    DevState::remove(dir)
}

async fn start_one(kind: ServerKind, dir: &Path, ports: RabbitPorts, making: Making) -> Result<Server, DevError> {
    let Making { encryption, mysql_options } = making;
    match kind {
        ServerKind::Redis => redis::start_with(dir, free_port()?, encryption).await,
        ServerKind::Rabbitmq => rabbitmq::start_with(dir, ports, encryption).await,
        ServerKind::Mysql => mariadb::start_as(dir, free_port()?, encryption, mysql_options).await,
    }
}
