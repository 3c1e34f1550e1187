//! What the entry signs and hands out: purchase tokens and places in the waiting room. Checked without storage.
//!
//! One key signs all of it; the audience keeps one kind from being taken for another. When it ends is for its kind to judge.

use crate::config::Secret;
use crate::jwt;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest signed text, bytes; a longer one is refused before it costs a signature check.
pub(super) const SIGNED_BYTES_MAX: usize = 1024;

/// Signs claims of one kind, and reads them again.
pub(super) struct Signer {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
}

impl Signer {
    /// For claims whose `aud` is `audience`.
    pub(super) fn new(secret: &Secret, audience: &str) -> Self {
        jwt::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["aud"]);
        // Expiry is judged after the signature, because an expired token still names its request.
        validation.validate_exp = false;
        Self {
            encoding: EncodingKey::from_secret(secret.expose().as_bytes()),
            decoding: DecodingKey::from_secret(secret.expose().as_bytes()),
            validation,
        }
    }

    /// The signed text; `None` when it cannot be signed.
    pub(super) fn sign(&self, claims: &impl Serialize) -> Option<String> {
        encode(&Header::new(Algorithm::HS256), claims, &self.encoding).ok()
    }

    /// The claims; `None` when the text is too long, malformed, forged, or of another kind.
    pub(super) fn read<C: DeserializeOwned + Clone>(&self, text: &str) -> Option<C> {
        if text.len() > SIGNED_BYTES_MAX {
            return None;
        }
        decode::<C>(text, &self.decoding, &self.validation).ok().map(|token| token.claims)
    }
}
