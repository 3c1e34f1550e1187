//! Access tokens as most login services sign them: RS256, with a key that was made for this and is good for nothing else.
//!
//! One signature takes about a millisecond of a core, so a crowd's are made before the clock starts.

use super::load_error::LoadError;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use seckill::runtime::now_ms;
use serde_json::json;

/// The private key, PKCS #8.
const KEY: &[u8] = include_bytes!("rs256.key.der");
/// Its public half, as `auth.key_file` takes it.
pub const PUBLIC_PEM: &str = include_str!("rs256.public.pem");
/// `{"alg":"RS256","typ":"JWT"}`
const HEADER: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9";

/// Signs with that key.
pub struct Rs256Issuer {
    key: RsaKeyPair,
    random: SystemRandom,
    issuer: String,
    audience: String,
}

impl Rs256Issuer {
    /// For one issuer and audience.
    ///
    /// # Errors
    /// [`LoadError::Sign`].
    pub fn new(issuer: &str, audience: &str) -> Result<Self, LoadError> {
        let key = RsaKeyPair::from_pkcs8(KEY).map_err(|error| LoadError::Sign(error.to_string()))?;
        let (issuer, audience) = (issuer.to_owned(), audience.to_owned());
        Ok(Self { key, random: SystemRandom::new(), issuer, audience })
    }

    /// A token for `sub` that lives `ttl_s` seconds.
    ///
    /// # Errors
    /// [`LoadError::Sign`].
    pub fn sign(&self, sub: &str, ttl_s: u64) -> Result<String, LoadError> {
        let iat = now_ms() / 1000;
        let exp = iat.saturating_add_unsigned(ttl_s);
        let claims =
            json!({ "iss": self.issuer, "aud": self.audience, "sub": sub, "iat": iat, "exp": exp }).to_string();
        let mut token = format!("{HEADER}.{}", URL_SAFE_NO_PAD.encode(claims));
        let mut signature = vec![0; self.key.public_modulus_len()];
        let signed = self.key.sign(&RSA_PKCS1_SHA256, &self.random, token.as_bytes(), &mut signature);
        signed.map_err(|_unspecified| LoadError::Sign("the key refuses".to_owned()))?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(&signature));
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seckill::config::{Layers, Settings};
    use seckill::p1_entry::access_tokens::Authenticator;

    #[test]
    fn the_header_says_what_it_should() {
        assert_eq!(URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#), HEADER);
    }

    #[test]
    fn the_entry_takes_its_tokens() {
        let file = std::env::temp_dir().join(format!("seckill-rs256-{:x}.pem", rand::random::<u64>()));
        std::fs::write(&file, PUBLIC_PEM).unwrap();
        let set = vec!["auth.algorithm=RS256".to_owned(), format!("auth.key_file={}", file.display())];
        let settings = Settings::load(&Layers { files: vec![], set }).unwrap();
        let entry = Authenticator::new(&settings.auth).unwrap();
        std::fs::remove_file(file).unwrap();
        let token = |audience| Rs256Issuer::new("seckill", audience).unwrap().sign("buyer", 60).unwrap();
        assert!(entry.check(&token("seckill")).is_ok());
        assert!(entry.check(&token("other")).is_err());
    }
}
