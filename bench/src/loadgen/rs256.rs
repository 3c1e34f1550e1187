//! Access tokens as most login services sign them: RS256, with a key that was made for this and is good for nothing else.
//!
//! One signature takes about a millisecond of a core, so a crowd's are made before the clock starts.

use super::plan::LoadError;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use seckill::runtime::now_ms;
use serde_json::json;

/// The private key, PKCS #8.
const KEY: &[u8] = include_bytes!("rs256.key.der");
/// Its public half, as `auth.key_file` takes it.
pub const PUBLIC_PEM: &str = include_str!("rs256.public.pem");
/// `{"alg":"RS256","typ":"JWT"}`
const HEADER: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9";
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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
        let mut token = format!("{HEADER}.{}", base64_url(claims.as_bytes()));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let signed = self.key.sign(&RSA_PKCS1_SHA256, &self.random, token.as_bytes(), &mut signature);
        signed.map_err(|_unspecified| LoadError::Sign("the key refuses".to_owned()))?;
        token.push('.');
        token.push_str(&base64_url(&signature));
        Ok(token)
    }
}

/// Without padding.
fn base64_url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for piece in bytes.chunks(3) {
        let bits = piece.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - piece.len()));
        let letters = (0..=piece.len()).map(|at| LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char);
        text.extend(letters);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use seckill::config::{Layers, Settings};
    use seckill::p1_entry::access_tokens::Authenticator;

    #[test]
    fn base64_url_has_no_padding() {
        let encoded = ["", "f", "fo", "foo", "foob", "?>"].map(|text| base64_url(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Pz4"]);
        assert_eq!(base64_url(br#"{"alg":"RS256","typ":"JWT"}"#), HEADER);
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
