//! A private redis-server that has every accept on disk before it answers.
//!
//! Input: a folder and a port. What a crash leaves behind: the append-only file; a torn last entry is cut off at the
//! next start (it was never answered).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::encryption::Encryption;
use super::kind::ServerKind;
use super::server::{self, Server, ServerLauncher};
use super::{DevError, binaries};

/// The program, its data and its port.
#[derive(Debug)]
struct RedisLauncher {
    program: PathBuf,
    dir: PathBuf,
    port: u16,
    encryption: Option<Encryption>,
}

/// Starts a redis-server on the data in `dir` (made when missing) and waits until it answers PING.
pub async fn start(dir: &Path, port: u16) -> Result<Server, DevError> {
    start_with(dir, port, None).await
}

/// The same, on request encrypted.
pub(super) async fn start_with(dir: &Path, port: u16, encryption: Option<Encryption>) -> Result<Server, DevError> {
    let program = binaries::find(ServerKind::Redis, "redis-server")?;
    let dir = server::make_dir(dir)?;
    Server::start(RedisLauncher { program, dir: dir.clone(), port, encryption }, &dir).await
}

impl ServerLauncher for RedisLauncher {
    fn kind(&self) -> ServerKind {
        ServerKind::Redis
    }

    fn encryption(&self) -> Option<&Encryption> {
        self.encryption.as_ref()
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.dir);
        let port = self.port.to_string();
        match &self.encryption {
            None => command.args(["--port", &port]),
            Some(encryption) => {
                command.args(["--port", "0", "--tls-port", &port]);
                command.arg("--tls-ca-cert-file").arg(&encryption.ca);
                command.arg("--tls-cert-file").arg(&encryption.cert).arg("--tls-key-file").arg(&encryption.key);
                command.args(["--tls-auth-clients", if encryption.clients_too { "yes" } else { "no" }])
            }
        };
        command.args(["--bind", "127.0.0.1", "--daemonize", "no"]);
        command.arg("--dir").arg(&self.dir);
        // An accept is answered only when it is on disk; no snapshots besides; and never forget a key to save memory.
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        command.args(["--maxmemory-policy", "noeviction"]);
        // A rewrite of the file takes a core from all processes; small files are not worth it.
        command.args(["--auto-aof-rewrite-min-size", "512mb"]);
        command
    }
}
