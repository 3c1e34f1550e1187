//! A child process that cannot outlive us.
//!
//! The kernel kills it when the *thread* that started it ends (`PR_SET_PDEATHSIG`), so all children are started by one
//! thread that lives as long as the process: test threads and runtime workers come and go. Even kill -9 of the parent
//! leaves no child behind. Each child leads its own process group, so Ctrl-C on the terminal reaches only the parent, which then
//! stops the children in the order that loses nothing.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::DevError;

/// How often a wait polls the child; a stop takes milliseconds at best.
const POLL: Duration = Duration::from_millis(10);
/// A process that got a stop signal stands still within this time, unless the disk holds it.
const STOP_MAX: Duration = Duration::from_secs(2);
/// How much of the log goes into an error message.
const TAIL_BYTES: u64 = 4_096;
const TAIL_LINES: usize = 20;

/// A running (or ended, but not forgotten) child process. Dropping it kills it with SIGKILL.
#[derive(Debug)]
pub struct Child {
    name: String,
    log: PathBuf,
    process: std::process::Child,
}

struct SpawnRequest {
    name: String,
    log: PathBuf,
    command: Command,
    reply: oneshot::Sender<Result<Child, DevError>>,
}

impl Child {
    /// Starts `command` with its output appended to the file `log`. Safe from any thread and from async code.
    pub async fn spawn(name: &str, command: Command, log: &Path) -> Result<Self, DevError> {
        let (reply, answer) = oneshot::channel();
        let request = SpawnRequest { name: name.to_owned(), log: log.to_owned(), command, reply };
        let gone =
            || DevError::Spawn { name: name.to_owned(), source: io::Error::other("the spawning thread is gone") };
        spawner(name)?.send(request).map_err(|_request| gone())?;
        // If the caller stops waiting, the answer is dropped and with it the child, which kills it.
        answer.await.map_err(|_closed| gone())?
    }

    /// Process id, also after the end.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Name given at the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Log file given at the start.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, or `None` while it runs. Reaps it.
    pub fn try_exit_status(&mut self) -> Result<Option<ExitStatus>, DevError> {
        self.process.try_wait().map_err(|source| self.stop_error(source))
    }

    /// True while it runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// An error that says how it ended and what it said last, when it does not run any more.
    pub(crate) fn must_run(&mut self) -> Result<(), DevError> {
        let Some(status) = self.try_exit_status()? else { return Ok(()) };
        Err(DevError::Died { name: self.name.clone(), status, log: self.log.clone(), tail: self.log_tail() })
    }

    /// SIGTERM, and SIGKILL when it still runs after `deadline`. Returns how it ended.
    pub(crate) async fn terminate(&mut self, deadline: Duration) -> Result<ExitStatus, DevError> {
        self.signal(libc::SIGTERM)?;
        // A stopped process would not see the SIGTERM.
        self.signal(libc::SIGCONT)?;
        match self.wait(deadline).await? {
            Some(status) => Ok(status),
            None => self.kill().await,
        }
    }

    /// SIGKILL to its whole process group, and reaps it. Returns how it ended.
    pub async fn kill(&mut self) -> Result<ExitStatus, DevError> {
        if let Some(status) = self.try_exit_status()? {
            return Ok(status);
        }
        self.send(libc::SIGKILL, SignalTarget::Group)?;
        loop {
            // Nothing refuses SIGKILL, so this ends.
            if let Some(status) = self.wait(Duration::from_secs(1)).await? {
                return Ok(status);
            }
        }
    }

    /// Sends a signal (`libc::SIG…`) if it still runs; does nothing otherwise.
    pub fn signal(&mut self, signal: i32) -> Result<(), DevError> {
        if self.try_exit_status()?.is_none() { self.send(signal, SignalTarget::Leader) } else { Ok(()) }
    }

    /// SIGSTOP, and waits until it has taken effect: the signal is sent at once, but threads on other processors run on for
    /// a moment and would still answer.
    pub(crate) fn stop_still(&mut self) -> Result<(), DevError> {
        self.signal(libc::SIGSTOP)?;
        let end = Instant::now() + STOP_MAX;
        while !has_stopped(self.pid()) && Instant::now() < end {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Waits until it ends, at most `limit`; `None` when it still runs then.
    pub(crate) async fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, DevError> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.try_exit_status()? {
                return Ok(Some(status));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            sleep(POLL).await;
        }
    }

    /// The last lines of the log, for an error message.
    #[must_use]
    pub fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_else(|error| format!("(unreadable: {error})"))
    }

    /// Only called while the child is not reaped, so the id cannot be another process' by now.
    fn send(&self, signal: i32, target: SignalTarget) -> Result<(), DevError> {
        let pid =
            libc::pid_t::try_from(self.pid()).map_err(|_range| self.stop_error(io::ErrorKind::InvalidInput.into()))?;
        // SAFETY: plain system call.
        let result = unsafe {
            match target {
                SignalTarget::Leader => libc::kill(pid, signal),
                SignalTarget::Group => libc::killpg(pid, signal),
            }
        };
        if result == 0 { Ok(()) } else { Err(self.stop_error(io::Error::last_os_error())) }
    }

    fn stop_error(&self, source: io::Error) -> DevError {
        DevError::Stop { name: self.name.clone(), source }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_alive() && self.send(libc::SIGKILL, SignalTarget::Group).is_ok() {
            // Takes a moment only; without it a zombie would stay until our own end.
            drop(self.process.wait());
        }
    }
}

#[derive(Clone, Copy)]
enum SignalTarget {
    Leader,
    Group,
}

/// The thread that starts all children. Never ends, because its sender sits in a static.
fn spawner(name: &str) -> Result<&'static mpsc::Sender<SpawnRequest>, DevError> {
    static SPAWN_REQUESTS: OnceLock<mpsc::Sender<SpawnRequest>> = OnceLock::new();
    if let Some(requests) = SPAWN_REQUESTS.get() {
        return Ok(requests);
    }
    let (sender, receiver) = mpsc::channel::<SpawnRequest>();
    thread::Builder::new()
        .name("spawner".to_owned())
        .spawn(move || {
            for request in receiver {
                // A receiver that is gone drops the child, which kills it.
                drop(request.reply.send(start(request.name, request.command, request.log)));
            }
        })
        .map_err(|source| DevError::Spawn { name: name.to_owned(), source })?;
    // The caller that loses the race drops its sender, and its thread ends before it has started anything.
    Ok(SPAWN_REQUESTS.get_or_init(|| sender))
}

fn start(name: String, mut command: Command, log: PathBuf) -> Result<Child, DevError> {
    let out = OpenOptions::new().create(true).append(true).open(&log).map_err(DevError::io("open", log.clone()))?;
    let err = out.try_clone().map_err(DevError::io("open", log.clone()))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    die_with_parent(&mut command);
    let process = command.spawn().map_err(|source| DevError::Spawn { name: name.clone(), source })?;
    Ok(Child { name, log, process })
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let kill = libc::c_ulong::from(libc::SIGKILL.unsigned_abs());
    let parent = libc::pid_t::try_from(std::process::id()).unwrap_or_default();
    // SAFETY: runs between fork and exec; makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, kill) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the line above: then the signal never comes.
            if libc::getppid() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

/// Other systems have no such signal: there a kill -9 of the parent leaves its children running.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}

fn tail(log: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().rev().take(TAIL_LINES).collect();
    Ok(lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

/// Whether every thread of a process stands still (`T` in `/proc`), or it is gone.
fn has_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let runs = |stat: &str| stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with(['T', 't', 'Z', 'X']));
    !threads.into_iter().any(|thread| std::fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| runs(&stat)))
}
