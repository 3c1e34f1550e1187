//! The secrets of a local stack, kept beside its data: tokens made before a restart on the same data go on being valid.

use super::DevError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Keys of a local stack.
#[derive(Serialize, Deserialize)]
pub(super) struct Secrets {
    /// HMAC key of access tokens; the key of purchase tokens is derived from it.
    pub jwt: String,
    /// Bearer token of the admin API.
    pub admin: String,
}

/// The file in the data folder `dir`, readable by the owner only.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join("secrets.json")
}

impl Secrets {
    /// Those of the data in `dir`; made when there are none.
    pub(super) fn kept_in(dir: &Path) -> Result<Self, DevError> {
        let path = path(dir);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|source| DevError::BadState { path, source }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let fresh = |name: &str| format!("dev-{name}-{:032x}", rand::random::<u128>());
                let made = Self { jwt: fresh("jwt"), admin: fresh("admin") };
                let text =
                    serde_json::to_vec(&made).map_err(|source| DevError::BadState { path: path.clone(), source })?;
                let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
                file.and_then(|mut file| file.write_all(&text)).map_err(DevError::io("write", path))?;
                Ok(made)
            }
            Err(error) => Err(DevError::io("read", path)(error)),
        }
    }
}
