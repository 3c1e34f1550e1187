//! Faults on the product's own processes and on the servers' processes.

use super::plan::{Fault, Place};
use super::{Field, Outcome};
use crate::process::Process;
use crate::time::{pause, time_passes};
use seckill::dev::ServerKind;
use seckill::faults::CrashPoint;
use seckill::roles::Role;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A role has drained by then (`runtime.drain_ms` and a bit), or is killed as a service manager would.
const TERMINATE: Duration = Duration::from_secs(6);

impl Field {
    pub(super) fn process(&self, target: Place) -> &Arc<Process> {
        let (role, index) = match target {
            Place::Process(role, index) | Place::Link(role, index, _) => (role, index),
            Place::Role(_) | Place::Server(_) | Place::Step(..) | Place::Inside(..) => panic!("{target} is no process"),
        };
        self.deployment.of(role).nth(index).expect("of the plan")
    }

    fn role(&self, target: Place) -> Vec<&Arc<Process>> {
        match target {
            Place::Role(role) => self.deployment.of(role).collect(),
            Place::Process(..) | Place::Link(..) | Place::Server(_) | Place::Step(..) | Place::Inside(..) => {
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

    /// Another life that ends at a named line, with whatever else is going on; the note says which line.
    pub(super) async fn crash_at_a_point(&self, fault: Fault) -> Outcome {
        let process = self.process(fault.target);
        let points = points_of(process.recipe.role);
        self.dies_at(process, points[fault.dice as usize % points.len()], fault).await
    }

    /// The next life of a process ends at this line, if it reaches it in time; the note says which line.
    pub(super) async fn dies_at(&self, process: &Process, point: CrashPoint, fault: Fault) -> Outcome {
        // Not always the first pass: the group before it has left its traces.
        let passes = fault.dice / 97 % 4;
        let (ends, deadline) =
            (process.unordered_ends().len(), Instant::now() + Duration::from_millis(fault.length_ms));
        process.rearm(&format!("{}={passes}*off->1*return", point.code()));
        while process.unordered_ends().len() == ends {
            if Instant::now() > deadline {
                return Outcome { injected: false, note: Some(format!("{} was not reached", point.code())) };
            }
            pause().await;
        }
        Outcome { injected: true, note: Some(point.code().to_owned()) }
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
        self.deployment.kill_and_restart(server(target)).await;
        let mut ghosts = 0;
        if server(target) == ServerKind::Rabbitmq {
            self.broker_started();
            ghosts = self.remove_ghosts().await;
        }
        Outcome {
            note: (ghosts > 0).then(|| format!("queues without a process removed by hand: {ghosts}")),
            ..Outcome::of(true)
        }
    }

    pub(super) async fn freeze_server(&self, target: Place, length_ms: u64) -> Outcome {
        self.deployment.freeze(server(target)).await;
        time_passes(length_ms).await;
        self.deployment.thaw(server(target)).await;
        Outcome::of(true)
    }
}

/// The lines a role passes while it works; the others need a provocation of their own and have tests of their own.
fn points_of(role: Role) -> &'static [CrashPoint] {
    match role {
        Role::Api => &[
            CrashPoint::BeforeScript,
            CrashPoint::AfterScript,
            CrashPoint::PaymentWritten,
            CrashPoint::PaymentCommitted,
        ],
        Role::Relay => &[
            CrashPoint::AfterRead,
            CrashPoint::BeforePublish,
            CrashPoint::AfterPublish,
            CrashPoint::AfterConfirm,
            CrashPoint::AfterDone,
            CrashPoint::AfterClaim,
            CrashPoint::AfterReturn,
        ],
        Role::Consumer => &[
            CrashPoint::AfterDelivery,
            CrashPoint::InsertsSent,
            CrashPoint::AfterOrder,
            CrashPoint::AfterStock,
            CrashPoint::CommitSent,
            CrashPoint::AfterCommit,
            CrashPoint::AfterRetryPublished,
        ],
        Role::Reconcile => &[
            CrashPoint::AfterLedgerRead,
            CrashPoint::AfterCompensation,
            CrashPoint::AfterTrim,
            CrashPoint::ExpiryChosen,
            CrashPoint::ExpiryWritten,
            CrashPoint::ExpiryCommitted,
            CrashPoint::WebhookChosen,
            CrashPoint::WebhookAnswered,
            CrashPoint::WebhookRecorded,
        ],
    }
}

fn server(target: Place) -> ServerKind {
    match target {
        Place::Server(kind) | Place::Inside(kind, _) => kind,
        Place::Process(..) | Place::Link(..) | Place::Role(_) | Place::Step(..) => panic!("{target} is no server"),
    }
}
