//! One private server: started, watched, killed and restarted the same way whichever of the three it is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::child::Child;
use super::encryption::Encryption;
use super::{DevError, mariadb, probe, rabbitmq, redis};

/// From the start of the process to the first answer in its protocol. Seconds are normal; a crowded machine, or a
/// broker that recovers a long queue, may need many.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const READY_POLL: Duration = Duration::from_millis(20);

/// The three kinds of server, in the order they are stopped: the broker first (nothing is delivered any more), the
/// database last (it is the truth).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerKind {
    /// RabbitMQ.
    Rabbitmq,
    /// Redis.
    Redis,
    /// MariaDB (or MySQL when it is an existing server).
    Mysql,
}

impl ServerKind {
    /// All kinds, in stop order.
    pub const ALL: [Self; 3] = [Self::Rabbitmq, Self::Redis, Self::Mysql];

    /// Name in folders, messages and `dev.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rabbitmq => "rabbitmq",
            Self::Redis => "redis",
            Self::Mysql => "mysql",
        }
    }

    /// Environment variable that points at an existing server instead.
    #[must_use]
    pub const fn url_variable(self) -> &'static str {
        match self {
            Self::Rabbitmq => "SECKILL_AMQP_URL",
            Self::Redis => "SECKILL_REDIS_URL",
            Self::Mysql => "SECKILL_MYSQL_URL",
        }
    }

    /// Debian package that installs it.
    #[must_use]
    pub const fn debian_package(self) -> &'static str {
        match self {
            Self::Rabbitmq => "rabbitmq-server",
            Self::Redis => "redis-server",
            Self::Mysql => "mariadb-server",
        }
    }

    /// How long SIGTERM may take before SIGKILL follows.
    const fn stop_timeout(self) -> Duration {
        match self {
            Self::Redis => Duration::from_secs(10),
            Self::Rabbitmq | Self::Mysql => Duration::from_secs(30),
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// How one server is started, again and again, on the same data and port.
#[derive(Debug)]
pub(super) enum Plan {
    Redis(redis::Plan),
    Rabbitmq(rabbitmq::Plan),
    Mysql(mariadb::Plan),
}

impl Plan {
    const fn kind(&self) -> ServerKind {
        match self {
            Self::Redis(_) => ServerKind::Redis,
            Self::Rabbitmq(_) => ServerKind::Rabbitmq,
            Self::Mysql(_) => ServerKind::Mysql,
        }
    }

    fn command(&self) -> Command {
        match self {
            Self::Redis(plan) => plan.command(),
            Self::Rabbitmq(plan) => plan.command(),
            Self::Mysql(plan) => plan.command(),
        }
    }

    const fn encryption(&self) -> Option<&Encryption> {
        match self {
            Self::Redis(plan) => plan.encryption.as_ref(),
            Self::Rabbitmq(plan) => plan.encryption.as_ref(),
            Self::Mysql(plan) => plan.encryption.as_ref(),
        }
    }

    const fn port(&self) -> u16 {
        match self {
            Self::Redis(plan) => plan.port,
            Self::Rabbitmq(plan) => plan.ports.amqp,
            Self::Mysql(plan) => plan.port,
        }
    }
}

/// A private server. Dropping it kills it; its data stay.
#[derive(Debug)]
pub struct Server {
    plan: Plan,
    log: PathBuf,
    child: Child,
}

impl Server {
    /// Starts it and waits until it answers.
    pub(super) async fn start(plan: Plan, dir: &Path) -> Result<Self, DevError> {
        let log = dir.join("server.log");
        let child = Child::spawn(plan.kind().name(), plan.command(), &log).await?;
        let mut server = Self { plan, log, child };
        server.ready().await?;
        Ok(server)
    }

    /// Which of the three it is.
    #[must_use]
    pub fn kind(&self) -> ServerKind {
        self.plan.kind()
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.plan.port()
    }

    /// Process id of the server itself (no shell in between).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// URL with scheme, host and port.
    #[must_use]
    pub fn url(&self) -> String {
        let (s, host) = self.plan.encryption().map_or(("", "127.0.0.1"), |encryption| ("s", &encryption.name));
        let place = format!("{host}:{}", self.port());
        match self.kind() {
            ServerKind::Redis => format!("redis{s}://{place}"),
            ServerKind::Rabbitmq => format!("amqp{s}://guest:guest@{place}/%2f"),
            ServerKind::Mysql => format!("mysql{s}://root@{place}/{}", mariadb::DATABASE),
        }
    }

    /// True while its process runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.is_alive()
    }

    /// SIGKILL; its data stay, and [`Server::restart`] brings it back.
    ///
    /// # Errors
    /// [`DevError::Stop`].
    pub async fn kill(&mut self) -> Result<ExitStatus, DevError> {
        self.child.kill().await
    }

    /// SIGTERM, then SIGKILL when that takes too long. Data stay.
    ///
    /// # Errors
    /// [`DevError::Stop`].
    pub async fn stop(&mut self) -> Result<ExitStatus, DevError> {
        self.child.terminate(self.kind().stop_timeout()).await
    }

    /// SIGSTOP: it keeps its connections and answers nobody.
    ///
    /// # Errors
    /// [`DevError::Stop`].
    pub fn pause(&mut self) -> Result<(), DevError> {
        self.child.signal(libc::SIGSTOP)
    }

    /// SIGCONT: undoes [`Server::pause`].
    ///
    /// # Errors
    /// [`DevError::Stop`].
    pub fn resume(&mut self) -> Result<(), DevError> {
        self.child.signal(libc::SIGCONT)
    }

    /// Starts it again on its data and port (killing it first when it still runs) and waits until it answers.
    ///
    /// # Errors
    /// Those of the first start.
    pub async fn restart(&mut self) -> Result<(), DevError> {
        self.child.kill().await?;
        self.child = Child::spawn(self.kind().name(), self.plan.command(), &self.log).await?;
        self.ready().await
    }

    /// The broker's plan, for what is asked of it besides messages.
    pub(super) fn rabbitmq(&self) -> Option<&rabbitmq::Plan> {
        match &self.plan {
            Plan::Rabbitmq(plan) => Some(plan),
            Plan::Redis(_) | Plan::Mysql(_) => None,
        }
    }

    async fn ready(&mut self) -> Result<(), DevError> {
        let name = self.kind().name().to_owned();
        let end = Instant::now() + READY_TIMEOUT;
        let tls = self.plan.encryption().map(probe::tls).transpose()?;
        let place = probe::Place { kind: self.kind(), port: self.port(), tls };
        while Instant::now() < end {
            // Looked at first, so that a stranger who took our port in the meantime is not mistaken for our server.
            if let Some(status) = self.child.try_exit_status()? {
                return Err(DevError::Died { name, status, log: self.log.clone(), tail: self.child.log_tail() });
            }
            if probe::answers(&place).await {
                return Ok(());
            }
            sleep(READY_POLL).await;
        }
        let waited_s = READY_TIMEOUT.as_secs();
        Err(DevError::NotReady { name, waited_s, log: self.log.clone(), tail: self.child.log_tail() })
    }
}

/// Makes `dir` and its parents, readable for the owner only, and returns it as an absolute path.
pub(super) fn make_dir(dir: &Path) -> Result<PathBuf, DevError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(DevError::io("create", dir))?;
    dir.canonicalize().map_err(DevError::io("find", dir))
}
