//! How JWTs are signed and checked: `jsonwebtoken` says what a token is, `ring` (which TLS uses, too) does the arithmetic.
//!
//! The two back ends that come with that crate are not used: one brings twenty crates of curves and big numbers, one of them
//! with an open advisory (RUSTSEC-2023-0071), the other a second C library. A process installs this one with its first key.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::{hmac, signature as ring_signature};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Only for making JWK sets, which nothing here does.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has this process sign and check JWTs with `ring`. Every holder of a key calls it first; repeating it changes nothing.
pub(crate) fn install() {
    // An error says that one is installed already, and nothing else installs any.
    PROVIDER.install_default().ok();
}

/// A key with the one algorithm that it is used for.
struct Keyed<K> {
    algorithm: Algorithm,
    key: K,
}

fn hmac_of(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    let hashes = [
        (Algorithm::HS256, hmac::HMAC_SHA256),
        (Algorithm::HS384, hmac::HMAC_SHA384),
        (Algorithm::HS512, hmac::HMAC_SHA512),
    ];
    hashes.into_iter().find_map(|(known, hash)| (known == algorithm).then_some(hash))
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    // Purchase tokens, places, and the tokens of crowds and demos; the real access tokens are signed by somebody else.
    match hmac_of(*algorithm) {
        Some(hmac) if key.family() == AlgorithmFamily::Hmac => {
            Ok(Box::new(Keyed { algorithm: *algorithm, key: hmac::Key::new(hmac, key.as_bytes()) }))
        }
        Some(_) => Err(ErrorKind::InvalidKeyFormat.into()),
        None => Err(ErrorKind::InvalidAlgorithm.into()),
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
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Keyed { algorithm: *algorithm, key: key.clone() }))
}

impl Keyed<DecodingKey> {
    fn rsa(&self, parameters: &'static ring_signature::RsaParameters, message: &[u8], signature: &[u8]) -> bool {
        match self.key.kind() {
            DecodingKeyKind::SecretOrDer(_) => self.plain(parameters, message, signature),
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                // ring takes no leading zeros, which some JWK sets have.
                let n = n.get(n.iter().take_while(|byte| **byte == 0).count()..).unwrap_or_default();
                ring_signature::RsaPublicKeyComponents { n, e: e.as_slice() }
                    .verify(parameters, message, signature)
                    .is_ok()
            }
        }
    }

    fn plain(
        &self,
        algorithm: &'static dyn ring_signature::VerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let key = self.key.try_get_as_bytes().map(|key| ring_signature::UnparsedPublicKey::new(algorithm, key));
        key.is_ok_and(|key| key.verify(message, signature).is_ok())
    }

    fn hmac(&self, message: &[u8], signature: &[u8]) -> bool {
        let secret = self.key.try_get_as_bytes().ok().zip(hmac_of(self.algorithm));
        secret.is_some_and(|(secret, hmac)| hmac::verify(&hmac::Key::new(hmac, secret), message, signature).is_ok())
    }
}

impl Verifier<Vec<u8>> for Keyed<DecodingKey> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let good = match self.algorithm {
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => self.hmac(message, signature),
            Algorithm::RS256 => self.rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256, message, signature),
            Algorithm::RS384 => self.rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384, message, signature),
            Algorithm::RS512 => self.rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512, message, signature),
            Algorithm::PS256 => self.rsa(&ring_signature::RSA_PSS_2048_8192_SHA256, message, signature),
            Algorithm::PS384 => self.rsa(&ring_signature::RSA_PSS_2048_8192_SHA384, message, signature),
            Algorithm::PS512 => self.rsa(&ring_signature::RSA_PSS_2048_8192_SHA512, message, signature),
            Algorithm::ES256 => self.plain(&ring_signature::ECDSA_P256_SHA256_FIXED, message, signature),
            Algorithm::ES384 => self.plain(&ring_signature::ECDSA_P384_SHA384_FIXED, message, signature),
            Algorithm::EdDSA => self.plain(&ring_signature::ED25519, message, signature),
            _ => false,
        };
        if good { Ok(()) } else { Err(Error::new()) }
    }
}

impl JwtVerifier for Keyed<DecodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::{Header, Validation, crypto, decode, encode};
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::{Value, json};

    fn checked(token: &str, key: &DecodingKey, algorithm: Algorithm) -> bool {
        let mut validation = Validation::new(algorithm);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        decode::<Value>(token, key, &validation).is_ok()
    }

    #[test]
    fn hmac_tokens_are_signed_and_checked_each_with_its_own_hash() {
        install();
        install();
        let (secret, other) = ([7_u8; 40], [8_u8; 40]);
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let token = encode(&Header::new(algorithm), &json!({}), &EncodingKey::from_secret(&secret)).unwrap();
            assert!(checked(&token, &DecodingKey::from_secret(&secret), algorithm), "{algorithm:?}");
            assert!(!checked(&token, &DecodingKey::from_secret(&other), algorithm), "{algorithm:?}");
        }
        // https://www.rfc-editor.org/rfc/rfc4231, test case 2.
        let known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let tag =
            hmac::sign(&hmac::Key::new(hmac_of(Algorithm::HS256).unwrap(), b"Jefe"), b"what do ya want for nothing?");
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
