//! One owner per data folder: two redis-servers writing one append-only file would destroy it.
//!
//! The lock is the kernel's (`flock`), so a killed owner leaves none behind.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::DevError;

/// Held for as long as the value lives.
#[derive(Debug)]
pub(super) struct DirLock {
    file: File,
}

impl DirLock {
    pub(super) fn take(dir: &Path) -> Result<Self, DevError> {
        let path = dir.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(DevError::io("open", path.clone()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(DevError::Busy { dir: dir.to_owned() }),
            Err(TryLockError::Error(error)) => Err(DevError::io("lock", path)(error)),
        }
    }
}

impl Drop for DirLock {
    /// Closing the file is not enough: a process that another thread is just starting has it, too, until it runs its program.
    fn drop(&mut self) {
        // An error would leave what closing does.
        self.file.unlock().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_free_although_a_starting_process_still_has_the_file() {
        let dir = std::env::temp_dir().join(format!("seckill-lock-{:x}", rand::random::<u64>()));
        std::fs::create_dir(&dir).unwrap();
        let lock = DirLock::take(&dir).unwrap();
        let of_a_child = lock.file.try_clone().unwrap();
        assert!(matches!(DirLock::take(&dir), Err(DevError::Busy { .. })));
        drop(lock);
        assert!(DirLock::take(&dir).is_ok());
        drop(of_a_child);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
