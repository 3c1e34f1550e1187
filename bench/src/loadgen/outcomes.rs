//! After a run: what became of the accepted requests, asked the way buyers ask.

use super::access_tokens::ACCESS_TTL_S;
use super::answer::text_field;
use super::http::{Connection, ServerAddress};
use super::load_error::LoadError;
use super::plan::{LoadPlan, buyer_name};
use super::report::{AcceptedPurchase, Answers};
use super::request_templates::RequestTemplates;
use seckill::domain::ids::RequestId;
use seckill::token_issuer::TokenIssuer;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Pause between two rounds over what is still open; grows by half up to the second.
const ROUND_PAUSE: Duration = Duration::from_millis(20);
const ROUND_PAUSE_MAX: Duration = Duration::from_millis(500);

/// What became of accepted requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Orders.
    pub confirmed: u64,
    /// Final failures, by reason.
    pub failed: BTreeMap<String, u64>,
    /// The requests that failed.
    pub failed_requests: Vec<RequestId>,
    /// Still QUEUED when time was up.
    pub queued: Vec<RequestId>,
    /// Accepted, but the status answered 404 until the time was up. Must be empty.
    pub missing: Vec<RequestId>,
    /// No usable answer about them before time was up.
    pub unanswered: Vec<RequestId>,
    /// Answers to the questions.
    pub polls_by_status: Answers,
    /// How long it took, milliseconds.
    pub elapsed_ms: u64,
}

impl Outcomes {
    /// Whether every request has its final outcome.
    #[must_use]
    pub fn all_final(&self) -> bool {
        self.queued.is_empty() && self.missing.is_empty() && self.unanswered.is_empty()
    }

    /// Final failures, whatever the reason.
    #[must_use]
    pub fn failed_count(&self) -> u64 {
        self.failed.values().sum()
    }

    fn merge(&mut self, other: Self) {
        self.confirmed += other.confirmed;
        for (reason, count) in other.failed {
            *self.failed.entry(reason).or_default() += count;
        }
        self.failed_requests.extend(other.failed_requests);
        self.queued.extend(other.queued);
        self.missing.extend(other.missing);
        self.unanswered.extend(other.unanswered);
        self.polls_by_status.merge(&other.polls_by_status);
    }
}

/// Asks for every accepted request until each is CONFIRMED or FAILED, or `within` has passed. Uses the plan's server, key,
/// connections and timeout; requests may come from several runs against the same sale.
///
/// # Errors
/// [`LoadError`] when asking cannot start.
pub async fn await_outcomes(
    plan: &LoadPlan,
    accepted: &[AcceptedPurchase],
    within: Duration,
) -> Result<Outcomes, LoadError> {
    plan.check()?;
    let (start, timeout) = (Instant::now(), Duration::from_millis(plan.timeout_ms));
    let target = ServerAddress::resolve(&plan.api_url, timeout).await?;
    let desk = Arc::new(OutcomeQueries {
        forms: RequestTemplates::new(target.host(), (&plan.sale_id, plan.quantity), false),
        issuer: TokenIssuer::new(&plan.secret, &plan.issuer, &plan.audience)?,
        deadline: start + within,
    });
    let mut crew = JoinSet::new();
    let share = accepted.len().div_ceil(usize::try_from(plan.connections).unwrap_or(1)).max(1);
    for part in accepted.chunks(share) {
        let asker = OutcomePoller {
            desk: Arc::clone(&desk),
            connection: Connection::new(target.clone(), timeout),
            outbox: String::new(),
        };
        crew.spawn(asker.follow(part.to_vec()));
    }
    let mut outcomes = Outcomes::default();
    while let Some(done) = crew.join_next().await {
        outcomes.merge(done.map_err(|_| LoadError::Crashed)??);
    }
    for ids in [&mut outcomes.failed_requests, &mut outcomes.queued, &mut outcomes.missing, &mut outcomes.unanswered] {
        ids.sort_unstable();
    }
    outcomes.elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(outcomes)
}

struct OutcomeQueries {
    forms: RequestTemplates,
    issuer: TokenIssuer,
    deadline: Instant,
}

/// What is known about a request that is not final.
#[derive(Clone, Copy)]
enum Undecided {
    Queued,
    Missing,
    Unanswered,
}

struct OutcomePoller {
    desk: Arc<OutcomeQueries>,
    connection: Connection,
    outbox: String,
}

impl OutcomePoller {
    /// Follows its share of the requests, round after round.
    async fn follow(mut self, requests: Vec<AcceptedPurchase>) -> Result<Outcomes, LoadError> {
        let mut seen = Outcomes::default();
        let mut open: Vec<_> = requests.into_iter().map(|request| (request, Undecided::Unanswered)).collect();
        let mut pause = ROUND_PAUSE;
        loop {
            let mut still = Vec::new();
            for (request, before) in open {
                let late = Instant::now() >= self.desk.deadline;
                let state = if late { Some(before) } else { self.ask(&request, &mut seen).await? };
                still.extend(state.map(|state| (request, state)));
            }
            open = still;
            if open.is_empty() || Instant::now() + pause >= self.desk.deadline {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(ROUND_PAUSE_MAX);
        }
        for (request, state) in open {
            let list = match state {
                Undecided::Queued => &mut seen.queued,
                Undecided::Missing => &mut seen.missing,
                Undecided::Unanswered => &mut seen.unanswered,
            };
            list.push(request.request_id);
        }
        Ok(seen)
    }

    /// Asks once; `None` when the outcome is final (and counted).
    async fn ask(&mut self, request: &AcceptedPurchase, seen: &mut Outcomes) -> Result<Option<Undecided>, LoadError> {
        let access = self.desk.issuer.sign(&buyer_name(request.user), ACCESS_TTL_S)?;
        let path = self.desk.forms.status_path(request.request_id);
        self.desk.forms.status(&mut self.outbox, &access, &path);
        let Ok(answer) = self.connection.call(self.outbox.as_bytes()).await else {
            return Ok(Some(Undecided::Unanswered));
        };
        let (status, body) = (answer.status(), answer.body());
        seen.polls_by_status.add(status, text_field(body, "code").unwrap_or_default());
        Ok(match (status, text_field(body, "status")) {
            (200, Some("CONFIRMED")) => {
                seen.confirmed += 1;
                None
            }
            (200, Some("FAILED")) => {
                let reason = text_field(body, "reason").unwrap_or_default();
                *seen.failed.entry(reason.to_owned()).or_default() += 1;
                seen.failed_requests.push(request.request_id);
                None
            }
            (200, Some("QUEUED")) => Some(Undecided::Queued),
            (404, _) => Some(Undecided::Missing),
            (_, Some(_) | None) => Some(Undecided::Unanswered),
        })
    }
}
