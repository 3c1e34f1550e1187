//! The only endless loop and the only pause of every background phase, and how a process stops.
//!
//! A phase offers [`Worker::step`]; [`drive`] calls it: at once again after progress, after a short jittered wait when idle,
//! after growing pauses when a server is away. Stopping: no new step, the step in hand is finished, then [`Worker::drain`].
//! A crash at any point is the same to the phases as a stop without the drain.

use crate::domain::fault::{Fault, Progress};
use rand::Rng;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// The wall clock, Unix milliseconds. The only place that reads it for business; `domain` is passed the value.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Tells every task of the process to stop. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// A stopper nobody has pulled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops everything that listens.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Whether it was pulled.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when it is pulled.
    pub async fn stopped(&self) {
        self.0.cancelled().await;
    }

    /// Sleeps, unless it is pulled first.
    pub async fn sleep(&self, pause: Duration) {
        tokio::select! {
            () = self.stopped() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// How fast a phase goes.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Pause after a step that found nothing.
    pub idle: Duration,
    /// First pause after a fault; doubles.
    pub fault: Duration,
    /// Longest pause after a fault.
    pub fault_max: Duration,
}

impl Pace {
    /// A pace with this idle pause and faults retried from 50 ms up to 1 s: servers come back within seconds, and the bar
    /// is two seconds from a server's return to work going on.
    #[must_use]
    pub const fn idle_ms(idle_ms: u64) -> Self {
        Self {
            idle: Duration::from_millis(idle_ms),
            fault: Duration::from_millis(50),
            fault_max: Duration::from_secs(1),
        }
    }
}

/// A background phase.
pub trait Worker: Send {
    /// The phase's name, for logs and metrics.
    fn name(&self) -> &'static str;

    /// Moves what can be moved now; every wait inside is bounded (a second or so) so that a stop is prompt.
    fn step(&mut self) -> impl Future<Output = Result<Progress, Fault>> + Send;

    /// Finishes what is held, at a stop. Whatever it does not finish is picked up by the next process.
    fn drain(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Steps a worker until the stopper is pulled.
///
/// # Errors
/// [`Fault::Stop`] when the worker must not go on.
pub async fn drive<W: Worker>(mut worker: W, pace: Pace, stopper: Stopper) -> Result<(), Fault> {
    let name = worker.name();
    let mut faults = 0u32;
    // Exported from the start: the first one has to count as an increase.
    let counter = metrics::counter!("seckill_faults_total", "phase" => name);
    counter.increment(0);
    while !stopper.is_stopped() {
        match worker.step().await {
            Ok(Progress::Moved(_)) => faults = recovered(name, faults),
            Ok(Progress::Idle) => {
                faults = recovered(name, faults);
                stopper.sleep(jittered(pace.idle)).await;
            }
            Err(Fault::BackOff(error)) => {
                // The first of a row is worth a warning, the rest would only fill the log.
                if faults == 0 {
                    tracing::warn!(phase = name, %error, "waiting for a server, retrying");
                } else {
                    tracing::debug!(phase = name, %error, faults, "still waiting");
                }
                counter.increment(1);
                stopper.sleep(jittered(grown(pace.fault, faults, pace.fault_max))).await;
                faults = faults.saturating_add(1);
            }
            Err(Fault::Stop(error)) => {
                tracing::error!(phase = name, %error, "stopping");
                return Err(Fault::Stop(error));
            }
        }
    }
    worker.drain().await;
    tracing::info!(phase = name, "drained");
    Ok(())
}

fn recovered(name: &str, faults: u32) -> u32 {
    if faults > 0 {
        tracing::info!(phase = name, faults, "working again");
    }
    0
}

/// `base` doubled `times` times, at most `max`.
#[must_use]
pub fn grown(base: Duration, times: u32, max: Duration) -> Duration {
    base.saturating_mul(1u32.checked_shl(times.min(20)).unwrap_or(u32::MAX)).min(max)
}

/// Spreads peers out: between half and the whole of the pause.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Scripted {
        answers: Vec<Result<Progress, Fault>>,
        stopper: Stopper,
        drained: Arc<AtomicU32>,
    }

    impl Worker for Scripted {
        fn name(&self) -> &'static str {
            "test"
        }
        async fn step(&mut self) -> Result<Progress, Fault> {
            self.answers.pop().unwrap_or_else(|| {
                self.stopper.stop();
                Ok(Progress::Idle)
            })
        }
        async fn drain(&mut self) {
            self.drained.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn scripted(answers: Vec<Result<Progress, Fault>>) -> (Scripted, Stopper, Arc<AtomicU32>) {
        let (stopper, drained) = (Stopper::new(), Arc::new(AtomicU32::new(0)));
        (Scripted { answers, stopper: stopper.clone(), drained: drained.clone() }, stopper, drained)
    }

    #[tokio::test]
    async fn faults_are_waited_out_and_the_end_is_drained() {
        let (worker, stopper, drained) =
            scripted(vec![Ok(Progress::Moved(1)), Err(Fault::back_off("away")), Err(Fault::back_off("away"))]);
        drive(worker, Pace::idle_ms(1), stopper).await.unwrap();
        assert_eq!(drained.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_stop_fault_ends_the_loop() {
        let (worker, stopper, drained) = scripted(vec![Err(Fault::Stop("broken".into()))]);
        assert!(matches!(drive(worker, Pace::idle_ms(1), stopper).await, Err(Fault::Stop(_))));
        assert_eq!(drained.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn pauses_grow_up_to_their_bound() {
        let grow = |n| grown(Duration::from_millis(50), n, Duration::from_secs(1)).as_millis();
        assert_eq!([grow(0), grow(1), grow(2), grow(10), grow(u32::MAX)], [50, 100, 200, 1000, 1000]);
    }
}
