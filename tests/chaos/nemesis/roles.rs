//! Faults on the product's own processes and on the servers' processes.

use super::plan::Place;
use super::{Field, Outcome};
use crate::process::Process;
use crate::time::{pause, time_passes};
use seckill::dev::ServerKind;
use std::sync::Arc;
use std::time::Duration;

/// A role has drained by then (`runtime.drain_ms` and a bit), or is killed as a service manager would.
const TERMINATE: Duration = Duration::from_secs(6);

impl Field {
    pub(super) fn process(&self, target: Place) -> &Arc<Process> {
        let (role, index) = match target {
            Place::Process(role, index) | Place::Link(role, index, _) => (role, index),
            Place::Role(_) | Place::Server(_) | Place::Inside(..) => panic!("{target} is no process"),
        };
        self.ground.of(role).nth(index).expect("of the plan")
    }

    fn role(&self, target: Place) -> Vec<&Arc<Process>> {
        match target {
            Place::Role(role) => self.ground.of(role).collect(),
            Place::Process(..) | Place::Link(..) | Place::Server(_) | Place::Inside(..) => {
                panic!("{target} is no role")
            }
        }
    }

    pub(super) fn kill_role(&self, target: Place) -> Outcome {
        let process = self.process(target);
        let ran = process.pid().is_some();
        process.kill();
        Outcome::of(ran)
    }

    pub(super) async fn freeze_role(&self, target: Place, length_ms: u64) -> Outcome {
        let process = self.process(target);
        let ran = process.pid().is_some();
        process.signal(libc::SIGSTOP);
        time_passes(length_ms).await;
        process.signal(libc::SIGCONT);
        Outcome::of(ran)
    }

    /// SIGTERM to one after the other; the next when the one before is back.
    pub(super) async fn terminate_role(&self, target: Place) -> Outcome {
        let mut late = Vec::new();
        for process in self.role(target) {
            let life = process.lives();
            if process.terminate(TERMINATE).await.is_none() {
                late.push(process.name());
            }
            // Ends, because a supervisor starts it again.
            while process.lives() == life {
                pause().await;
            }
        }
        Outcome { note: (!late.is_empty()).then(|| format!("did not drain in time: {late:?}")), ..Outcome::of(true) }
    }

    pub(super) async fn no_role(&self, target: Place, length_ms: u64) -> Outcome {
        for process in self.role(target) {
            process.want(false);
            process.kill();
        }
        time_passes(length_ms).await;
        self.role(target).iter().for_each(|process| process.want(true));
        Outcome::of(true)
    }

    pub(super) async fn kill_server(&self, target: Place) -> Outcome {
        self.ground.kill_and_restart(server(target)).await;
        let ghosts = if server(target) == ServerKind::Rabbitmq { self.remove_ghosts().await } else { 0 };
        Outcome {
            note: (ghosts > 0).then(|| format!("queues without a process removed by hand: {ghosts}")),
            ..Outcome::of(true)
        }
    }

    pub(super) async fn freeze_server(&self, target: Place, length_ms: u64) -> Outcome {
        self.ground.freeze(server(target)).await;
        time_passes(length_ms).await;
        self.ground.thaw(server(target)).await;
        Outcome::of(true)
    }
}

fn server(target: Place) -> ServerKind {
    match target {
        Place::Server(kind) | Place::Inside(kind, _) => kind,
        Place::Process(..) | Place::Link(..) | Place::Role(_) => panic!("{target} is no server"),
    }
}
