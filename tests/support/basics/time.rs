//! Time in tests: one runtime, quick settings, and waiting for something to come true. Shared by the test binaries.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// One runtime for all tests: the shared servers and their clients must outlive the test that started them.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"));

/// Accepted requests must have their outcome within this time at the end of a test.
pub const SETTLE: Duration = Duration::from_secs(60);

/// Settings that let faults show within seconds.
pub const QUICK: [&str; 13] = [
    "http.listen=127.0.0.1:0",
    "auth.secret=test-access-secret-of-32-bytes-or-more",
    "p1_entry.token_secret=test-purchase-secret-of-32-bytes-or-more",
    // A test may leave its consumers off for as long as a slow machine takes.
    "p1_entry.lag_max_ms=3600000",
    "rabbitmq.heartbeat_s=2",
    // A crowd or a restarted server makes answers late; a quiet test waits for these times only where they are its subject.
    "p3_relay.confirm_timeout_ms=2000",
    if ALONE { "p3_relay.claim_idle_ms=4000" } else { "p3_relay.claim_idle_ms=2500" },
    "p3_relay.backoff_ms=100",
    "p4_persist.retry_delay_ms=200",
    // Two retry queues; the long ladder has a test of its own.
    "p4_persist.retry_delay_max_ms=400",
    if ALONE { "p5_reconcile.window_ms=5000" } else { "p5_reconcile.window_ms=3000" },
    if ALONE { "p5_reconcile.interval_ms=1000" } else { "p5_reconcile.interval_ms=500" },
    "p6_fulfil.interval_ms=100",
];

/// Whether the tests of this binary are noisy ones: those of `it` are quiet.
const ALONE: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"system" | b"long" | b"chaos" | b"hosts" | b"drops");

/// How many tests of this binary may wait beside each other. Some have nine servers of their own; those of `chaos` have a whole deployment
/// each, and faults all the time, those of `drops` a crowd: on a slow machine more of them starve each other.
const WAITING_MAX: usize = match env!("CARGO_CRATE_NAME").as_bytes() {
    b"drops" => 2,
    b"chaos" => 3,
    _ => 5,
};

/// Turns of the noisy tests, which keep the processors busy: one at a time.
static NOISY: Semaphore = Semaphore::const_new(1);
/// Turns of the noisy binary's tests that mostly wait.
static WAITING: Semaphore = Semaphore::const_new(WAITING_MAX);
/// Turns of the quiet tests. They share their servers, and wait for them more than they work.
static QUIET: Semaphore = Semaphore::const_new(8);

/// How long each test of this binary took, by name, printed at its end. A test may run several times (each case of a property
/// does).
static TOOK: Mutex<BTreeMap<String, Duration>> = Mutex::new(BTreeMap::new());
const SLOWEST: usize = 10;

/// What the tests that failed said, printed again at the end: the test runner's own report may be cut above it.
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Longest part of what a test said that is printed again, characters.
const SAID_CHARS_MAX: usize = 2_000;

thread_local! {
    /// What this thread's last panic said.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Notes what a panic says, beside what is printed of it anyway.
static LISTENING: LazyLock<()> = LazyLock::new(|| {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said: String = panic.to_string().chars().take(SAID_CHARS_MAX).collect();
        drop(SAID.try_with(|last| last.replace(said)));
        before(panic);
    }));
});

/// Runs a test on the shared runtime, in its turn: the test runner has more threads than tests may run at a time, so that
/// those that wait for the one turn keep none of the others off.
pub fn run<F: Future<Output = ()>>(test: F) {
    in_turn(if ALONE { &NOISY } else { &QUIET }, test);
}

/// The same for a noisy test that mostly waits, for servers or a browser of its own: others that say so run beside it.
pub fn run_waiting<F: Future<Output = ()>>(test: F) {
    in_turn(&WAITING, test);
}

fn in_turn<F: Future<Output = ()>>(turns: &Semaphore, test: F) {
    RUNTIME.block_on(async {
        LazyLock::force(&LISTENING);
        let _turn = turns.acquire().await.expect("never closed");
        let _watch = Watch(Instant::now());
        test.await;
    });
}

/// For what outlives a test: the clearing up behind it.
pub fn after(work: impl Future<Output = ()> + Send + 'static) {
    RUNTIME.spawn(work);
}

/// Notes how long a test took, also when it fails.
struct Watch(Instant);

impl Drop for Watch {
    fn drop(&mut self) {
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        if std::thread::panicking() {
            let said = SAID.with(RefCell::take);
            FAILED.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{name}: {said}"));
        }
        let mut took = TOOK.lock().unwrap_or_else(PoisonError::into_inner);
        if took.is_empty() {
            // SAFETY: the function is there until the process ends, and takes nothing.
            unsafe { libc::atexit(print_slowest) };
        }
        *took.entry(name).or_default() += self.0.elapsed();
    }
}

extern "C" fn print_slowest() {
    let took = std::mem::take(&mut *TOOK.lock().unwrap_or_else(PoisonError::into_inner));
    let mut took: Vec<(String, f64)> = took.into_iter().map(|(name, took)| (name, took.as_secs_f64())).collect();
    took.sort_unstable_by(|(_, a), (_, b)| b.total_cmp(a));
    let all: f64 = took.iter().map(|(_, took)| took).sum();
    eprintln!("\n{}: {} tests on servers, {all:.0} s in them; the slowest:", env!("CARGO_CRATE_NAME"), took.len());
    for (name, took) in took.iter().take(SLOWEST) {
        eprintln!("{took:7.1} s  {name}");
    }
    for failed in FAILED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        eprintln!("failed: {failed}");
    }
    if let Some(file) = std::env::var_os("TEST_TIMES") {
        let lines: String = took.iter().map(|(name, took)| format!("{took:.2}\t{name}\n")).collect();
        drop(std::fs::write(file, lines));
    }
}

/// Between two checks of something that comes true by itself; never in place of a check.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Only where time itself is the subject: an expiry, the pace of a fault, a server that stands still.
pub async fn time_passes(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Checks until something is true; a failing test says what was waited for.
pub async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut check: F) {
    let deadline = Instant::now() + SETTLE;
    while !check().await {
        assert!(Instant::now() < deadline, "never came true: {what}");
        pause().await;
    }
}
