//! Looking at processes from outside, and running the real binary.

use super::world::{eventually, scratch};
use std::path::{Path, PathBuf};

/// A folder that goes away with the test.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let dir = scratch(name);
        std::fs::remove_dir_all(&dir).expect("an empty folder");
        std::fs::create_dir(&dir).expect("an empty folder");
        Self(dir)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Whether a process runs; false also for a zombie, whose new parent may be slow to reap it.
pub fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// Waits until no process, helpers of the servers included, sits in the folder.
pub async fn nobody_works_in(folder: &Path) {
    let workers = || -> Vec<PathBuf> {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        processes
            .filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
            .collect()
    };
    eventually("an empty folder", async || workers().is_empty()).await;
}
