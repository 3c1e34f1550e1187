//! Counters of the processes, added up over all their lives: each begins at 0 again after a kill.
//!
//! What a process counted after the last reading of a life is missing, so every sum is a lower bound.

use crate::deployment::Deployment;
use crate::process::Process;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

const EVERY: Duration = Duration::from_secs(1);
const COUNTER: &str = "seckill_state_total{";

/// State code → how often.
pub type Counts = BTreeMap<String, u64>;

/// A meter at work.
pub struct Meter {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Counts>,
}

/// The last reading of each life, by process and life.
type Readings = BTreeMap<(String, u32), Counts>;

impl Meter {
    /// Starts reading every process.
    pub fn start(deployment: &Deployment) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let processes: Vec<Arc<Process>> = deployment.processes.clone();
        let task = tokio::spawn(async move {
            let mut readings = Readings::new();
            let mut tick = interval(EVERY);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut last = false;
            while !last {
                tokio::select! {
                    _ = &mut stopped => last = true,
                    _ = tick.tick() => {}
                }
                let read = |process: Arc<Process>| async move {
                    let life = process.lives();
                    let text = process.metrics().await?;
                    (process.lives() == life).then(|| ((process.name().to_owned(), life), states(&text)))
                };
                let found = futures::future::join_all(processes.iter().cloned().map(read)).await;
                readings.extend(found.into_iter().flatten());
            }
            sum(&readings)
        });
        Self { stop, task }
    }

    /// Reads once more and adds up.
    pub async fn stop(self) -> Counts {
        self.stop.send(()).expect("the meter runs");
        self.task.await.expect("the meter ends")
    }
}

fn sum(readings: &Readings) -> Counts {
    let mut total = Counts::new();
    for (code, count) in readings.values().flatten() {
        *total.entry(code.clone()).or_default() += count;
    }
    total
}

/// Reads the lines `seckill_state_total{…code="…"…} n`.
fn states(text: &str) -> Counts {
    let line = |line: &str| {
        let (labels, value) = line.strip_prefix(COUNTER)?.rsplit_once("} ")?;
        let code = labels.split("code=\"").nth(1)?.split('"').next()?;
        Some((code.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn counters_of_all_lives_are_added() {
    let text = "# TYPE seckill_state_total counter\n\
        seckill_state_total{phase=\"p4_persist\",code=\"P4-C1\"} 3\nother{code=\"P4-C1\"} 9\n";
    let first = states(text);
    assert_eq!(first, Counts::from([("P4-C1".to_owned(), 3)]));
    let readings = Readings::from([(("consumer-0".into(), 1), first.clone()), (("consumer-0".into(), 2), first)]);
    assert_eq!(sum(&readings)["P4-C1"], 6);
}
