//! Faults aimed at a step: a process dies at a named line, and in the same moment a server that the next process needs for what was left
//! there dies or stands still.
//!
//! What a death at a line leaves behind has tests of its own, and so has each server's death. Here the process that finds what was left
//! finds no server: a confirmed entry cannot be deleted, a commit cannot be read back, a grant cannot be given.

use super::plan::{Fault, Place};
use super::{Field, Outcome};
use crate::time::time_passes;
use seckill::dev::ServerKind::{self, Mysql, Rabbitmq, Redis};
use seckill::faults::CrashPoint::{self, *};
use seckill::roles::Role::{self, Api, Consumer, Reconcile, Relay};

/// Shortest time that a server stands still, and how much longer it may be, milliseconds.
const FROZEN_MS: u64 = 500;
const FROZEN_MORE_MS: u64 = 2_500;

/// What happens to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerFailure {
    /// SIGKILL, and its start on the same data.
    Killed,
    /// SIGSTOP for a while.
    Frozen,
}
use ServerFailure::{Frozen, Killed};

/// A line, and the server that fails with it.
pub struct Step {
    /// Whose line.
    pub role: Role,
    point: CrashPoint,
    /// The server.
    pub server: ServerKind,
    failure: ServerFailure,
}

const fn step(role: Role, point: CrashPoint, server: ServerKind, failure: ServerFailure) -> Step {
    Step { role, point, server, failure }
}

/// Lines that a process passes often, each with the servers that matter there.
pub const STEPS: [Step; 16] = [
    // Accepted, and no buyer has an answer: a repeat with the same token meets a Redis that starts.
    step(Api, AfterScript, Redis, Killed),
    step(Api, AfterScript, Redis, Frozen),
    // On record, and the backend has no answer: it reports again.
    step(Api, PaymentCommitted, Mysql, Killed),
    // Entries in the hand of a relay that is gone.
    step(Relay, AfterRead, Redis, Killed),
    // Sent, and it is unknown whether the broker has it.
    step(Relay, AfterPublish, Rabbitmq, Killed),
    step(Relay, AfterPublish, Redis, Frozen),
    // Confirmed, and the entry cannot be deleted.
    step(Relay, AfterConfirm, Redis, Frozen),
    step(Relay, AfterConfirm, Rabbitmq, Killed),
    // Delivered, and the broker that would deliver again is gone.
    step(Consumer, AfterDelivery, Rabbitmq, Killed),
    // An open transaction, a commit that was not answered.
    step(Consumer, AfterOrder, Mysql, Killed),
    step(Consumer, CommitSent, Mysql, Killed),
    step(Consumer, CommitSent, Mysql, Frozen),
    // Committed, and not acknowledged.
    step(Consumer, AfterCommit, Mysql, Killed),
    step(Consumer, AfterCommit, Rabbitmq, Frozen),
    // The audit has half of what it compares.
    step(Reconcile, AfterLedgerRead, Mysql, Frozen),
    // Units are back in the database, and Redis cannot be given them.
    step(Reconcile, ExpiryCommitted, Redis, Killed),
];

impl Field {
    /// The note says which line, and what failed with it.
    pub(super) async fn fail_at_a_step(&self, fault: Fault) -> Outcome {
        let Place::Step(at, index) = fault.target else { panic!("{} is no step", fault.target) };
        let Step { role, point, server, failure } = STEPS[at];
        let process = self.deployment.of(role).nth(index).expect("of the plan");
        let died = self.dies_at(process, point, fault).await;
        if !died.injected {
            return died;
        }
        let note = match failure {
            Killed => {
                self.kill_server(Place::Server(server)).await;
                format!("{} with {server} killed", point.code())
            }
            Frozen => {
                let length_ms = FROZEN_MS + u64::from(fault.dice) % FROZEN_MORE_MS;
                self.deployment.freeze(server).await;
                time_passes(length_ms).await;
                self.deployment.thaw(server).await;
                format!("{} with {server} frozen", point.code())
            }
        };
        Outcome { injected: true, note: Some(note) }
    }
}

#[test]
fn each_server_fails_at_lines_of_each_role_that_needs_it() {
    let pairs: std::collections::BTreeSet<(Role, ServerKind)> =
        STEPS.iter().map(|step| (step.role, step.server)).collect();
    for pair in [(Api, Redis), (Api, Mysql), (Relay, Redis), (Relay, Rabbitmq), (Consumer, Rabbitmq), (Consumer, Mysql)]
    {
        assert!(pairs.contains(&pair), "{pair:?}");
    }
}
