//! `dev.json`: where a running `seckill dev` is, for scripts and the other subcommands.
//!
//! It holds secrets (of a private stack, but still), so only the owner can read it. It is replaced in one step: a reader
//! sees the old or the new text, never half of one. A crash leaves at most `dev.json.new`, overwritten by the next write.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::DevError;

const FILE: &str = "dev.json";

/// The contents of `dev.json`. URLs have scheme, host and port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevState {
    /// Public HTTP of the api role.
    pub api: String,
    /// Operators' HTTP of the api role: console and admin API.
    pub admin: String,
    /// Operators' HTTP by role.
    pub admins: BTreeMap<String, String>,
    /// URL of the private Redis.
    pub redis_url: String,
    /// URL of the private RabbitMQ.
    pub amqp_url: String,
    /// MariaDB or MySQL.
    pub mysql_url: String,
    /// Bearer token of the operators' HTTP.
    pub admin_token: String,
    /// HMAC key of the buyers' JWTs, as it stands (UTF-8).
    pub jwt_secret: String,
    /// HMAC key of passes, likewise; empty in a file of an earlier version.
    #[serde(default)]
    pub pass_secret: String,
    /// Process ids by role and server.
    pub pids: BTreeMap<String, u32>,
    /// Configuration files it was started with, so that the other subcommands see the same settings.
    #[serde(default)]
    pub config: Vec<PathBuf>,
    /// `--set` values it was started with.
    #[serde(default)]
    pub set: Vec<String>,
}

impl DevState {
    /// Path of the file in the data folder `dir`.
    #[must_use]
    pub fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// Writes or replaces the file in `dir`, in one step, readable by the owner only.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), DevError> {
        let (path, new) = (Self::path(dir), dir.join("dev.json.new"));
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|source| DevError::BadState { path: path.clone(), source })?;
        text.push(b'\n');
        // The mode counts at creation only, so a left-over with another one must go first.
        remove_if_there(&new)?;
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| file.write_all(&text))
            .map_err(DevError::io("write", new.clone()))?;
        fs::rename(&new, &path).map_err(DevError::io("replace", path))
    }

    /// Reads the file in `dir`; `None` when there is none.
    pub fn read(dir: &Path) -> Result<Option<Self>, DevError> {
        let path = Self::path(dir);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(DevError::io("read", path)(error)),
        };
        serde_json::from_slice(&text).map(Some).map_err(|source| DevError::BadState { path, source })
    }

    /// Removes the file from `dir`; fine when there is none.
    pub(crate) fn remove(dir: &Path) -> Result<(), DevError> {
        remove_if_there(&Self::path(dir))
    }
}

fn remove_if_there(path: &Path) -> Result<(), DevError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DevError::io("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_written_state_is_read_back_private_and_removable() {
        let dir = std::env::temp_dir().join(format!("seckill-state-{:x}", rand::random::<u64>()));
        fs::create_dir(&dir).unwrap();
        assert_eq!(DevState::read(&dir).unwrap(), None);
        let mut state = DevState { api: "http://127.0.0.1:8080".to_owned(), ..DevState::default() };
        state.write(&dir).unwrap();
        state.pids.insert("redis".to_owned(), 7);
        state.write(&dir).unwrap();
        assert_eq!(DevState::read(&dir).unwrap(), Some(state));
        assert_eq!(fs::metadata(DevState::path(&dir)).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(DevState::path(&dir), "{").unwrap();
        assert!(matches!(DevState::read(&dir), Err(DevError::BadState { .. })));
        DevState::remove(&dir).unwrap();
        DevState::remove(&dir).unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }
}
