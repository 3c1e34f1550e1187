//! Purchase tokens (A3): signed, expiring, bound to (request id, buyer, sale), checked without storage. Where the sale limits by
//! person, the person is in it, too: each repeat is then counted for the same person, whatever pass it comes with.
//!
//! Sent as `Idempotency-Key`, a token makes every repeat of a request the same purchase: the request id is in the token.

use crate::config::Secret;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::p1_entry::signed::Signer;
use serde::{Deserialize, Serialize};

/// Keeps purchase tokens and access tokens apart even if someone configured one key for both.
const AUDIENCE: &str = "seckill-purchase";

#[derive(Clone, Serialize, Deserialize)]
struct PurchaseTokenClaims {
    aud: String,
    rid: RequestId,
    sub: UserId,
    sale: SaleId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<UserId>,
    /// Issued at, Unix milliseconds. Version 0.2 compares it with the sold-out mark, and reads no token without it.
    iat_ms: i64,
    exp: i64,
}

/// What a purchase token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PurchaseToken {
    /// The request that it stands for.
    pub(crate) request_id: RequestId,
    /// For whom it counts, where the sale limits by person.
    pub(crate) person: Option<UserId>,
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// Malformed, forged, another buyer's or another sale's.
    Invalid,
    /// It was good once; the request's outcome can still be asked.
    Expired(RequestId),
}

/// Issues and checks purchase tokens.
pub struct PurchaseTokens {
    signer: Signer,
    ttl_s: i64,
}

impl PurchaseTokens {
    /// PurchaseTokens that live `ttl_s` seconds; the first of `secrets` signs them, all of them verify.
    #[must_use]
    pub fn new(secrets: &[Secret], ttl_s: u64) -> Self {
        Self { signer: Signer::new(secrets, AUDIENCE), ttl_s: i64::try_from(ttl_s).unwrap_or(i64::MAX / 2000) }
    }

    /// A new token for a buyer, and the person behind it where the sale limits by person, and when it expires (Unix seconds); `None` when it
    /// cannot be signed.
    #[must_use]
    pub fn issue(
        &self,
        request_id: RequestId,
        (user, person): (&UserId, Option<&UserId>),
        sale: &SaleId,
        now_ms: i64,
    ) -> Option<(String, i64)> {
        let exp = now_ms / 1000 + self.ttl_s;
        let claims = PurchaseTokenClaims {
            aud: AUDIENCE.to_owned(),
            rid: request_id,
            sub: user.clone(),
            sale: sale.clone(),
            person: person.cloned(),
            iat_ms: now_ms,
            exp,
        };
        self.signer.sign(&claims).map(|token| (token, exp))
    }

    /// What a token of this buyer and sale says.
    pub(crate) fn check(
        &self,
        token: &str,
        user: &UserId,
        sale: &SaleId,
        now_ms: i64,
    ) -> Result<PurchaseToken, TokenFault> {
        let claims: PurchaseTokenClaims = self.signer.read(token).ok_or(TokenFault::Invalid)?;
        if claims.sub != *user || claims.sale != *sale {
            return Err(TokenFault::Invalid);
        }
        if claims.exp <= now_ms / 1000 {
            return Err(TokenFault::Expired(claims.rid));
        }
        Ok(PurchaseToken { request_id: claims.rid, person: claims.person })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_buyer_its_sale_and_its_time_only() {
        let tokens = PurchaseTokens::new(&[Secret::new("k".repeat(32))], 60);
        let (alice, bob) = (UserId::parse("alice").unwrap(), UserId::parse("Alice").unwrap());
        let (sale, other) = (SaleId::parse("s").unwrap(), SaleId::parse("S").unwrap());
        let id = RequestId::new(7).unwrap();
        let (token, exp) = tokens.issue(id, (&alice, None), &sale, 5_500).unwrap();
        assert_eq!(exp, 65);
        assert_eq!(tokens.check(&token, &alice, &sale, 6_000), Ok(PurchaseToken { request_id: id, person: None }));
        let of_person = tokens.issue(id, (&alice, Some(&bob)), &sale, 5_500).unwrap().0;
        assert_eq!(tokens.check(&of_person, &alice, &sale, 6_000).unwrap().person, Some(bob.clone()));
        assert_eq!(tokens.check(&token, &bob, &sale, 6_000), Err(TokenFault::Invalid));
        assert_eq!(tokens.check(&token, &alice, &other, 6_000), Err(TokenFault::Invalid));
        assert_eq!(tokens.check(&token, &alice, &sale, 65_000), Err(TokenFault::Expired(id)));
        let forged =
            PurchaseTokens::new(&[Secret::new("x".repeat(32))], 60).issue(id, (&alice, None), &sale, 5_500).unwrap().0;
        assert_eq!(tokens.check(&forged, &alice, &sale, 6_000), Err(TokenFault::Invalid));
        let mut tampered = token.clone().into_bytes();
        tampered[token.len() / 2] ^= 1;
        assert_eq!(tokens.check(&String::from_utf8_lossy(&tampered), &alice, &sale, 6_000), Err(TokenFault::Invalid));
        for junk in ["", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", &"x".repeat(2_000)] {
            assert_eq!(tokens.check(junk, &alice, &sale, 6_000), Err(TokenFault::Invalid));
        }
    }
}
