//! What the entry signs and hands out: purchase tokens and places in the waiting room. Checked without storage.
//!
//! One list of keys serves for all of it: the first signs, each verifies. The audience keeps one kind from being taken for
//! another. When it ends is for its kind to judge.

use crate::config::Secret;
use crate::jwt;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest signed text, bytes; a longer one is refused before it costs a signature check.
pub(super) const SIGNED_BYTES_MAX: usize = 1024;

/// Signs claims of one kind, and reads them again.
pub(super) struct Signer {
    encoding: Option<EncodingKey>,
    decoding: Vec<DecodingKey>,
    validation: Validation,
}

impl Signer {
    /// For claims whose `aud` is `audience`.
    pub(super) fn new(secrets: &[Secret], audience: &str) -> Self {
        jwt::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["aud"]);
        // Expiry is judged after the signature, because an expired token still names its request.
        validation.validate_exp = false;
        Self {
            encoding: secrets.first().map(|secret| EncodingKey::from_secret(secret.expose().as_bytes())),
            decoding: secrets.iter().map(|secret| DecodingKey::from_secret(secret.expose().as_bytes())).collect(),
            validation,
        }
    }

    /// The signed text; `None` when it cannot be signed.
    pub(super) fn sign(&self, claims: &impl Serialize) -> Option<String> {
        encode(&Header::new(Algorithm::HS256), claims, self.encoding.as_ref()?).ok()
    }

    /// The claims; `None` when the text is too long, malformed, forged, or of another kind.
    pub(super) fn read<C: DeserializeOwned + Clone>(&self, text: &str) -> Option<C> {
        if text.len() > SIGNED_BYTES_MAX {
            return None;
        }
        self.decoding.iter().find_map(|key| decode::<C>(text, key, &self.validation).ok()).map(|token| token.claims)
    }
}
