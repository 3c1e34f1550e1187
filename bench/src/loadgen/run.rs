//! A run: everything prepared, connections made, then the clock starts and every connection shops until nothing is left.
//!
//! Input: a plan. Output: a report. A dropped run stops all its connections; what they had sent stays sent.

use super::http::Connection;
use super::load_error::LoadError;
use super::plan::LoadPlan;
use super::report::LoadReport;
use super::run_state::RunState;
use super::virtual_user::VirtualUser;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// A crowd at the door: access tokens signed, connections made, nothing bought.
pub struct PreparedRun {
    shared: Arc<RunState>,
    users: Vec<VirtualUser>,
}

/// Makes everything ready, which takes as long as signing everybody's access token does.
///
/// # Errors
/// [`LoadError`] when the run cannot start: a plan that makes no sense, no key, no server at the address.
pub async fn prepare(plan: LoadPlan) -> Result<PreparedRun, LoadError> {
    plan.check()?;
    let shared = Arc::new(RunState::prepare(plan).await?);
    let users = gather(&shared).await?;
    Ok(PreparedRun { shared, users })
}

/// Prepares the crowd, lets it loose and waits for it.
///
/// # Errors
/// [`LoadError`] when the run cannot start. Once it runs, trouble is what it reports.
pub async fn run(plan: LoadPlan) -> Result<LoadReport, LoadError> {
    prepare(plan).await?.run().await
}

impl PreparedRun {
    /// Lets the crowd loose and waits for it; the clock starts now.
    ///
    /// # Errors
    /// [`LoadError::Crashed`].
    pub async fn run(self) -> Result<LoadReport, LoadError> {
        let Self { shared, users } = self;
        let mut crew = JoinSet::new();
        let start = shared.start();
        for user in users {
            crew.spawn(user.run());
        }
        let mut report = LoadReport::empty()?;
        let mut ticks = tokio::time::interval(PROGRESS_EVERY);
        loop {
            tokio::select! {
                done = crew.join_next() => match done {
                    Some(Ok(seen)) => report.merge(seen),
                    Some(Err(_)) => return Err(LoadError::Crashed),
                    None => break,
                },
                _ = ticks.tick() => report_progress(&shared),
            }
        }
        report.settle(start.elapsed(), shared.latencies.take());
        report_progress(&shared);
        Ok(report)
    }
}

/// The connections, made before the clock starts. The first must succeed; a later failure leaves the rest to be made by
/// their first request, with a buyer's patience.
async fn gather(shared: &Arc<RunState>) -> Result<Vec<VirtualUser>, LoadError> {
    let plan = &shared.plan;
    let mut users = Vec::new();
    let mut reachable = true;
    for no in 0..u64::from(plan.connections).min(plan.purchases()) {
        let mut connection = Connection::new(shared.target.clone(), Duration::from_millis(plan.timeout_ms));
        if reachable {
            match connection.warm().await {
                Ok(()) => {}
                Err(error) if no == 0 => return Err(error.into()),
                Err(_) => reachable = false,
            }
        }
        users.push(VirtualUser::new(Arc::clone(shared), connection, LoadReport::empty()?));
    }
    Ok(users)
}

fn report_progress(shared: &RunState) {
    if let Some(progress) = &shared.plan.progress {
        progress(shared.progress());
    }
}
