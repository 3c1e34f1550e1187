//! A purchase from the buyer's side: admission, then P2, then an answer.
//!
//! Input: a buyer, a sale, a quantity, perhaps a purchase token. Output: the request id of an accepted purchase, or the
//! problem to answer with. A replay comes before every refusal that time can bring: a purchase that was accepted once is
//! answered "accepted" for ever, whatever has happened to its sale since. A crash leaves what P2 leaves.

mod admission;
mod answer;
mod replay;
mod sale_state;
mod spans;
mod token_issue;

pub(crate) use admission::Admission;
pub use replay::Replays;
pub(crate) use token_issue::{PurchaseTokenIssuer, TokenCall};

use super::catalog::Catalog;
use super::entitlement::ShownFacts;
use super::request_ids::RequestIds;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::policy::Quantity;
use crate::domain::request::Purchase;
use crate::domain::sale_door::SaleDoor;
use crate::domain::shard::home_shard;
use crate::domain::states::{P1Entry, State};
use crate::http::problem::Problem;
use crate::p2_reserve::Reserve;
use crate::runtime::now_ms;
use crate::telemetry::{count, traces};
use admission::{Attempt, Refusal};

/// Buys. One a process.
pub(crate) struct Purchasing {
    catalog: Catalog,
    admission: Admission,
    replays: Replays,
    reserve: Reserve,
    ids: RequestIds,
}

impl Purchasing {
    /// Puts the parts together.
    #[must_use]
    pub(crate) const fn new(
        catalog: Catalog,
        admission: Admission,
        replays: Replays,
        reserve: Reserve,
        ids: RequestIds,
    ) -> Self {
        Self { catalog, admission, replays, reserve, ids }
    }

    /// Buys `quantity` units for the buyer of this call.
    ///
    /// # Errors
    /// The problem to answer with; only 504 leaves open whether the purchase was accepted.
    pub(crate) async fn buy(
        &self,
        (user, shown): (UserId, Option<Box<ShownFacts>>),
        sale: &SaleId,
        quantity: Quantity,
        token: Option<&str>,
    ) -> Result<RequestId, Problem> {
        let begun = traces::now();
        let view = self.catalog.view(sale).await?;
        let attempt = {
            let now_ms = now_ms();
            let token = token.map(|text| self.admission.read_token(text, &user, sale, now_ms)).transpose()?;
            let shown = shown.as_deref();
            let person = self.admission.person(&view.sale, &user, shown, token.as_ref());
            let token = token.map(|token| token.request_id);
            Attempt { user: &user, view: &view, shown, person, token, now_ms }
        };
        let admitted = match self.admission.refusal(&attempt) {
            Some(refusal) => Err(refusal),
            None => self.admission.take_in(&attempt).await,
        };
        // Copied only here: what is kept over an await is part of every request.
        let (token, now_ms) = (attempt.token, attempt.now_ms);
        // Without one where the sale needs one nothing was admitted.
        let person = attempt.person.unwrap_or_default();
        let (request_id, admitted) = match (&token, admitted) {
            (Some(request_id), admitted) => (*request_id, admitted),
            (None, Ok(())) => (self.ids.next()?, Ok(())),
            (None, Err(refusal)) => return Err(refusal.problem()),
        };
        let purchase = Purchase { request_id, sale_id: sale.clone(), user_id: user, person, quantity };
        let shard = home_shard(purchase.limit_key(), self.replays.shards());
        match admitted {
            Ok(()) => {}
            Err(Refusal::Final(problem)) => return Err(problem),
            // Boxed, here and below: nearly no purchase needs them, and each would carry them.
            Err(Refusal::UnlessReplayed(problem)) => {
                return Box::pin(self.replays.first_answer_or(problem, &purchase)).await;
            }
            Err(Refusal::SoldOutUnlessReplayed) => {
                match Box::pin(self.replays.first_answer_if_known(&purchase)).await {
                    Some(answer) => return answer,
                    None => {
                        let (user, shown, person) = (&purchase.user_id, shown.as_deref(), Ok(purchase.person.clone()));
                        let attempt = Attempt { user, view: &view, shown, person, token, now_ms };
                        Box::pin(self.admission.take_in(&attempt)).await.map_err(Refusal::problem)?;
                    }
                }
            }
        }
        count(State::P1(P1Entry::Ready), 1);
        let asked = traces::now();
        let by = if token.is_some() { SaleDoor::Token } else { SaleDoor::Open };
        let decision = self.reserve.decide(purchase, view.sale.epoch, by).await;
        spans::record(request_id, begun, asked, &decision);
        self.answer(decision, request_id, shard, &view).await
    }
}
