//! Processes seen from outside, and running the real binary.

pub use crate::support::basics::files::{Folder, scratch, seckill, without_surroundings};
use crate::support::basics::time::{SETTLE, eventually, pause};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Whether a process runs; false also for a zombie, whose new parent may be slow to reap it.
pub fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// Waits until no process, helpers of the servers included, sits in the folder.
pub async fn no_process_in(folder: &Path) {
    let workers = || -> Vec<PathBuf> {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        processes
            .filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
            .collect()
    };
    eventually("an empty folder", async || workers().is_empty()).await;
}

/// A run of the real binary.
pub struct Program {
    child: Child,
    stderr: PathBuf,
}

impl Program {
    /// Starts it; its stderr goes to a file in `folder`. It dies with the test.
    pub fn start(folder: &Path, args: &[&str]) -> Self {
        Self::run(folder, seckill(args))
    }

    /// The same with fault points (`src/faults.rs`).
    pub fn armed(folder: &Path, args: &[&str], failpoints: &str) -> Self {
        let mut command = seckill(args);
        command.env("FAILPOINTS", failpoints);
        Self::run(folder, command)
    }

    /// The same for a prepared command.
    pub fn run(folder: &Path, command: Command) -> Self {
        Self::run_to(folder, command, None)
    }

    /// The same; its stderr goes elsewhere, if there is an elsewhere.
    pub fn run_to(folder: &Path, mut command: Command, elsewhere: Option<Stdio>) -> Self {
        let stderr = folder.join(format!("stderr-{:x}.log", rand::random::<u64>()));
        let file = std::fs::File::create(&stderr).expect("a file");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(elsewhere.unwrap_or_else(|| file.into()));
        dies_with_its_test(&mut command);
        Self { child: command.spawn().expect("the binary starts"), stderr }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).expect("its stderr")
    }

    /// Fails when it has ended.
    pub fn must_run(&mut self) {
        let ended = self.child.try_wait().expect("a child");
        assert!(ended.is_none(), "ended with {ended:?}: {}", self.stderr());
    }

    /// Waits until it has said something.
    pub async fn until_logged(&mut self, what: &str) {
        eventually(what, async || {
            self.must_run();
            self.stderr().contains(what)
        })
        .await;
    }

    /// Sends SIGTERM and returns the exit code, with how long it took.
    pub async fn terminate(&mut self) -> (Option<i32>, Duration) {
        let begun = Instant::now();
        signal(self.pid(), libc::SIGTERM);
        (self.ended().await, begun.elapsed())
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + SETTLE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(
                Instant::now() < deadline,
                "never came true: the end of the process, which said: {}",
                self.stderr()
            );
            pause().await;
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process of this test.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: kill has no preconditions; the pid is of a process this test started.
    assert_eq!(unsafe { libc::kill(i32::try_from(pid).expect("a pid"), signal) }, 0, "signal {signal} to {pid}");
}

/// The kernel kills it when the test's thread ends, whatever ends that.
fn dies_with_its_test(command: &mut Command) {
    // SAFETY: prctl is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

/// Runs a subcommand to its end: exit code, stdout, stderr.
pub fn call(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = seckill(args);
    dies_with_its_test(&mut command);
    let output = command.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}
