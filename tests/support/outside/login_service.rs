//! A login service as the tests need one: it signs access tokens with a public-key algorithm and shows its key in every form.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256};
use seckill::runtime::now_ms;
use serde_json::{Value, json};

/// The public-key algorithms.
pub const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];

enum PrivateKey {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

/// Signs as a login service does.
pub struct LoginService {
    pub algorithm: &'static str,
    /// The name of its key.
    pub kid: String,
    key: PrivateKey,
    /// The public half as a PEM file has it.
    pub public_pem: String,
}

impl LoginService {
    /// A service with a new key, called `now`; of RSA there is one key only, because making one takes seconds.
    pub fn new(algorithm: &'static str) -> Self {
        Self::named(algorithm, "now")
    }

    /// The same with another name of its key.
    pub fn named(algorithm: &'static str, kid: &str) -> Self {
        let pair = match algorithm {
            "RS256" => {
                let pem = include_str!("client.rsa.pem");
                KeyPair::from_pkcs8_pem_and_sign_algo(pem, &PKCS_RSA_SHA256).unwrap()
            }
            "ES256" => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(),
            _ => KeyPair::generate_for(&PKCS_ED25519).unwrap(),
        };
        let der = pair.serialize_der();
        let key = match algorithm {
            "RS256" => PrivateKey::Rsa(RsaKeyPair::from_pkcs8(&der).unwrap()),
            "ES256" => PrivateKey::Ec(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).unwrap()),
            _ => PrivateKey::Ed(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).unwrap()),
        };
        Self { algorithm, kid: kid.to_owned(), key, public_pem: pair.public_key_pem() }
    }

    /// The public half as a set has it.
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.key {
            PrivateKey::Rsa(pair) => {
                // PKCS #1 of this key: a sequence of the modulus, 257 bytes of which the first is 0, and the exponent 65,537.
                let der = pair.public_key().as_ref();
                assert_eq!((der.len(), &der[265..]), (270, &[2, 3, 1, 0, 1][..]));
                json!({ "kty": "RSA", "n": base64_url(&der[9..265]), "e": base64_url(&der[267..]) })
            }
            PrivateKey::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": base64_url(x), "y": base64_url(y) })
            }
            PrivateKey::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": base64_url(pair.public_key().as_ref()) })
            }
        };
        jwk["kid"] = json!(self.kid);
        jwk["use"] = json!("sig");
        jwk
    }

    /// A set as issuers publish it: with keys that are of no use here.
    pub fn key_set(&self) -> Value {
        let nameless = {
            let mut jwk = self.jwk();
            jwk.as_object_mut().unwrap().remove("kid");
            jwk
        };
        let mut encrypting = LoginService::new(self.algorithm).jwk();
        (encrypting["use"], encrypting["kid"]) = (json!("enc"), json!("enc"));
        let others = ALGORITHMS
            .into_iter()
            .filter(|other| *other != self.algorithm)
            .map(|other| LoginService::named(other, other).jwk());
        let mut keys = vec![
            json!({ "kty": "OKP", "crv": "X25519", "kid": "x25519", "x": "AAAA" }),
            json!({ "kty": "EC", "crv": "secp256k1", "kid": "k1", "x": "AAAA", "y": "AAAA" }),
            json!({ "kid": "nothing" }),
            nameless,
            encrypting,
        ];
        keys.extend(others);
        keys.push(self.jwk());
        json!({ "keys": keys })
    }

    /// A token that names the key `kid`.
    pub fn token(&self, kid: &str, sub: &str, exp: i64) -> String {
        self.signed(kid, &json!({ "iss": "seckill", "aud": "seckill", "sub": sub, "exp": exp }))
    }

    /// Any claims, in a token that names the key `kid`.
    pub fn signed(&self, kid: &str, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm, "typ": "JWT", "kid": kid });
        let [header, claims] = [&header, claims].map(|part| base64_url(part.to_string().as_bytes()));
        let text = format!("{header}.{claims}");
        let random = SystemRandom::new();
        let signature = match &self.key {
            PrivateKey::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).unwrap();
                signature
            }
            PrivateKey::Ec(pair) => pair.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec(),
            PrivateKey::Ed(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
        };
        format!("{text}.{}", base64_url(&signature))
    }

    /// A token that names its own key and lives ten minutes.
    pub fn good(&self, sub: &str) -> String {
        self.token(&self.kid, sub, now_ms() / 1000 + 600)
    }
}

/// A set of these services' keys.
pub fn set_of(services: &[&LoginService]) -> Value {
    json!({ "keys": services.iter().map(|service| service.jwk()).collect::<Vec<_>>() })
}

/// Without padding.
pub fn base64_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The same token with another bit in its signature.
pub fn forged(token: &str) -> String {
    let at = token.rfind('.').unwrap() + 10;
    let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
    format!("{}{other}{}", &token[..at], &token[at + 1..])
}
