//! One owner per data folder: two redis-servers writing one append-only file would destroy it.
//!
//! The lock is the kernel's (`flock`), so a killed owner leaves none behind.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use super::DevError;

/// Held for as long as the value lives.
#[derive(Debug)]
pub(super) struct DirLock {
    _file: File,
}

impl DirLock {
    pub(super) fn take(dir: &Path) -> Result<Self, DevError> {
        let path = dir.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(DevError::io("open", path))?;
        // SAFETY: the descriptor is open for the length of the call.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            Ok(Self { _file: file })
        } else {
            Err(DevError::Busy { dir: dir.to_owned() })
        }
    }
}
