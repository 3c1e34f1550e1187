//! What a buyer of a [`World`] does: tokens, purchases, reads what became of them.

use crate::support::basics::answer::Answer;
use crate::support::basics::time::eventually;
use crate::support::world::World;
use seckill::domain::ids::SaleId;

impl World {
    /// An access token.
    pub fn access(&self, user: &str) -> String {
        self.issuer.sign(user, 3600).expect("a token")
    }

    /// A request builder with a buyer's access token; `path` begins with `/`.
    pub fn request(&self, method: reqwest::Method, path: &str, user: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.api)).bearer_auth(self.access(user))
    }

    /// Buys; with a purchase token when one is given.
    pub async fn buy(&self, sale: &SaleId, user: &str, quantity: u32, token: Option<&str>) -> Answer {
        let mut request = self
            .request(reqwest::Method::POST, &format!("/v1/sales/{sale}/orders"), user)
            .json(&serde_json::json!({ "quantity": quantity }));
        if let Some(token) = token {
            request = request.header("Idempotency-Key", token);
        }
        Answer::of(request).await
    }

    /// A purchase token and its request id.
    pub async fn token(&self, sale: &SaleId, user: &str) -> (String, String) {
        let answer = self.ask_token(sale, user).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        (answer.text("token"), answer.text("request_id"))
    }

    /// The same, once a purchase token is given: for a moment after Redis was away the sale may be unknown.
    pub async fn token_again(&self, sale: &SaleId, user: &str) -> (String, String) {
        let mut answer = self.ask_token(sale, user).await;
        eventually("a purchase token", async || {
            if answer.status == 503 {
                answer = self.ask_token(sale, user).await;
            }
            answer.status != 503
        })
        .await;
        assert_eq!(answer.status, 201, "{answer:?}");
        (answer.text("token"), answer.text("request_id"))
    }

    async fn ask_token(&self, sale: &SaleId, user: &str) -> Answer {
        Answer::of(self.request(reqwest::Method::POST, &format!("/v1/sales/{sale}/tokens"), user)).await
    }

    /// Asks for a status, waiting up to `wait_s` for the final one.
    pub async fn status(&self, sale: &SaleId, user: &str, request_id: &str, wait_s: u32) -> Answer {
        let path = format!("/v1/sales/{sale}/orders/{request_id}?wait={wait_s}");
        Answer::of(self.request(reqwest::Method::GET, &path, user)).await
    }
}
