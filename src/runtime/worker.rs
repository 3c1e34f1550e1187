//! The only endless loop and the only pause of every background phase.
//!
//! A phase implements [`Worker::step`] and [`run_worker`] calls it: again at once after progress, after a short jittered pause
//! when there was nothing to do, after growing pauses while a server is not reachable. At a stop the present step is finished,
//! no new one begins, and [`Worker::drain`] comes last. A crash at any point is for the phases the same as a stop without the
//! drain.

use super::backoff::{exponential_backoff, jittered};
use super::stopper::Stopper;
use crate::domain::fault::{Fault, Progress};
use std::future::Future;
use std::time::Duration;

/// How often a phase polls for work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollInterval {
    /// Pause after a step that found nothing.
    pub idle: Duration,
    /// First pause after a fault; doubles.
    pub fault: Duration,
    /// Longest pause after a fault.
    pub(crate) fault_max: Duration,
}

impl PollInterval {
    /// This pause when idle; faults are retried after 50 ms up to 1 s: servers come back within seconds, and the bar is two
    /// seconds from a server's return to the next work done.
    #[must_use]
    pub(crate) const fn idle_ms(idle_ms: u64) -> Self {
        Self {
            idle: Duration::from_millis(idle_ms),
            fault: Duration::from_millis(50),
            fault_max: Duration::from_secs(1),
        }
    }
}

/// Faults of one row between two warnings: a minute at least.
const WARN_EVERY: u32 = 64;

/// A background phase.
pub trait Worker: Send {
    /// The phase's name, for logs and metrics.
    fn name(&self) -> &'static str;

    /// Does the work there is now; every wait inside is bounded (a second or so), so that a stop is prompt.
    fn step(&mut self) -> impl Future<Output = Result<Progress, Fault>> + Send;

    /// Finishes the work in hand at a stop. The next process picks up the rest.
    fn drain(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Steps a worker until the stop.
///
/// # Errors
/// [`Fault::Stop`] when the worker must not go on.
pub(crate) async fn run_worker<W: Worker>(mut worker: W, pace: PollInterval, stopper: Stopper) -> Result<(), Fault> {
    let name = worker.name();
    let mut faults = 0u32;
    // Exported from the start, so that the first fault counts as an increase.
    let counter = metrics::counter!("seckill_faults_total", "phase" => name);
    counter.increment(0);
    let failed = metrics::counter!("seckill_steps_failed_total", "phase" => name);
    failed.increment(0);
    while !stopper.is_stopped() {
        match worker.step().await {
            Ok(Progress::Moved(_)) => faults = recovered(name, faults),
            Ok(Progress::Idle) => {
                faults = recovered(name, faults);
                stopper.sleep(jittered(pace.idle)).await;
            }
            Err(fault @ (Fault::BackOff(_) | Fault::Failed(_))) => {
                warn(name, &fault, faults);
                let counter = if matches!(fault, Fault::Failed(_)) { &failed } else { &counter };
                counter.increment(1);
                stopper.sleep(jittered(exponential_backoff(pace.fault, faults, pace.fault_max))).await;
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

/// The first failure of a row is worth a warning, and then one from time to time; the rest would only fill the log.
fn warn(name: &str, fault: &Fault, faults: u32) {
    if !faults.is_multiple_of(WARN_EVERY) {
        tracing::debug!(phase = name, %fault, faults, "still retrying");
    } else if matches!(fault, Fault::Failed(_)) {
        tracing::warn!(phase = name, error = %fault, faults, "a step failed, retrying");
    } else {
        tracing::warn!(phase = name, error = %fault, faults, "waiting for a server, retrying");
    }
}

fn recovered(name: &str, faults: u32) -> u32 {
    if faults > 0 {
        tracing::info!(phase = name, faults, "working again");
    }
    0
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
        let (worker, stopper, drained) = scripted(vec![
            Ok(Progress::Moved(1)),
            Err(Fault::BackOff("away".into())),
            Err(Fault::Failed("odd".into())),
        ]);
        run_worker(worker, PollInterval::idle_ms(1), stopper).await.unwrap();
        assert_eq!(drained.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_stop_fault_ends_the_loop() {
        let (worker, stopper, drained) = scripted(vec![Err(Fault::Stop("broken".into()))]);
        assert!(matches!(run_worker(worker, PollInterval::idle_ms(1), stopper).await, Err(Fault::Stop(_))));
        assert_eq!(drained.load(Ordering::SeqCst), 0);
    }
}
