//! P5 seen from outside, by its log and its metrics.

use super::programs::{Folder, Program};
use crate::support::world::World;

/// A reconciler as a process of its own, with its own metrics.
pub struct ObservedReconciler {
    /// To read its log, or to end it.
    pub program: Program,
    metrics: String,
}

impl ObservedReconciler {
    /// Starts it on this world's servers, audits as often as can be.
    pub fn start(world: &World, folder: &Folder, set: &[&str]) -> Self {
        let port = seckill::dev::ports::free_port().unwrap();
        let mut args = world.sets();
        args.truncate(args.len() - 2);
        let own = format!("admin.listen=127.0.0.1:{port}");
        for set in ["p5_reconcile.interval_ms=100", own.as_str()].into_iter().chain(set.iter().copied()) {
            args.extend(["--set".to_owned(), set.to_owned()]);
        }
        args.extend(["--role", "reconcile"].map(str::to_owned));
        let program = Program::start(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
        Self { program, metrics: format!("http://127.0.0.1:{port}/metrics") }
    }

    /// The value of a line that begins with this; none when there is no such line.
    pub async fn metric(&self, world: &World, begins: &str) -> Option<f64> {
        let text = world.http.get(&self.metrics).send().await.ok()?.text().await.ok()?;
        let line = text.lines().find(|line| line.starts_with(begins))?.to_owned();
        line.rsplit(' ').next()?.parse().ok()
    }

    /// The counter of this state; -1 when it does not answer.
    pub async fn state(&self, world: &World, code: &str) -> f64 {
        let name = format!("seckill_state_total{{phase=\"p5_reconcile\",code=\"{code}\"}}");
        self.metric(world, &name).await.unwrap_or(-1.0)
    }
}
