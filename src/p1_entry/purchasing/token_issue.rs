//! Issues purchase tokens: a request id now, for a purchase later.
//!
//! Input: a buyer and a sale, with the ticket of a place if the sale has a waiting room, and what its challenge asks for. Output: a signed token. Stores
//! nothing: a crash leaves nothing.

use super::admission::sold_out;
use super::sale_state;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::block_list::BuyerChecks;
use crate::p1_entry::catalog::Catalog;
use crate::p1_entry::challenge::Challenges;
use crate::p1_entry::challenge::risk::SeenCaller;
use crate::p1_entry::entitlement::ShownFacts;
use crate::p1_entry::purchase_tokens::PurchaseTokens;
use crate::p1_entry::request_ids::RequestIds;
use crate::p1_entry::waiting_room::WaitingRooms;
use crate::runtime::now_ms;
use std::sync::Arc;

/// A purchase token that was just issued.
pub(crate) struct NewPurchaseToken {
    /// The request it stands for.
    pub request_id: RequestId,
    /// The text to send as `Idempotency-Key`.
    pub token: String,
    /// When it expires, Unix seconds.
    pub(crate) expires_at_s: i64,
}

/// A call for a purchase token.
pub(crate) struct TokenCall<'a> {
    pub(crate) user: &'a UserId,
    /// What the call shows of the buyer's facts.
    pub(crate) shown: Option<&'a ShownFacts>,
    pub(crate) sale: &'a SaleId,
    /// The ticket of a place in the sale's waiting room.
    pub(crate) ticket: Option<&'a str>,
    /// The solution of the sale's proof of work.
    pub(crate) solution: Option<&'a str>,
    /// Where it comes from, where that is asked for.
    pub(crate) seen: Option<&'a SeenCaller>,
}

/// Issues purchase tokens. One a process.
pub struct PurchaseTokenIssuer {
    catalog: Catalog,
    rooms: WaitingRooms,
    buyers: BuyerChecks,
    challenges: Challenges,
    ids: RequestIds,
    tokens: Arc<PurchaseTokens>,
}

impl PurchaseTokenIssuer {
    /// Puts the parts together.
    #[must_use]
    pub(crate) fn new(
        catalog: Catalog,
        rooms: WaitingRooms,
        (buyers, challenges): (BuyerChecks, Challenges),
        ids: RequestIds,
        tokens: Arc<PurchaseTokens>,
    ) -> Self {
        Self { catalog, rooms, buyers, challenges, ids, tokens }
    }

    /// Whether anything is to be known of where a call comes from.
    pub(crate) const fn asks_about_callers(&self) -> bool {
        self.challenges.asks_about_callers()
    }

    /// A token for one purchase of this buyer in this sale.
    ///
    /// # Errors
    /// The problem to answer with; no token before the start or when sold out, none before the place is released, and none before
    /// the sale's challenge is passed.
    pub(crate) async fn issue(&self, call: TokenCall<'_>) -> Result<NewPurchaseToken, Problem> {
        let TokenCall { user, shown, sale, ticket, solution, seen } = call;
        let view = self.catalog.view(sale).await?;
        let now_ms = now_ms();
        let refusal = self.buyers.blocks.refusal(user, now_ms).or_else(|| sale_state::refusal(&view, now_ms));
        if let Some(problem) = refusal {
            return Err(problem);
        }
        if view.sale.by_line {
            return Err(sale_state::only_by_line(sale));
        }
        if view.sold_out.is_some() {
            return Err(sold_out());
        }
        let person = self.buyers.entitled(&view.sale, user, shown, now_ms)?;
        if view.sale.waiting_room {
            Box::pin(self.rooms.admit(&view, user, ticket)).await?;
        }
        if let Some(problem) = self.challenges.unsolved(&view.sale, user, solution, now_ms) {
            return Err(problem);
        }
        self.buyers.limits.take(user).await?;
        // Behind the rates, because it asks another machine. Boxed: few sales have it, and each call would carry it.
        if view.sale.challenge.is_some() {
            Box::pin(self.challenges.judge(&view.sale, user, seen)).await?;
        }
        let request_id = self.ids.next()?;
        let signed = self.tokens.issue(request_id, (user, person.as_ref()), sale, now_ms);
        let (token, expires_at_s) = signed.ok_or(Problem::from(Kind::Internal))?;
        Ok(NewPurchaseToken { request_id, token, expires_at_s })
    }
}
