//! One private server: started, watched, killed and restarted the same way whichever of the three it is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::child::Child;
use super::encryption::Encryption;
use super::kind::{DATABASE, ServerKind};
use super::{DevError, readiness};

/// From the start of the process to the first answer in its protocol. Seconds are normal; a crowded machine, or a
/// broker that recovers a long queue, may need many.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const READY_POLL: Duration = Duration::from_millis(20);

/// How one server is started, again and again, on the same data and port.
pub(super) trait ServerLauncher: fmt::Debug + Send + Sync {
    fn kind(&self) -> ServerKind;
    fn command(&self) -> Command;
    fn encryption(&self) -> Option<&Encryption>;
    /// The port of its clients, on 127.0.0.1.
    fn port(&self) -> u16;
}

/// A private server. Dropping it kills it; its data stay.
#[derive(Debug)]
pub struct Server {
    launcher: Box<dyn ServerLauncher>,
    log: PathBuf,
    child: Child,
}

impl Server {
    /// Starts it and waits until it answers.
    pub(super) async fn start(launcher: impl ServerLauncher + 'static, dir: &Path) -> Result<Self, DevError> {
        let log = dir.join("server.log");
        let child = Child::spawn(launcher.kind().name(), launcher.command(), &log).await?;
        let mut server = Self { launcher: Box::new(launcher), log, child };
        server.ready().await?;
        Ok(server)
    }

    /// Which of the three it is.
    #[must_use]
    pub(crate) fn kind(&self) -> ServerKind {
        self.launcher.kind()
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.launcher.port()
    }

    /// Process id of the server itself (no shell in between).
    #[must_use]
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// URL with scheme, host and port.
    #[must_use]
    pub fn url(&self) -> String {
        let (s, host) = self.launcher.encryption().map_or(("", "127.0.0.1"), |encryption| ("s", &encryption.name));
        let address = format!("{host}:{}", self.port());
        match self.kind() {
            ServerKind::Redis => format!("redis{s}://{address}"),
            ServerKind::Rabbitmq => format!("amqp{s}://guest:guest@{address}/%2f"),
            ServerKind::Mysql => format!("mysql{s}://root@{address}/{}", DATABASE),
        }
    }

    /// True while its process runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.is_alive()
    }

    /// SIGKILL; its data stay, and [`Server::restart`] brings it back.
    pub async fn kill(&mut self) -> Result<ExitStatus, DevError> {
        self.child.kill().await
    }

    /// SIGTERM, then SIGKILL when that takes too long. Data stay.
    pub(crate) async fn stop(&mut self) -> Result<ExitStatus, DevError> {
        self.child.terminate(self.kind().stop_timeout()).await
    }

    /// SIGSTOP: it keeps its connections and does not answer.
    pub fn pause(&mut self) -> Result<(), DevError> {
        self.child.stop_still()
    }

    /// SIGCONT: undoes [`Server::pause`].
    pub fn resume(&mut self) -> Result<(), DevError> {
        self.child.signal(libc::SIGCONT)
    }

    /// Starts it again on its data and port (killing it first when it still runs) and waits until it answers.
    pub async fn restart(&mut self) -> Result<(), DevError> {
        self.child.kill().await?;
        self.child = Child::spawn(self.kind().name(), self.launcher.command(), &self.log).await?;
        self.ready().await
    }

    async fn ready(&mut self) -> Result<(), DevError> {
        let end = Instant::now() + READY_TIMEOUT;
        let tls = self.launcher.encryption().map(readiness::tls).transpose()?;
        let check = readiness::ReadinessCheck { kind: self.kind(), port: self.port(), tls };
        while Instant::now() < end {
            // Checked first: another process may have taken the port, and would be mistaken for the server.
            self.child.must_run()?;
            if readiness::is_ready(&check).await {
                return Ok(());
            }
            sleep(READY_POLL).await;
        }
        let (name, waited_s) = (self.kind().name().to_owned(), READY_TIMEOUT.as_secs());
        Err(DevError::NotReady { name, waited_s, log: self.log.clone(), tail: self.child.log_tail() })
    }
}

/// Makes `dir` and its parents, readable for the owner only, and returns it as an absolute path.
pub(super) fn make_dir(dir: &Path) -> Result<PathBuf, DevError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(DevError::io("create", dir))?;
    dir.canonicalize().map_err(DevError::io("find", dir))
}
