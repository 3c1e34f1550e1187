//! A purchase on its way in: its head, then its body.
//!
//! Input: a request. Output: what its decision needs, so that the request itself need not wait for it; or the refusal. A crash leaves an unanswered connection.
//!
//! A full process answers before it checks a token or reads a body. The place among the purchases under way is taken after the
//! body: a client that sends it slowly holds a connection, but no buyer's place.

use super::state::PublicApi;
use super::{body, headers};
use crate::domain::ids::{SaleId, UserId};
use crate::domain::policy::Quantity;
use crate::http::problem::Problem;
use crate::p1_entry::entitlement::ShownFacts;
use actix_web::error::PayloadError;
use actix_web::http::header::HeaderMap;
use actix_web::web::Bytes;
use futures::Stream;

/// A purchase as it was read: all that its decision needs of the request.
pub(super) struct ReadPurchase {
    pub user: UserId,
    pub shown: Option<Box<ShownFacts>>,
    pub sale: SaleId,
    pub quantity: Quantity,
    pub token: Option<Box<str>>,
}

impl ReadPurchase {
    /// Reads one; `request` has its headers, `sale` is the id in its path.
    pub(super) async fn read(
        public: &PublicApi,
        request: &HeaderMap,
        sale: &str,
        payload: &mut (impl Stream<Item = Result<Bytes, PayloadError>> + Unpin),
    ) -> Result<Self, Problem> {
        let declared = body::declared_length(request);
        let PurchaseHead { user, shown, sale, token } = match PurchaseHead::read(public, request, sale) {
            Ok(head) => head,
            Err(problem) => {
                body::discard(&public.bounds, declared, payload).await;
                return Err(problem);
            }
        };
        let body = body::read(&public.bounds, declared, payload).await?;
        let quantity = body::quantity(&body, public.bounds.quantity_max)?;
        Ok(Self { user, shown, sale, quantity, token: token.map(Box::from) })
    }
}

/// What can be refused before the body is read.
struct PurchaseHead<'a> {
    user: UserId,
    shown: Option<Box<ShownFacts>>,
    sale: SaleId,
    token: Option<&'a str>,
}

impl<'a> PurchaseHead<'a> {
    fn read(public: &PublicApi, request: &'a HeaderMap, sale: &str) -> Result<Self, Problem> {
        public.overload.check_room()?;
        let user = headers::buyer(public, request)?;
        let sale = headers::sale(sale)?;
        let token = headers::purchase_token(request)?;
        headers::json_only(request)?;
        Ok(Self { user, shown: headers::shown(public, request), sale, token })
    }
}
