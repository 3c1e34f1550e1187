//! A program that a test starts, stops still, kills and starts again: a server of a set, a role of the chaos runs, a service of one
//! of three hosts. Each start is a life. It uses nothing of a system; who uses it says what is started, and when.
//!
//! It owns the product's own `dev::Child`, which outlives the thread that started it. What a test runs once, to its end, and from
//! code that does not wait is a `Program` (`programs.rs`): the kernel ends that with the test's thread.

use crate::support::basics::time::eventually;
use seckill::dev::Child;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The program over all its lives; it ends with the value.
pub struct Supervised {
    name: String,
    log: PathBuf,
    life: Mutex<Life>,
}

#[derive(Default)]
struct Life {
    child: Option<Child>,
    number: u32,
}

impl Supervised {
    /// Not started yet; the output of all its lives goes to `log`.
    pub fn new(name: &str, log: &Path) -> Self {
        Self { name: name.to_owned(), log: log.to_owned(), life: Mutex::default() }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a life; one that goes on is ended by SIGKILL.
    pub async fn start(&self, command: Command) {
        self.kill().await;
        let child = Child::spawn(&self.name, command, &self.log).await;
        let child = child.unwrap_or_else(|error| panic!("{} does not start: {error}", self.name));
        let mut life = self.life();
        *life = Life { child: Some(child), number: life.number + 1 };
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often it was started.
    pub fn lives(&self) -> u32 {
        self.life().number
    }

    /// Its process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        let mut life = self.life();
        life.child.as_mut().and_then(|child| child.is_alive().then(|| child.pid()))
    }

    /// Which life is the last one, and how it ended if it did.
    pub fn last_life(&self) -> (u32, Option<ExitStatus>) {
        let mut life = self.life();
        let ended = life.child.as_mut().and_then(|child| child.try_exit_status().expect("our own child"));
        (life.number, ended)
    }

    /// Sends a signal, if it runs.
    pub fn signal(&self, signal: i32) {
        if let Some(child) = self.life().child.as_mut() {
            child.signal(signal).expect("a signal to our own child");
        }
    }

    /// SIGKILL to it and to what it has started; returns when it is gone.
    pub async fn kill(&self) {
        let child = self.life().child.take();
        if let Some(mut child) = child {
            child.kill().await.expect("our own child");
            self.life().child = Some(child);
        }
    }

    /// Waits until it is as wanted; fails when it ends before that, with the end of its log.
    pub async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        eventually(&format!("{} {what}", self.name), async || {
            assert!(self.pid().is_some(), "{} has ended: {}", self.name, self.log_tail());
            is_so().await
        })
        .await;
    }

    fn log_tail(&self) -> String {
        self.life().child.as_ref().map_or_else(String::new, Child::log_tail)
    }
}
