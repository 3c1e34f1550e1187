//! Buyers who show something to a sale: facts in their access tokens, and passes.

use crate::support::world::{Answer, World};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::domain::needs::Needs;
use seckill::runtime::now_ms;
use serde_json::{Value, json};
use std::sync::Arc;

/// The secret of the passes of these tests.
pub const PASS_SECRET: &str = "a-secret-for-passes-of-the-tests-of-32-bytes";

/// The settings of a world that knows facts and passes.
pub const FACTS_AND_PASSES: [&str; 2] =
    ["auth.facts=tier=membership,person=pid", "passes.secrets=a-secret-for-passes-of-the-tests-of-32-bytes"];

/// Needs as JSON says them.
pub fn needs(needs: &Value) -> Option<Arc<Needs>> {
    Some(Arc::new(serde_json::from_value(needs.clone()).expect("needs")))
}

/// Unix seconds this many seconds from now.
pub fn in_s(seconds: i64) -> i64 {
    now_ms() / 1000 + seconds
}

/// A JWT of HS256.
pub fn signed(secret: &str, claims: &Value) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    encode(&Header::new(Algorithm::HS256), claims, &key).expect("a token")
}

/// The claims of a good pass of this buyer, with these claims over them; `null` takes one away.
pub fn pass_claims(buyer: &str, change: &Value) -> Value {
    let mut claims = json!({ "sub": buyer, "exp": in_s(600), "jti": "j" });
    for (name, value) in change.as_object().expect("claims") {
        claims[name] = value.clone();
    }
    claims.as_object_mut().expect("claims").retain(|_, value| !value.is_null());
    claims
}

/// A pass signed with our secret.
pub fn pass(buyer: &str, change: &Value) -> String {
    signed(PASS_SECRET, &pass_claims(buyer, change))
}

/// One buyer's calls.
pub struct ShowingBuyer<'a> {
    pub world: &'a World,
    pub buyer: &'a str,
    /// Claims of the access token beside the usual ones.
    pub claims: Value,
    /// `Seckill-Pass`.
    pub pass: Option<String>,
    /// `Idempotency-Key`.
    pub token: Option<String>,
}

impl<'a> ShowingBuyer<'a> {
    /// One who shows nothing.
    pub fn new(world: &'a World, buyer: &'a str) -> Self {
        Self { world, buyer, claims: json!({}), pass: None, token: None }
    }

    /// The same, with these claims in the access token.
    pub fn with_claims(self, claims: Value) -> Self {
        Self { claims, ..self }
    }

    /// The same, with this pass.
    pub fn with_pass(self, pass: impl Into<String>) -> Self {
        Self { pass: Some(pass.into()), ..self }
    }

    /// The same, with this purchase token.
    pub fn with_token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    fn call(&self, path: &str) -> reqwest::RequestBuilder {
        let mut claims = json!({ "iss": "seckill", "aud": "seckill", "sub": self.buyer, "exp": in_s(600) });
        for (name, value) in self.claims.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        let access = signed(self.world.settings.auth.signing_secret().expose(), &claims);
        let request = self.world.http.request(Method::POST, format!("{}{path}", self.world.api)).bearer_auth(access);
        let shown = [("Seckill-Pass", &self.pass), ("Idempotency-Key", &self.token)];
        shown.into_iter().fold(request, |request, (name, value)| match value {
            Some(value) => request.header(name, value),
            None => request,
        })
    }

    /// Buys a unit by the short way.
    pub async fn buy(&self, sale: &SaleId) -> Answer {
        Answer::of(self.call(&format!("/v1/sales/{sale}/orders")).json(&json!({ "quantity": 1 }))).await
    }

    /// The same by the way that all other requests go.
    pub async fn buy_by_the_app(&self, sale: &SaleId) -> Answer {
        let text = sale.as_str();
        let spelt = format!("%{:02X}{}", text.as_bytes()[0], &text[1..]);
        Answer::of(self.call(&format!("/v1/sales/{spelt}/orders")).json(&json!({ "quantity": 1 }))).await
    }

    /// Asks for a purchase token.
    pub async fn ask_token(&self, sale: &SaleId) -> Answer {
        Answer::of(self.call(&format!("/v1/sales/{sale}/tokens"))).await
    }

    /// Enters the line.
    pub async fn enter_line(&self, sale: &SaleId) -> Answer {
        Answer::of(self.call(&format!("/v1/sales/{sale}/entries")).json(&json!({ "quantity": 1 }))).await
    }

    /// Comes into the waiting room.
    pub async fn enter(&self, sale: &SaleId) -> Answer {
        Answer::of(self.call(&format!("/v1/sales/{sale}/places"))).await
    }

    /// Fails unless both ways to buy, and the call for a token, refuse with this; returns what the purchase said.
    pub async fn is_refused(&self, sale: &SaleId, code: &str) -> Answer {
        let answers = [self.buy_by_the_app(sale).await, self.ask_token(sale).await, self.buy(sale).await];
        for answer in &answers {
            assert_eq!((answer.status, answer.code().as_str()), (403, code), "{answer:?}");
        }
        let [app, token, front] = answers;
        assert_eq!((app.text("detail"), token.text("detail")), (front.text("detail"), front.text("detail")));
        front
    }
}
