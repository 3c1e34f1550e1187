//! A private mariadbd that has every commit on disk before it answers, with a database `seckill` and a root user without
//! password on loopback.
//!
//! Input: a folder and a port. What a crash leaves behind: the data, recovered at the next start; a half-made data
//! folder `data.new` is made again from the beginning. A kill -9 of our own process may leave an empty folder with a
//! socket in the temporary folder, when the data folder's own path was too long for one.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use super::child::Child;
use super::encryption::Encryption;
use super::kind::ServerKind;
use super::server::{self, Server, ServerLauncher};
use super::{DevError, binaries};

/// Making the system tables takes 1.5 s on an idle machine.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Times the installation is run before it is given up.
const INSTALL_TRIES: u32 = 3;
static INSTALLING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
/// Longest path of a Unix socket, without the final zero byte.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Runs at every start, before the first connection is served.
const INIT_SQL: &str = "CREATE DATABASE IF NOT EXISTS seckill CHARACTER SET utf8mb4;\n\
    CREATE USER IF NOT EXISTS 'root'@'127.0.0.1';\n\
    GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n";

/// The program, its data and its port.
#[derive(Debug)]
struct MariadbLauncher {
    program: PathBuf,
    dir: PathBuf,
    socket: Socket,
    port: u16,
    encryption: Option<Encryption>,
}

/// Starts a mariadbd on the data in `dir` (made when missing) and waits for its greeting.
pub async fn start(dir: &Path, port: u16) -> Result<Server, DevError> {
    start_with(dir, port, None).await
}

/// The same, on request encrypted.
pub(super) async fn start_with(dir: &Path, port: u16, encryption: Option<Encryption>) -> Result<Server, DevError> {
    let program = binaries::find(ServerKind::Mysql, "mariadbd")?;
    let dir = server::make_dir(dir)?;
    install(&dir).await?;
    server::make_dir(&dir.join("tmp"))?;
    let init = dir.join("init.sql");
    fs::write(&init, INIT_SQL).map_err(DevError::io("write", init))?;
    let socket = Socket::place(&dir, port)?;
    Server::start(MariadbLauncher { program, dir: dir.clone(), socket, port, encryption }, &dir).await
}

/// Makes the system tables, one installation at a time in a process: of several at once one ends now and then with exit
/// code 1 and nothing in its log (seen with 10.11), and does well when it is run again.
async fn install(dir: &Path) -> Result<(), DevError> {
    let _one = INSTALLING.lock().await;
    for _ in 1..INSTALL_TRIES {
        match install_once(dir).await {
            Err(DevError::Died { .. }) => {}
            done => return done,
        }
    }
    install_once(dir).await
}

/// Makes the system tables in `data.new` and renames it, so that `data` is either complete or not there.
async fn install_once(dir: &Path) -> Result<(), DevError> {
    let (data, unfinished, log) = (dir.join("data"), dir.join("data.new"), dir.join("install.log"));
    if data.is_dir() {
        return Ok(());
    }
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(DevError::io("remove", unfinished)(error));
        }
        Ok(()) | Err(_) => {}
    }
    let mut command = Command::new(binaries::find(ServerKind::Mysql, "mariadb-install-db")?);
    command.arg("--no-defaults").arg(option("--datadir=", &unfinished));
    command.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
    command.args(user_option());
    let mut child = Child::spawn("mariadb-install-db", command, &log).await?;
    let name = child.name().to_owned();
    match child.wait(INSTALL_TIMEOUT).await? {
        Some(status) if status.success() => fs::rename(&unfinished, &data).map_err(DevError::io("rename", unfinished)),
        Some(status) => Err(DevError::Died { name, status, log, tail: child.log_tail() }),
        None => Err(DevError::NotReady { name, waited_s: INSTALL_TIMEOUT.as_secs(), log, tail: child.log_tail() }),
    }
}

impl ServerLauncher for MariadbLauncher {
    fn kind(&self) -> ServerKind {
        ServerKind::Mysql
    }

    fn encryption(&self) -> Option<&Encryption> {
        self.encryption.as_ref()
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.dir).arg("--no-defaults").args(user_option());
        command.arg(option("--datadir=", &self.dir.join("data")));
        command.arg(option("--tmpdir=", &self.dir.join("tmp")));
        command.arg(option("--pid-file=", &self.dir.join("pid")));
        command.arg(option("--init-file=", &self.dir.join("init.sql")));
        command.arg(option("--socket=", &self.socket.path));
        command.arg(format!("--port={}", self.port));
        command.args(["--bind-address=127.0.0.1", "--skip-name-resolve"]);
        if let Some(encryption) = &self.encryption {
            command.arg(option("--ssl-ca=", &encryption.ca)).arg(option("--ssl-cert=", &encryption.cert));
            command.arg(option("--ssl-key=", &encryption.key)).arg("--require-secure-transport=ON");
        }
        // A commit is answered only when it is on disk.
        command.args(["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]);
        command.args(["--transaction-isolation=READ-COMMITTED", "--innodb-lock-wait-timeout=3"]);
        command.args(["--character-set-server=utf8mb4", "--max-connections=500"]);
        command
    }
}

/// mariadbd refuses to run as root without this option.
fn user_option() -> Option<&'static str> {
    // SAFETY: plain system call that cannot fail.
    (unsafe { libc::geteuid() } == 0).then_some("--user=root")
}

/// `--name=` followed by a path, which need not be UTF-8.
fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push(path);
    option
}

/// The Unix socket. It is not used, but mariadbd needs one, and its path must not be the system's.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    /// Folder made for the socket alone, removed with it.
    folder: Option<PathBuf>,
}

impl Socket {
    fn place(dir: &Path, port: u16) -> Result<Self, DevError> {
        let path = dir.join("socket");
        if path.as_os_str().as_bytes().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(Self { path, folder: None });
        }
        // Short in any case, unlike the temporary folder of the environment.
        let folder = PathBuf::from(format!("/tmp/seckill-{}-{port}-{:x}", std::process::id(), rand::random::<u32>()));
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(DevError::io("create", folder.clone()))?;
        Ok(Self { path: folder.join("socket"), folder: Some(folder) })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // Best effort: an empty folder in /tmp does no harm.
            drop(fs::remove_dir_all(folder));
        }
    }
}
