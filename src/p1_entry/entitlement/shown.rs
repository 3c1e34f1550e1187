//! What a call shows of its buyer's facts, as texts. Nothing is read before a sale asks for it.

use crate::http::problem::Problem;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// The claims of the access token, which was proved, and the pass, which was not.
#[derive(Debug, Clone)]
pub(crate) struct ShownFacts {
    /// The claims in base64; none where they are no facts.
    token_claims: Option<Box<str>>,
    /// The text of `Seckill-Pass`, or what is wrong with the header.
    pass: Option<Result<Box<str>, Problem>>,
}

impl ShownFacts {
    /// Of a call with this access token, if it has facts, and with this pass; `None` when it shows nothing.
    pub(in crate::p1_entry) fn of(
        access_token: Option<&str>,
        pass: Result<Option<&str>, Problem>,
    ) -> Option<Box<Self>> {
        let token_claims = access_token.and_then(claims_part).map(Box::from);
        let pass = pass.map(|text| text.map(Box::from)).transpose();
        (token_claims.is_some() || pass.is_some()).then(|| Box::new(Self { token_claims, pass }))
    }

    /// The claims of the access token; none where they are no facts.
    pub(super) fn token_claims(&self) -> Map<String, Value> {
        self.token_claims.as_deref().and_then(decoded).unwrap_or_default()
    }

    /// The pass, if there is one.
    ///
    /// # Errors
    /// The header was given twice, or is no plain text.
    pub(super) fn pass(&self) -> Result<Option<&str>, Problem> {
        self.pass.as_ref().map(|pass| pass.as_deref().map_err(Clone::clone)).transpose()
    }
}

/// The claims of a token in base64: between its last two dots.
fn claims_part(token: &str) -> Option<&str> {
    let (signed, _signature) = token.rsplit_once('.')?;
    signed.rsplit_once('.').map(|(_header, claims)| claims)
}

/// The claims of a token whose signature was checked.
pub(super) fn claims_of(token: &str) -> Option<Map<String, Value>> {
    claims_part(token).and_then(decoded)
}

fn decoded(claims: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
