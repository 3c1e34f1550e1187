//! Signed places: what a buyer shows instead of being looked up. Checked without storage, so a poll costs no server a call.
//!
//! A ticket has no time of its own: it is of use until its sale ends. It survives everything but another signing key.
//! Buyers get one after the start: before it there is no place to sign.

use crate::config::Secret;
use crate::domain::ids::{SaleId, UserId};
use crate::p1_entry::signed::Signer;
use serde::{Deserialize, Serialize};

/// Keeps tickets and purchase tokens apart, which are signed with one key.
const AUDIENCE: &str = "seckill-place";

#[derive(Clone, Serialize, Deserialize)]
struct PlaceTicketClaims {
    aud: String,
    sub: UserId,
    sale: SaleId,
    place: u64,
}

/// Signs and checks tickets.
pub(super) struct PlaceTickets(Signer);

impl PlaceTickets {
    pub(super) fn new(secrets: &[Secret]) -> Self {
        Self(Signer::new(secrets, AUDIENCE))
    }

    /// A ticket; `None` when it cannot be signed.
    pub(super) fn sign(&self, user: &UserId, sale: &SaleId, place: u64) -> Option<String> {
        let claims = PlaceTicketClaims { aud: AUDIENCE.to_owned(), sub: user.clone(), sale: sale.clone(), place };
        self.0.sign(&claims)
    }

    /// The place on a ticket of this buyer in this sale; `None` when it is malformed, forged, or another's.
    pub(super) fn check(&self, ticket: &str, user: &UserId, sale: &SaleId) -> Option<u64> {
        let claims: PlaceTicketClaims = self.0.read(ticket)?;
        (claims.sub == *user && claims.sale == *sale && claims.place > 0).then_some(claims.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;
    use crate::p1_entry::purchase_tokens::PurchaseTokens;
    use crate::p1_entry::signed::SIGNED_BYTES_MAX;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_ticket_is_good_for_its_buyer_and_its_sale_and_unchanged_only(
            name in "[a-zA-Z]{1,63}", place in 1u64..1 << 40, at in any::<prop::sample::Index>(), bit in 0u8..7,
        ) {
            let tickets = PlaceTickets::new(&[Secret::new("k".repeat(32))]);
            let (user, sale) = (UserId::parse(&name).unwrap(), SaleId::parse("s").unwrap());
            let ticket = tickets.sign(&user, &sale, place).unwrap();
            prop_assert!(ticket.len() <= SIGNED_BYTES_MAX);
            prop_assert_eq!(tickets.check(&ticket, &user, &sale), Some(place));
            prop_assert_eq!(tickets.check(&ticket, &UserId::parse(&format!("{name}x")).unwrap(), &sale), None);
            prop_assert_eq!(tickets.check(&ticket, &user, &SaleId::parse("S").unwrap()), None);
            let mut changed = ticket.clone().into_bytes();
            // The last character of a signature has bits that mean nothing.
            let at = at.index(ticket.len() - 1);
            changed[at] ^= 1 << bit;
            prop_assert_eq!(tickets.check(&String::from_utf8_lossy(&changed), &user, &sale), None);
        }
    }

    #[test]
    fn no_other_token_of_the_service_is_a_ticket_and_no_ticket_is_one_of_them() {
        let secret = [Secret::new("k".repeat(32))];
        let (tickets, tokens) = (PlaceTickets::new(&secret), PurchaseTokens::new(&secret, 60));
        let (user, sale) = (UserId::parse("u").unwrap(), SaleId::parse("s").unwrap());
        let token = tokens.issue(RequestId::new(1).unwrap(), (&user, None), &sale, 1_000).unwrap().0;
        assert_eq!(tickets.check(&token, &user, &sale), None);
        assert!(tokens.check(&tickets.sign(&user, &sale, 1).unwrap(), &user, &sale, 1_000).is_err());
        let forged = PlaceTickets::new(&[Secret::new("x".repeat(32))]).sign(&user, &sale, 1).unwrap();
        for junk in ["", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", &"x".repeat(2_000), &forged] {
            assert_eq!(tickets.check(junk, &user, &sale), None);
        }
        assert_eq!(tickets.check(&tickets.sign(&user, &sale, 0).unwrap(), &user, &sale), None, "places begin at 1");
    }
}
