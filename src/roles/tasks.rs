//! The tasks of one role: they run until the process stops, and one that ends earlier stops the process.
//!
//! Input: workers and other tasks. Output: the first error, kept for the process even if the rest does not drain in time.
//! A crash leaves nothing beyond what the phases themselves leave.

use super::{RoleContext, RoleError};
use crate::runtime::{PollInterval, Stopper, Worker, run_worker};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::{JoinError, JoinSet};

/// The first error of any role of the process.
#[derive(Clone, Default)]
pub(super) struct FirstError(Arc<Mutex<Option<RoleError>>>);

impl FirstError {
    /// Keeps an error, unless there was one before.
    pub(super) fn keep(&self, outcome: Result<(), RoleError>) {
        if let Err(error) = outcome {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// The first error, if there was one.
    pub(super) fn take(&self) -> Result<(), RoleError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// The running tasks of one role.
pub(super) struct RoleTasks {
    tasks: JoinSet<Result<(), RoleError>>,
    stopper: Stopper,
    first_error: FirstError,
}

impl RoleTasks {
    /// No tasks yet.
    pub(super) fn new(context: &RoleContext) -> Self {
        let (stopper, first_error) = (context.stopper.clone(), context.first_error.clone());
        Self { tasks: JoinSet::new(), stopper, first_error }
    }

    /// Runs a background phase.
    pub(super) fn worker<W: Worker + 'static>(&mut self, worker: W, pace: PollInterval) {
        let stopper = self.stopper.clone();
        self.task(async move {
            run_worker(worker, pace, stopper).await.map_err(|fault| RoleError::Ended(fault.to_string()))
        });
    }

    /// Runs a task that ends when the process stops.
    pub(super) fn task(&mut self, task: impl Future<Output = Result<(), RoleError>> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits for all of them. The first one that ends stops the process, so the others drain and end too.
    pub(super) async fn until_ended(mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            self.first_error.keep(outcome(Some(ended)));
            self.stopper.stop();
        }
    }
}

/// What a task came to; a panic is an error too.
pub(super) fn outcome(ended: Option<Result<Result<(), RoleError>, JoinError>>) -> Result<(), RoleError> {
    match ended {
        None => Ok(()),
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => Err(RoleError::Ended(format!("a role's task died: {error}"))),
    }
}
