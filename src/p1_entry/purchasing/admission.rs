//! Whether a purchase may be tried now: checks in the order that keeps promises, each with one reason to refuse.
//!
//! Input: an attempt. Output: admitted, or a refusal that says whether a replay overrides it. Keeps nothing of its own.

use super::sale_state;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::policy::LimitBy;
use crate::domain::sale::Sale;
use crate::domain::sale_door::SaleDoor;
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::block_list::BuyerChecks;
use crate::p1_entry::catalog::SaleView;
use crate::p1_entry::entitlement::ShownFacts;
use crate::p1_entry::overload::Overload;
use crate::p1_entry::purchase_tokens::{PurchaseToken, PurchaseTokens, TokenFault};
use crate::p1_entry::status::status_url;
use crate::p2_reserve::DurabilityGuard;
use crate::telemetry::count;
use std::sync::Arc;

/// Checks attempts to buy. One a process.
pub(crate) struct Admission {
    tokens: Arc<PurchaseTokens>,
    buyers: BuyerChecks,
    guard: DurabilityGuard,
    overload: Overload,
}

/// One attempt to buy.
pub(super) struct Attempt<'a> {
    pub user: &'a UserId,
    pub view: &'a SaleView,
    /// What the call shows of the buyer's facts.
    pub shown: Option<&'a ShownFacts>,
    /// The person for whom it counts, where the sale limits by person; an error says why that is not known. Boxed: each purchase carries it.
    pub person: Result<Option<UserId>, Box<Problem>>,
    /// The request that the purchase token stands for, if one was sent.
    pub token: Option<RequestId>,
    pub now_ms: i64,
}

/// Why an attempt is not admitted.
pub(super) enum Refusal {
    /// Whatever happened before.
    Final(Problem),
    /// Unless the same request was accepted before; then it gets its first answer again.
    UnlessReplayed(Problem),
    /// The sale is sold out, and the token may be a winner's: the ledger knows, and else the reserve script.
    SoldOutUnlessReplayed,
}

impl Refusal {
    /// What to answer when there was no first answer.
    pub(super) fn problem(self) -> Problem {
        match self {
            Self::Final(problem) | Self::UnlessReplayed(problem) => problem,
            Self::SoldOutUnlessReplayed => sold_out(),
        }
    }
}

/// Sold out, as the entry knows.
pub(super) fn sold_out() -> Problem {
    count(State::P1(P1Entry::SoldOut), 1);
    Kind::EntrySoldOut.into()
}

type AdmissionCheck = fn(&Admission, &Attempt<'_>) -> Option<Refusal>;

impl Admission {
    /// The checks that ask no server, in their order. After a sell-out P2 may still decide, so what the sale needs comes before it.
    const CHECKS: [AdmissionCheck; 7] = [
        Self::buyer_is_blocked,
        Self::sale_is_closed,
        Self::redis_is_unsafe,
        Self::sale_is_its_lines,
        Self::token_is_missing,
        Self::buyer_is_not_entitled,
        Self::sold_out,
    ];

    /// Puts the parts together.
    #[must_use]
    pub(crate) const fn new(
        tokens: Arc<PurchaseTokens>,
        buyers: BuyerChecks,
        guard: DurabilityGuard,
        overload: Overload,
    ) -> Self {
        Self { tokens, buyers, guard, overload }
    }

    /// What the token says which was sent as `Idempotency-Key`.
    pub(super) fn read_token(
        &self,
        text: &str,
        user: &UserId,
        sale: &SaleId,
        now_ms: i64,
    ) -> Result<PurchaseToken, Problem> {
        self.tokens.check(text, user, sale, now_ms).map_err(|fault| match fault {
            TokenFault::Invalid => Kind::TokenInvalid.because(
                "Idempotency-Key must be a token from POST …/tokens of this sale, issued to the same buyer, unchanged",
            ),
            TokenFault::Expired(request_id) => Kind::TokenExpired
                .because("if it was used in time, its purchase can be looked up")
                .about(request_id, status_url(sale, request_id)),
        })
    }

    /// The person for whom a purchase counts, where the sale limits by person: who the purchase token was issued for, else the fact.
    pub(super) fn person(
        &self,
        sale: &Sale,
        user: &UserId,
        shown: Option<&ShownFacts>,
        token: Option<&PurchaseToken>,
    ) -> Result<Option<UserId>, Box<Problem>> {
        match token.and_then(|token| token.person.clone()) {
            Some(person) if sale.limit_by == LimitBy::Person => Ok(Some(person)),
            Some(_) | None => self.buyers.entitlements.person(sale, user, shown).map_err(Box::new),
        }
    }

    /// Remembers a purchase that was accepted just now, to measure how far P4 is behind.
    pub(super) fn accepted(&self, sale: &SaleId, shard: u16, request_id: RequestId) {
        self.overload.accepted(sale, shard, request_id);
    }

    /// Why the attempt may not go on, as far as no server has to be asked.
    pub(super) fn refusal(&self, attempt: &Attempt<'_>) -> Option<Refusal> {
        Self::CHECKS.iter().find_map(|check| check(self, attempt))
    }

    /// The rest of the checks, by load and rates: whether the attempt may go on to P2.
    pub(super) async fn take_in(&self, attempt: &Attempt<'_>) -> Result<(), Refusal> {
        let overloaded = self.overload.refusal();
        // Without a token it cannot be a replay: refused before any server is asked.
        if let (Some(problem), None) = (&overloaded, &attempt.token) {
            return Err(Refusal::Final(problem.clone()));
        }
        self.buyers.limits.take(attempt.user).await.map_err(Refusal::Final)?;
        overloaded.map_or(Ok(()), |problem| Err(Refusal::UnlessReplayed(problem)))
    }

    /// What was accepted before the block stays accepted.
    fn buyer_is_blocked(&self, attempt: &Attempt<'_>) -> Option<Refusal> {
        let person = attempt.person.as_ref().ok().and_then(Option::as_ref);
        self.buyers.blocks.refusal_of(attempt.user, person, attempt.now_ms).map(Refusal::UnlessReplayed)
    }

    /// The sale needs what the buyer does not show. What was accepted before stays accepted, also when a pass has expired since.
    fn buyer_is_not_entitled(&self, attempt: &Attempt<'_>) -> Option<Refusal> {
        let Attempt { user, view, shown, person, .. } = attempt;
        let lacks = self.buyers.entitlements.refusal(&view.sale, user, *shown);
        lacks.or_else(|| person.as_ref().err().map(|problem| (**problem).clone())).map(Refusal::UnlessReplayed)
    }

    /// Before its start, after its end, paused, or not loaded.
    fn sale_is_closed(&self, attempt: &Attempt<'_>) -> Option<Refusal> {
        sale_state::refusal(attempt.view, attempt.now_ms).map(Refusal::UnlessReplayed)
    }

    /// The guard refuses this Redis. What exactly is wrong is for operators: readiness, log and doctor say it.
    fn redis_is_unsafe(&self, _: &Attempt<'_>) -> Option<Refusal> {
        self.guard.refusal().map(|why| {
            tracing::debug!(phase = "p1_entry", %why, "not selling");
            let problem =
                Kind::Unavailable.because("nothing is sold until the operators have corrected a server's settings");
            Refusal::UnlessReplayed(problem)
        })
    }

    /// Its units go to its line. The reserve script says the same where this process knows an older sale.
    fn sale_is_its_lines(&self, attempt: &Attempt<'_>) -> Option<Refusal> {
        let sale = &attempt.view.sale;
        sale.by_line.then(|| Refusal::UnlessReplayed(sale_state::only_by_line(&sale.sale_id)))
    }

    /// The sale is sold with purchase tokens only. The reserve script says the same where this process knows an older sale.
    fn token_is_missing(&self, attempt: &Attempt<'_>) -> Option<Refusal> {
        let sale = &attempt.view.sale;
        let needs_token = sale.door() == SaleDoor::Token;
        (attempt.token.is_none() && needs_token).then(|| Refusal::Final(sale_state::token_missing(&sale.sale_id)))
    }

    /// Sold out. A token is refused by the ledger only, however much younger it is than the mark: units may have come back and
    /// been sold since, by a process that knew of it before this one. There are few such tokens: a process that knows of the
    /// mark issues none.
    fn sold_out(&self, attempt: &Attempt<'_>) -> Option<Refusal> {
        attempt.view.sold_out?;
        Some(if attempt.token.is_some() { Refusal::SoldOutUnlessReplayed } else { Refusal::Final(sold_out()) })
    }
}
