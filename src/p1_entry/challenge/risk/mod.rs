//! The shop's risk service: asked once about a buyer who wants a purchase token, its verdict remembered for a short time.
//!
//! Input: a buyer and a sale. Output: nothing, or the refusal. Calls are bounded in number and time, and a breaker ends them while
//! the service fails; `risk.on_failure` decides then. No purchase and no token of another sale waits for it.
//! Verdicts are in memory only: a crash leaves nothing, the next process asks again.

mod breaker;
mod figures;
mod service;

pub(crate) use service::{RiskSetupError, SeenCaller};

use crate::config::{OnRiskFailure, Risk};
use crate::domain::ids::{SaleId, UserId};
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::overload::overloaded;
use crate::telemetry::count;
use breaker::{BreakerNews, RiskBreaker};
use figures::RiskFigures;
use moka::future::Cache;
use service::{RiskQuestion, RiskService};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unjudged {
    /// The service failed, or is not asked because it did.
    Failed,
    /// Too many buyers are being judged.
    Busy,
}

/// Judges buyers. One a process.
pub(super) struct RiskChecks {
    asked: Option<Arc<AskedService>>,
    verdicts: Cache<(SaleId, UserId), bool>,
    on_failure: OnRiskFailure,
    runtime: Handle,
}

impl RiskChecks {
    /// For settings that were checked. Calls run on the runtime this is called in.
    ///
    /// # Errors
    /// The address or the certificates cannot be used.
    pub(super) fn start(settings: &Risk) -> Result<Self, RiskSetupError> {
        let asked = if settings.is_given() { Some(Arc::new(AskedService::new(settings)?)) } else { None };
        let verdicts = Cache::builder()
            .max_capacity(settings.remembered_max)
            .time_to_live(Duration::from_secs(settings.remember_s))
            .build();
        Ok(Self { asked, verdicts, on_failure: settings.on_failure, runtime: Handle::current() })
    }

    pub(super) const fn has_service(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the buyer may have a token of this sale. Calls at one time for one buyer and sale ask once.
    ///
    /// # Errors
    /// 403 when the service refuses; 503 when too many buyers are being judged, when there is no service, or when it failed and
    /// that means no.
    pub(super) async fn judge(&self, sale: &SaleId, buyer: &UserId, seen: Option<&SeenCaller>) -> Result<(), Problem> {
        let Some(asked) = &self.asked else {
            tracing::debug!(phase = "p1_entry", %sale, "its challenge is hook, and risk.url is empty");
            return Err(unavailable());
        };
        let question =
            RiskQuestion { sale_id: sale.clone(), user: buyer.clone(), seen: seen.cloned().unwrap_or_default() };
        // A task of the process: kept connections outlive the worker that a buyer came to, and a buyer who goes away breaks none off.
        let judging =
            async { self.runtime.spawn(asked.clone().judge(question)).await.unwrap_or(Err(Unjudged::Failed)) };
        match self.verdicts.try_get_with((sale.clone(), buyer.clone()), judging).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                count(State::P1(P1Entry::RiskRefused), 1);
                Err(Kind::RiskRefused.into())
            }
            Err(unjudged) => match (*unjudged, self.on_failure) {
                (Unjudged::Busy, _) => Err(overloaded("the shop's check is busy, try again")),
                (Unjudged::Failed, OnRiskFailure::Allow) => Ok(()),
                (Unjudged::Failed, OnRiskFailure::Refuse) => Err(unavailable()),
            },
        }
    }
}

fn unavailable() -> Problem {
    Kind::Unavailable
        .because_both("the shop's check cannot be made right now, try again", "暂时无法完成商店的检查，请稍后再试")
}

/// The service with its bounds.
struct AskedService {
    service: RiskService,
    places: Semaphore,
    breaker: RiskBreaker,
    figures: RiskFigures,
    deadline: Duration,
}

impl AskedService {
    fn new(settings: &Risk) -> Result<Self, RiskSetupError> {
        Ok(Self {
            service: RiskService::new(settings)?,
            places: Semaphore::new(settings.in_flight_max),
            breaker: RiskBreaker::new(Instant::now()),
            figures: RiskFigures::new(),
            deadline: Duration::from_millis(settings.timeout_ms),
        })
    }

    /// Waits for a place up to the deadline, then for the answer up to the deadline.
    async fn judge(self: Arc<Self>, question: RiskQuestion) -> Result<bool, Unjudged> {
        // Asked twice, so that a service that stands still has no buyer wait for a place.
        if self.breaker.is_open(Instant::now()) {
            self.figures.breaker.increment(1);
            return Err(Unjudged::Failed);
        }
        let Ok(Ok(_place)) = timeout(self.deadline, self.places.acquire()).await else {
            self.figures.busy.increment(1);
            return Err(Unjudged::Busy);
        };
        if !self.breaker.admits(Instant::now()) {
            self.figures.breaker.increment(1);
            return Err(Unjudged::Failed);
        }
        let begun = Instant::now();
        let answered = timeout(self.deadline, self.service.ask(&question)).await;
        let answered = answered.unwrap_or_else(|_elapsed| Err(format!("no whole answer within {:?}", self.deadline)));
        self.figures.count(answered.as_ref().ok().copied(), begun.elapsed());
        match self.breaker.observe(Instant::now(), answered.is_ok()) {
            BreakerNews::None => {}
            BreakerNews::FirstFailure => {
                let problem = answered.as_ref().err();
                tracing::warn!(phase = "p1_entry", problem, "the risk service did not judge a buyer");
            }
            BreakerNews::Opens => {
                let problem = answered.as_ref().err();
                tracing::warn!(
                    phase = "p1_entry",
                    problem,
                    "breaker opens: the risk service is not asked, risk.on_failure decides"
                );
                self.figures.is_open(true);
            }
            BreakerNews::Closes => {
                tracing::info!(phase = "p1_entry", "breaker closes: the risk service answers");
                self.figures.is_open(false);
            }
        }
        answered.map_err(|_problem| Unjudged::Failed)
    }
}

/// Asks the service of these settings once, as `seckill doctor` does: whether it answers as it should.
///
/// # Errors
/// In words.
pub(crate) async fn probe(settings: &Risk) -> Result<(), String> {
    let service = RiskService::new(settings).map_err(|error| error.to_string())?;
    let deadline = Duration::from_millis(settings.timeout_ms);
    let late = |_elapsed| format!("no whole answer within {deadline:?} (risk.timeout_ms)");
    timeout(deadline, service.probe()).await.map_err(late).flatten().map(|_verdict| ())
}
