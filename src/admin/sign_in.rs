//! Who may call the admin API, and what (F10): `admin.token` may do everything, a named token what its role says.
//!
//! Input: the head of a call. Output: who it is, or a problem. A token that was not proven from the caller's address before needs one
//! of a few places and is answered late, right or wrong alike: else the answer to a guess would tell at any rate which it was. So
//! guessing is slow, and costs those nothing whose token is proven. Which call a role allows is its handler's type ([`super::calls`]);
//! a write that it does not allow is on record.

use super::calls::Denied;
use super::proven::{ProvenTokens, TokenFrom};
use super::state::Admin;
use super::waited_tokens::WaitedTokens;
use crate::config::{Admin as AdminSettings, OperatorRole, Secret};
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use crate::http::problem::{Kind, Problem};
use crate::store::mysql::acts;
use actix_web::dev::ServiceRequest;
use actix_web::{HttpMessage, HttpRequest, web};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// An answer to a token that is not proven takes this long.
const SLOWED: Duration = Duration::from_millis(500);

/// Who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignedIn {
    /// The token's name; `admin.token` for that one.
    pub(super) id: String,
    /// `None`: every role.
    pub(super) role: Option<OperatorRole>,
}

impl SignedIn {
    /// The roles as acts record them.
    pub(super) fn roles(&self) -> &'static str {
        self.role.map_or("admin", OperatorRole::code)
    }
}

/// The tokens of a process.
pub(super) struct SignIn {
    admin: Secret,
    named: Vec<(SignedIn, Vec<u8>)>,
    waited: WaitedTokens,
    proven: ProvenTokens,
}

/// What a token came to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TokenVerdict {
    /// It is this one's.
    Right(SignedIn),
    /// Nobody's.
    Wrong,
    /// It was not looked at, because others are waited on.
    TooMany,
}

impl SignIn {
    pub(super) fn new(settings: &AdminSettings) -> Self {
        let digest = |hex: &str| -> Vec<u8> {
            let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
            pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap_or(0)).collect()
        };
        let named = settings
            .tokens
            .all()
            .iter()
            .map(|token| (SignedIn { id: token.name.clone(), role: Some(token.role) }, digest(&token.sha256)));
        let named = named.collect();
        metrics::counter!("seckill_admin_sign_in_failures_total").increment(0);
        Self { admin: settings.token.clone(), named, waited: WaitedTokens::default(), proven: ProvenTokens::default() }
    }

    /// In constant time, over all of them: the answer must not tell how much of a guess was right.
    fn holder(&self, given: &[u8], digest: &[u8]) -> Option<SignedIn> {
        let admin = self.admin.expose().as_bytes();
        let is_admin = !admin.is_empty() && bool::from(given.ct_eq(admin));
        let mut holder = None;
        for (signed_in, known) in &self.named {
            if !given.is_empty() && bool::from(digest.ct_eq(known.as_slice())) {
                holder = Some(signed_in.clone());
            }
        }
        if is_admin { Some(SignedIn { id: "admin.token".to_owned(), role: None }) } else { holder }
    }

    /// A token from an address. Whether it is right decides nothing before its time is up.
    async fn verdict(&self, given: &[u8], address: Option<IpAddr>) -> TokenVerdict {
        let token = TokenFrom { address, digest: Sha256::digest(given).into() };
        let of = |holder: Option<SignedIn>| holder.map_or(TokenVerdict::Wrong, TokenVerdict::Right);
        if self.proven.is_known(token) {
            return of(self.holder(given, &token.digest));
        }
        let Some(_place) = self.waited.place(token) else { return TokenVerdict::TooMany };
        tokio::time::sleep(SLOWED).await;
        let holder = self.holder(given, &token.digest);
        if holder.is_some() {
            self.proven.remember(token);
        }
        of(holder)
    }
}

pub(super) fn no_token() -> Problem {
    Kind::Unauthorized.because_both(
        "the admin API needs: Authorization: Bearer <admin.token or a named token>",
        "管理接口需要请求头 Authorization: Bearer <admin.token 或具名令牌>",
    )
}

/// Lets a call through, with who it is among its extensions.
pub(super) async fn check(request: &ServiceRequest) -> Result<(), Problem> {
    let admin = request.app_data::<web::Data<Admin>>().ok_or(Kind::Internal)?;
    let given = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("");
    let given = given.strip_prefix("Bearer ").unwrap_or("").trim();
    if given.is_empty() {
        return Err(no_token());
    }
    let peer = request.peer_addr();
    let signed_in = match admin.sign_in.verdict(given.as_bytes(), peer.map(|address| address.ip())).await {
        TokenVerdict::Right(signed_in) => signed_in,
        refused @ (TokenVerdict::Wrong | TokenVerdict::TooMany) => {
            // Not looked at counts, too: a counter that left the right ones out would tell which they are.
            metrics::counter!("seckill_admin_sign_in_failures_total").increment(1);
            tracing::warn!(?peer, "a wrong token for the admin API, or too many at a time");
            return Err(match refused {
                TokenVerdict::TooMany => Kind::RateLimited.because_both("too many wrong tokens", "错误的令牌过多"),
                TokenVerdict::Wrong | TokenVerdict::Right(_) => no_token(),
            });
        }
    };
    request.extensions_mut().insert(signed_in);
    Ok(())
}

/// A call that its role did not allow is on record before it is answered.
pub(super) async fn record_denied(request: &HttpRequest) -> Result<(), Problem> {
    let signed_in =
        request.extensions().get::<SignedIn>().filter(|_| request.extensions().contains::<Denied>()).cloned();
    let (Some(signed_in), Some(admin)) = (signed_in, request.app_data::<web::Data<Admin>>()) else { return Ok(()) };
    let ip = request.peer_addr().map(|address| address.ip().to_string());
    let actor = Actor::with_named_token(&signed_in.id, signed_in.roles(), None, ip);
    let what = format!("{} {}", request.method(), request.path());
    let mut act = OperatorAct::new(&actor, Operation::AdminWrite, ActTarget::Entry(what.chars().take(128).collect()));
    (act.outcome, act.code) = (ActOutcome::Denied, Some("FORBIDDEN".to_owned()));
    Ok(acts::record(&admin.servers.db, &[act]).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `admin.token` "right", and of no other.
    fn sign_in() -> SignIn {
        SignIn {
            admin: Secret::new("right".to_owned()),
            named: Vec::new(),
            waited: WaitedTokens::default(),
            proven: ProvenTokens::default(),
        }
    }

    #[tokio::test]
    async fn without_a_place_a_right_token_that_is_not_proven_is_told_what_a_guess_is_told() {
        let sign_in = sign_in();
        let address = |n: u8| Some(IpAddr::from([127, 0, 0, n]));
        let (here, there) = (address(1), address(2));
        let guess = |n: u8| TokenFrom { address: address(10 + n / 4), digest: [n; 32] };
        let guesses = || -> Vec<_> { (0..16).map(|n| sign_in.waited.place(guess(n)).unwrap()).collect() };
        let admin = TokenVerdict::Right(SignedIn { id: "admin.token".into(), role: None });
        let places = guesses();
        assert_eq!(sign_in.verdict(b"right", here).await, TokenVerdict::TooMany);
        assert_eq!(sign_in.verdict(b"wrong", here).await, TokenVerdict::TooMany);
        drop(places);
        assert_eq!(sign_in.verdict(b"wrong", here).await, TokenVerdict::Wrong);
        assert_eq!(sign_in.verdict(b"right", here).await, admin);
        let places = guesses();
        assert_eq!(sign_in.verdict(b"right", here).await, admin, "proven");
        assert_eq!(sign_in.verdict(b"wrong", here).await, TokenVerdict::TooMany);
        // Its owner uses it all the time; who guesses it elsewhere learns nothing by that.
        assert_eq!(sign_in.verdict(b"right", there).await, TokenVerdict::TooMany);
        drop(places);
    }
}
