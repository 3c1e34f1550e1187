//! A run: everything prepared, connections made, then the clock starts and every connection shops until nothing is left.
//!
//! Input: a plan. Output: a report. A dropped run stops all its connections; what they had sent stays sent.

use super::http::Connection;
use super::plan::{CrowdError, CrowdPlan};
use super::report::CrowdReport;
use super::shared::Shared;
use super::shopper::Shopper;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// A crowd at the door: access tokens signed, connections made, nothing bought.
pub struct Ready {
    shared: Arc<Shared>,
    shoppers: Vec<Shopper>,
}

/// Makes everything ready, which takes as long as signing everybody's access token does.
///
/// # Errors
/// [`CrowdError`] when the run cannot start: a plan that makes no sense, no key, nobody listening.
pub async fn prepare(plan: CrowdPlan) -> Result<Ready, CrowdError> {
    plan.check()?;
    let shared = Arc::new(Shared::prepare(plan).await?);
    let shoppers = gather(&shared).await?;
    Ok(Ready { shared, shoppers })
}

/// Prepares the crowd, lets it loose and waits for it.
///
/// # Errors
/// [`CrowdError`] when the run cannot start. Once it runs, trouble is what it reports.
pub async fn run(plan: CrowdPlan) -> Result<CrowdReport, CrowdError> {
    prepare(plan).await?.run().await
}

impl Ready {
    /// Lets the crowd loose and waits for it; the clock starts now.
    ///
    /// # Errors
    /// [`CrowdError::Crashed`].
    pub async fn run(self) -> Result<CrowdReport, CrowdError> {
        let Self { shared, shoppers } = self;
        let mut crew = JoinSet::new();
        let start = shared.start();
        for shopper in shoppers {
            crew.spawn(shopper.shop());
        }
        let mut report = CrowdReport::empty()?;
        let mut ticks = tokio::time::interval(PROGRESS_EVERY);
        loop {
            tokio::select! {
                done = crew.join_next() => match done {
                    Some(Ok(seen)) => report.merge(seen),
                    Some(Err(_)) => return Err(CrowdError::Crashed),
                    None => break,
                },
                _ = ticks.tick() => tell(&shared),
            }
        }
        report.settle(start.elapsed(), shared.latencies.take());
        tell(&shared);
        Ok(report)
    }
}

/// The connections, made before the clock starts. The first must succeed; a later failure leaves the rest to be made by
/// their first request, with a buyer's patience.
async fn gather(shared: &Arc<Shared>) -> Result<Vec<Shopper>, CrowdError> {
    let plan = &shared.plan;
    let mut shoppers = Vec::new();
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
        shoppers.push(Shopper::new(Arc::clone(shared), connection, CrowdReport::empty()?));
    }
    Ok(shoppers)
}

fn tell(shared: &Shared) {
    if let Some(progress) = &shared.plan.progress {
        progress(shared.progress());
    }
}
