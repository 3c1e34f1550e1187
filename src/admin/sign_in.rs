//! Who calls the admin API (F10): a holder of `admin.token`, who may do everything, or of a named token, who may do what its role says.
//!
//! Input: the head of a call. Output: who it is, or a problem. Tokens are 32 random bytes or more, which cannot be guessed, so a wrong
//! one is answered as soon as a right one. Which call a role allows is its handler's type ([`super::calls`]). Of many wrong tokens of
//! an address within a minute the log has the number. A crash loses that number, for at most a minute.

use super::minutes::{Minutes, Noted};
use crate::config::{Admin as AdminSettings, OperatorRole, TOKEN_BYTES_MIN};
use crate::http::problem::{Kind, Problem};
use actix_web::HttpMessage;
use actix_web::dev::ServiceRequest;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq;

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
    /// Each as its SHA-256.
    known: Vec<(SignedIn, Vec<u8>)>,
    /// Wrong tokens, by address.
    failures: Arc<Minutes>,
    /// Calls that a role did not allow, by the token's name.
    pub(super) denied: Arc<Minutes>,
}

impl SignIn {
    pub(super) fn new(settings: &AdminSettings) -> Self {
        let digest = |hex: &str| -> Vec<u8> {
            let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
            pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap_or(0)).collect()
        };
        let named = settings.tokens.all().iter();
        let named =
            named.map(|token| (SignedIn { id: token.name.clone(), role: Some(token.role) }, digest(&token.sha256)));
        let admin = Some(settings.token.expose()).filter(|token| !token.is_empty());
        let admin = admin.map(|token| {
            (SignedIn { id: "admin.token".to_owned(), role: None }, Sha256::digest(token.as_bytes()).to_vec())
        });
        metrics::counter!("seckill_admin_sign_in_failures_total").increment(0);
        Self { known: named.chain(admin).collect(), failures: Arc::default(), denied: Arc::default() }
    }

    /// Lets a call through, with who it is among its extensions.
    pub(super) fn check(&self, request: &ServiceRequest) -> Result<(), Problem> {
        let given = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("");
        let given = given.strip_prefix("Bearer ").unwrap_or("").trim().as_bytes();
        if given.is_empty() {
            return Err(no_token());
        }
        let Some(signed_in) = self.holder(given) else {
            self.failed(request);
            return Err(if given.len() < TOKEN_BYTES_MIN { short_token(given) } else { no_token() });
        };
        request.extensions_mut().insert(signed_in.clone());
        Ok(())
    }

    /// Whose token it is. In constant time over all of them: the answer does not show how much of a digest was right.
    fn holder(&self, given: &[u8]) -> Option<&SignedIn> {
        if given.len() < TOKEN_BYTES_MIN {
            return None;
        }
        let digest = Sha256::digest(given);
        let mut holder = None;
        for (signed_in, known) in &self.known {
            if bool::from(digest[..].ct_eq(known.as_slice())) {
                holder = Some(signed_in);
            }
        }
        holder
    }

    /// Counts a wrong token. Of one address the log has the first of a minute, and how many followed.
    fn failed(&self, request: &ServiceRequest) {
        metrics::counter!("seckill_admin_sign_in_failures_total").increment(1);
        let address = request.peer_addr().map_or_else(String::new, |peer| peer.ip().to_string());
        match self.failures.noted(&address) {
            Noted::First => tracing::warn!(%address, "a wrong token for the admin API"),
            Noted::Second(minute) => {
                let failures = self.failures.clone();
                tokio::spawn(async move {
                    let more = failures.after(minute).await;
                    tracing::warn!(%address, more, "more wrong tokens for the admin API within a minute");
                });
            }
            Noted::Later => {}
        }
    }
}

pub(super) fn no_token() -> Problem {
    Kind::Unauthorized.because_both(
        "the admin API needs: Authorization: Bearer <admin.token or a named token>",
        "管理接口需要请求头 Authorization: Bearer <admin.token 或具名令牌>",
    )
}

fn short_token(given: &[u8]) -> Problem {
    let bytes = given.len();
    Kind::Unauthorized.because_both(
        format!("this token has {bytes} bytes, expected {TOKEN_BYTES_MIN} random ones or more: openssl rand -hex 32"),
        format!("该令牌有 {bytes} 字节，应为 {TOKEN_BYTES_MIN} 个以上的随机字节：openssl rand -hex 32"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Secret, Settings};

    fn defaults() -> AdminSettings {
        Settings::load(&Layers::default()).unwrap().admin
    }

    #[test]
    fn a_token_is_whole_and_long_or_it_is_nobodys() {
        let token = "0123456789abcdef0123456789abcdef";
        let settings = AdminSettings { token: Secret::new(token.to_owned()), ..defaults() };
        let sign_in = SignIn::new(&settings);
        assert_eq!(sign_in.holder(token.as_bytes()).map(|known| known.id.as_str()), Some("admin.token"));
        for wrong in [&token[..31], "", "0123456789abcdef0123456789abcdeF", "0123456789abcdef0123456789abcdef0"] {
            assert_eq!(sign_in.holder(wrong.as_bytes()), None, "{wrong}");
        }
        let none = SignIn::new(&defaults());
        assert_eq!(none.holder(b""), None, "without tokens every sign-in is refused");
    }
}
