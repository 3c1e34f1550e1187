//! How JWTs are signed and checked: `jsonwebtoken` says what a token is, `aws-lc-rs` (which TLS uses, too) does the arithmetic.
//!
//! The two back ends that come with that crate are not used: one brings twenty crates of curves and big numbers, one of them
//! with an open advisory (RUSTSEC-2023-0071), the other asks for all features of aws-lc-rs and with them for an old `untrusted`
//! beside that of TLS. This one knows the four algorithms that `auth.algorithm` can name, and no other. A process installs it
//! with its first key; [`ReadyKey`] is for those who check many tokens with one.

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{self, ParsedPublicKey};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Only for making JWK sets, which nothing here does.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has this process sign and check JWTs with `aws-lc-rs`. Every holder of a key calls it first; repeating it changes nothing.
pub(crate) fn install() {
    // An error says that one is installed already, and nothing else installs any.
    PROVIDER.install_default().ok();
}

/// A key with the one algorithm that it is used for.
struct Keyed<K> {
    algorithm: Algorithm,
    key: K,
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    // Purchase tokens, places, and the tokens of crowds and demos; the real access tokens are signed by somebody else.
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            Ok(Box::new(Keyed { algorithm: *algorithm, key: hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()) }))
        }
        (Algorithm::HS256, _) => Err(ErrorKind::InvalidKeyFormat.into()),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

impl Signer<Vec<u8>> for Keyed<hmac::Key> {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(hmac::sign(&self.key, message).as_ref().to_vec())
    }
}

impl JwtSigner for Keyed<hmac::Key> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    Ok(Box::new(Keyed { algorithm: *algorithm, key: ReadyKey::new(*algorithm, key)? }))
}

/// A key that was read once for any number of checks, all with its one algorithm.
pub(crate) enum ReadyKey {
    /// Checks by signing, too.
    Secret(Box<hmac::Key>),
    /// The public half.
    Public(ParsedPublicKey),
}

impl ReadyKey {
    /// Reads a key for its algorithm.
    ///
    /// # Errors
    /// It is a key of another kind, or none at all.
    pub(crate) fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self> {
        if key.family() != algorithm.family() {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
        let rsa = &signature::RSA_PKCS1_2048_8192_SHA256;
        let parsed = match (algorithm, key.kind()) {
            (Algorithm::HS256, _) => return Ok(Self::of_secret(key.try_get_as_bytes()?)),
            (Algorithm::RS256, DecodingKeyKind::SecretOrDer(der)) => ParsedPublicKey::new(rsa, der),
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                // No leading zeros are taken, and some JWK sets have them.
                let n = n.get(n.iter().take_while(|byte| **byte == 0).count()..).unwrap_or_default();
                signature::RsaPublicKeyComponents { n, e: e.as_slice() }.to_parsed_public_key(rsa)
            }
            (Algorithm::ES256, _) => ParsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, key.try_get_as_bytes()?),
            (Algorithm::EdDSA, _) => ParsedPublicKey::new(&signature::ED25519, key.try_get_as_bytes()?),
            _ => return Err(ErrorKind::InvalidAlgorithm.into()),
        };
        parsed.map(Self::Public).map_err(|_rejected| ErrorKind::InvalidKeyFormat.into())
    }

    /// A secret of HS256.
    pub(crate) fn of_secret(secret: &[u8]) -> Self {
        Self::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret).into())
    }

    /// Whether this key, or the private half of it, made this signature of `text`.
    pub(crate) fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Secret(key) => hmac::verify(key, text, signature).is_ok(),
            Self::Public(key) => key.verify_sig(text, signature).is_ok(),
        }
    }
}

impl Verifier<Vec<u8>> for Keyed<ReadyKey> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        if self.key.has_signed(message, signature) { Ok(()) } else { Err(Error::new()) }
    }
}

impl JwtVerifier for Keyed<ReadyKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::{Header, Validation, crypto, decode, encode};
    use serde_json::{Value, json};

    fn checked(token: &str, key: &DecodingKey, algorithm: Algorithm) -> bool {
        let mut validation = Validation::new(algorithm);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        decode::<Value>(token, key, &validation).is_ok()
    }

    #[test]
    fn hmac_tokens_are_signed_and_checked() {
        install();
        install();
        let (secret, other) = ([7_u8; 40], [8_u8; 40]);
        let (key, algorithm) = (EncodingKey::from_secret(&secret), Algorithm::HS256);
        let token = encode(&Header::new(algorithm), &json!({}), &key).unwrap();
        assert!(checked(&token, &DecodingKey::from_secret(&secret), algorithm));
        assert!(!checked(&token, &DecodingKey::from_secret(&other), algorithm));
        assert!(encode(&Header::new(Algorithm::HS512), &json!({}), &key).is_err(), "no setting asks for it");
        // https://www.rfc-editor.org/rfc/rfc4231, test case 2.
        let known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"Jefe"), b"what do ya want for nothing?");
        assert_eq!(tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>(), known);
    }

    #[test]
    fn public_keys_check_what_their_private_half_signed_and_nothing_else() {
        install();
        let pair = Ed25519KeyPair::from_seed_unchecked(&[5; 32]).unwrap();
        let (key, text) = (DecodingKey::from_ed_der(pair.public_key().as_ref()), b"head.body");
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(text));
        assert!(crypto::verify(&signature, text, &key, Algorithm::EdDSA).unwrap());
        assert!(!crypto::verify(&signature, b"head.another", &key, Algorithm::EdDSA).unwrap());
        assert!(crypto::verify(&signature, text, &key, Algorithm::RS256).is_err(), "the key is of another family");
    }

    #[test]
    fn only_secrets_sign() {
        install();
        let signed = encode(&Header::new(Algorithm::EdDSA), &json!({}), &EncodingKey::from_ed_der(&[0; 32]));
        assert!(signed.is_err());
    }
}
