//! Folders for tests, and the real binary. Shared by the test binaries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Where tests put the servers' files: `TEST_DATA_DIR`, which `make test` sets to a folder in memory, or cargo's temporary
/// folder.
fn parent() -> PathBuf {
    let named =
        std::env::var_os("TEST_DATA_DIR").map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    std::path::absolute(named).expect("a folder")
}

/// A folder for a test's files.
pub fn scratch(name: &str) -> PathBuf {
    let parent = parent();
    // Those of test runs that are over: nothing clears up after servers that end with their process.
    for old in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
        let pid = old.file_name().to_str().and_then(|file| file.strip_prefix(name)?.strip_prefix('-')?.parse().ok());
        if pid.is_some_and(|pid: u32| !PathBuf::from(format!("/proc/{pid}")).exists()) {
            drop(std::fs::remove_dir_all(old.path()));
        }
    }
    let dir = parent.join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a scratch folder");
    dir
}

/// The same, and nothing is in it. Each call gets one of its own: tests that run beside each other may ask by one name.
pub fn empty(name: &str) -> PathBuf {
    static CALLS: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    let number = {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = calls.entry(name.to_owned()).or_default();
        *calls += 1;
        *calls
    };
    let dir = scratch(&format!("{name}-{number}"));
    std::fs::remove_dir_all(&dir).expect("an empty folder");
    std::fs::create_dir(&dir).expect("an empty folder");
    dir
}

/// A folder that goes away with the test.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one.
    pub fn new(name: &str) -> Self {
        Self(empty(name))
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

/// The real binary, without settings of the surroundings.
pub fn seckill(args: &[&str]) -> Command {
    without_surroundings(Path::new(env!("CARGO_BIN_EXE_seckill")), args)
}

/// The same of another build. Nor does it run in this checkout, whose `.seckill` may be of a `make run`: commands find the stack of
/// the folder in which they are.
pub fn without_surroundings(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::path::absolute(program).expect("a program"));
    std::fs::create_dir_all(parent()).expect("a folder");
    command.current_dir(parent());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SECKILL")) {
        command.env_remove(name);
    }
    command.args(args);
    command
}
