//! A private mariadbd that has every commit on disk before it answers, with a database `seckill` and a root user without
//! password on loopback. A `mysqld` where the servers of another version are ([`binaries`]) and no mariadbd is with it.
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

/// Which of the two databases it is. They are started alike; the system tables are made in different ways.
#[derive(Debug, Clone)]
enum Program {
    Mariadb(PathBuf),
    Mysql(PathBuf),
}

impl Program {
    fn find() -> Result<Self, DevError> {
        const MARIADB: &str = "mariadbd";
        match binaries::preferred("mysqld") {
            Some(mysqld) if binaries::preferred(MARIADB).is_none() => Ok(Self::Mysql(real(mysqld)?)),
            Some(_) | None => binaries::find(ServerKind::Mysql, MARIADB).map(Self::Mariadb),
        }
    }

    /// Its own start, with what only one of the two understands.
    fn command(&self) -> Command {
        match self {
            Self::Mariadb(program) => {
                let mut command = Command::new(program);
                command.arg("--no-defaults");
                command
            }
            Self::Mysql(program) => {
                let mut command = mysqld(program);
                // A second protocol, on a port of its own.
                command.arg("--mysqlx=OFF");
                command
            }
        }
    }

    /// What makes the system tables in `data`.
    fn installation(&self, data: &Path) -> Result<Command, DevError> {
        let mut command = match self {
            Self::Mariadb(_) => {
                let mut command = Command::new(binaries::find(ServerKind::Mysql, "mariadb-install-db")?);
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command.arg("--skip-name-resolve");
                // It hands the folder to `chown` without quotes: its own name alone has no blank.
                if let (Some(parent), Some(name)) = (data.parent(), data.file_name()) {
                    command.current_dir(parent).arg(option("--datadir=", &Path::new(".").join(name)));
                }
                command
            }
            Self::Mysql(program) => {
                let mut command = mysqld(program);
                command.arg("--initialize-insecure").arg(option("--datadir=", data));
                command
            }
        };
        command.args(user_option());
        Ok(command)
    }
}

/// The file behind a link: its messages and character sets are found from there.
fn real(program: PathBuf) -> Result<PathBuf, DevError> {
    fs::canonicalize(&program).map_err(DevError::io("find", program))
}

/// A mysqld with the files beside it, wherever they were unpacked: `…/usr/sbin/mysqld` has `…/usr` as its base.
fn mysqld(program: &Path) -> Command {
    let mut command = Command::new(program);
    // Debian's default is a folder that only its package makes.
    command.args(["--no-defaults", "--secure-file-priv=NULL"]);
    if let Some(base) = program.parent().and_then(Path::parent) {
        command.arg(option("--basedir=", base));
        command.arg(option("--lc-messages-dir=", &base.join("share/mysql")));
        command.arg(option("--character-sets-dir=", &base.join("share/mysql/charsets")));
    }
    command
}

/// The program, its data and its port.
#[derive(Debug)]
struct MariadbLauncher {
    program: Program,
    dir: PathBuf,
    socket: Socket,
    port: u16,
    encryption: Option<Encryption>,
    options: Vec<String>,
}

/// Starts a mariadbd on the data in `dir` (made when missing) and waits for its greeting.
pub async fn start(dir: &Path, port: u16) -> Result<Server, DevError> {
    start_as(dir, port, None, Vec::new()).await
}

/// The same with more options on its command line, as `--log-bin=binlog`.
pub async fn start_with_options(dir: &Path, port: u16, options: &[&str]) -> Result<Server, DevError> {
    start_as(dir, port, None, options.iter().map(|option| (*option).to_owned()).collect()).await
}

/// The same, on request encrypted.
pub(super) async fn start_as(
    dir: &Path,
    port: u16,
    encryption: Option<Encryption>,
    options: Vec<String>,
) -> Result<Server, DevError> {
    let program = Program::find()?;
    let dir = server::make_dir(dir)?;
    install(&program, &dir).await?;
    server::make_dir(&dir.join("tmp"))?;
    let init = dir.join("init.sql");
    fs::write(&init, INIT_SQL).map_err(DevError::io("write", init))?;
    let socket = Socket::place(&dir, port)?;
    Server::start(MariadbLauncher { program, dir: dir.clone(), socket, port, encryption, options }, &dir).await
}

/// Makes the system tables, one installation at a time in a process: of several at once one ends now and then with exit
/// code 1 and nothing in its log (seen with 10.11), and does well when it is run again.
async fn install(program: &Program, dir: &Path) -> Result<(), DevError> {
    let _one = INSTALLING.lock().await;
    for _ in 1..INSTALL_TRIES {
        match install_once(program, dir).await {
            Err(DevError::Died { .. }) => {}
            done => return done,
        }
    }
    install_once(program, dir).await
}

/// Makes the system tables in `data.new` and renames it, so that `data` is either complete or not there.
async fn install_once(program: &Program, dir: &Path) -> Result<(), DevError> {
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
    let mut child =
        Child::spawn("the installation of the system tables", program.installation(&unfinished)?, &log).await?;
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
        let mut command = self.program.command();
        command.current_dir(&self.dir).args(user_option());
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
        command.args(&self.options);
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
