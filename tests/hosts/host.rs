//! One host: a network namespace and the processes in it, kept running while the host has power.
//!
//! Input: programs by name, as command lines. Output: running processes, started again a second after they end, as a service
//! manager does. Power, and standing still, are of the host: all of its processes at once.

use super::network::{self, LinkFault, Number};
use super::time::time_passes;
use crate::support::processes::supervised::Supervised;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Between an end and the next start.
const RESTART_MS: u64 = 1_000;
/// Between two rounds of the service manager.
const ROUND_MS: u64 = 200;

/// How a program is started, again and again.
pub type Recipe = Box<dyn Fn() -> Command + Send + Sync>;

struct Service {
    program: Supervised,
    recipe: Recipe,
}

impl Service {
    async fn start(&self) {
        self.program.start((self.recipe)()).await;
    }
}

/// A host.
pub struct Host {
    number: Number,
    dir: PathBuf,
    services: tokio::sync::Mutex<Vec<Arc<Service>>>,
    powered: AtomicBool,
    frozen: AtomicBool,
}

impl Host {
    /// With power and without programs; its files are below `dir`.
    pub fn new(number: Number, dir: PathBuf) -> Arc<Self> {
        std::fs::create_dir_all(&dir).expect("a host's folder");
        let (powered, frozen) = (AtomicBool::new(true), AtomicBool::new(false));
        let host = Arc::new(Self { number, dir, services: tokio::sync::Mutex::default(), powered, frozen });
        tokio::spawn(tend(host.clone()));
        host
    }

    /// Its number.
    pub fn number(&self) -> Number {
        self.number
    }

    /// Its address.
    pub fn address(&self) -> String {
        network::address(self.number)
    }

    /// A folder of its own.
    pub fn folder(&self, name: &str) -> PathBuf {
        let dir = self.dir.join(name);
        std::fs::create_dir_all(&dir).expect("a folder");
        dir
    }

    /// Starts a program, and again whenever it ends while the host has power. Its output is in `NAME.log`.
    pub async fn run(&self, name: &str, recipe: Recipe) {
        let program = Supervised::new(name, &self.dir.join(format!("{name}.log")));
        let service = Arc::new(Service { program, recipe });
        service.start().await;
        self.services.lock().await.push(service);
    }

    /// Whether it has power and is not frozen.
    pub fn runs(&self) -> bool {
        self.powered.load(SeqCst) && !self.frozen.load(SeqCst)
    }

    /// How often each program was started.
    pub async fn starts(&self) -> Vec<(String, u32)> {
        self.services.lock().await.iter().map(|of| (of.program.name().to_owned(), of.program.lives())).collect()
    }

    /// The power goes: the link first, so that no connection is closed in good order, then every process.
    pub async fn lose_power(&self) {
        network::break_link(self.number, LinkFault::Down);
        self.powered.store(false, SeqCst);
        for service in self.services.lock().await.iter() {
            service.program.kill().await;
        }
    }

    /// Ends one program with SIGKILL; it is started again.
    pub async fn kill(&self, name: &str) {
        for service in self.services.lock().await.iter().filter(|service| service.program.name() == name) {
            service.program.signal(libc::SIGKILL);
        }
    }

    /// Ends one program, and does something to its files before it is started again.
    pub async fn while_ended(&self, name: &str, act: impl FnOnce()) {
        // Held, so that the service manager starts nothing meanwhile.
        let services = self.services.lock().await;
        for service in services.iter().filter(|service| service.program.name() == name) {
            service.program.kill().await;
        }
        act();
    }

    /// SIGSTOP of every process. The kernel goes on acknowledging packets.
    pub async fn freeze(&self) {
        self.frozen.store(true, SeqCst);
        self.signal_all(libc::SIGSTOP).await;
    }

    /// The link is well, nothing stands still, and it has power.
    pub async fn restore(&self) {
        network::mend_link(self.number);
        self.signal_all(libc::SIGCONT).await;
        self.frozen.store(false, SeqCst);
        self.powered.store(true, SeqCst);
    }

    async fn signal_all(&self, signal: i32) {
        for service in self.services.lock().await.iter() {
            service.program.signal(signal);
        }
    }
}

/// The service manager.
async fn tend(host: Arc<Host>) {
    let ended = |service: &Service| service.program.pid().is_none();
    loop {
        time_passes(ROUND_MS).await;
        if !host.runs() || !host.services.lock().await.iter().any(|service| ended(service)) {
            continue;
        }
        // Not at once: what a program waits for may not be there yet.
        time_passes(RESTART_MS).await;
        // Held while they start, so that a power cut comes before or after it.
        let services = host.services.lock().await;
        for service in services.iter().filter(|service| ended(service)) {
            if host.runs() {
                service.start().await;
            }
        }
    }
}
