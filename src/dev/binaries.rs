//! Where the servers' programs are. Debian puts some of them in `sbin` folders, which a normal user's PATH lacks. The folder
//! `bin` of [`SERVERS`] comes before everything else: other versions than the system's, as `scripts/newest-servers.sh` unpacks
//! them. A program that is not there is the system's.

use std::env;
use std::path::{Path, PathBuf};

use super::DevError;
use super::kind::ServerKind;

/// Environment variable: a folder whose `bin` has programs of servers to be started in place of the system's.
const SERVERS: &str = "SECKILL_SERVERS";

const MORE_FOLDERS: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// First match for `program` in the folder of [`SERVERS`], in PATH, then in the usual system folders.
pub fn find(kind: ServerKind, program: &'static str) -> Result<PathBuf, DevError> {
    let path = env::var_os("PATH").unwrap_or_default();
    preferred_folder()
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(MORE_FOLDERS.iter().map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| missing(kind, program))
}

/// `program` of [`SERVERS`], if it is there.
pub(super) fn preferred(program: &str) -> Option<PathBuf> {
    preferred_folder().map(|folder| folder.join(program)).filter(|file| file.is_file())
}

/// The folder `bin` of [`SERVERS`], if it is set.
pub(super) fn preferred_folder() -> Option<PathBuf> {
    let servers = env::var_os(SERVERS).filter(|servers| !servers.is_empty())?;
    // Servers are started in folders of their own.
    std::path::absolute(Path::new(&servers).join("bin")).ok()
}

/// RabbitMQ's own start script. Debian's `/usr/sbin/rabbitmq-server` is a wrapper that switches to the system user and
/// its cookie, so RabbitMQ's own folders come first.
pub fn find_rabbitmq_server() -> Result<PathBuf, DevError> {
    const PROGRAM: &str = "rabbitmq-server";
    if let Some(file) = preferred(PROGRAM) {
        return Ok(file);
    }
    let home = Path::new("/usr/lib/rabbitmq");
    let versions = std::fs::read_dir(home.join("lib")).into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = versions.map(|entry| entry.path().join("sbin").join(PROGRAM)).collect();
    places.sort();
    places.push(home.join("bin").join(PROGRAM));
    match places.into_iter().rev().find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None => find(ServerKind::Rabbitmq, PROGRAM),
    }
}

fn missing(kind: ServerKind, program: &'static str) -> DevError {
    DevError::MissingBinary { program, package: kind.debian_package(), variable: kind.url_variable() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package_and_the_way_round_it() {
        let message = find(ServerKind::Redis, "no-such-program").map_err(|error| error.to_string());
        let message = message.err().unwrap_or_default();
        assert!(message.contains("redis-server") && message.contains("SECKILL_REDIS_URL"), "{message}");
    }
}
