//! The web server of a login service: it shows a set of keys, and can be away, slow, endless or wrong.

use super::certificates::Certificates;
use super::http_server::{HttpCall, HttpReply, HttpServer};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// Listens until it is dropped.
pub struct Issuer {
    /// For `auth.jwks_url`.
    pub url: String,
    server: HttpServer,
    reply: Arc<Mutex<HttpReply>>,
}

fn set_reply(set: &Value) -> HttpReply {
    HttpReply::new("200 OK", "Content-Type: application/json\r\n", set.to_string().as_bytes())
}

impl Issuer {
    /// One that shows this set.
    pub async fn start(set: &Value) -> Self {
        Self::listening(set, None).await
    }

    /// The same over TLS, with the certificate `server` for `localhost`.
    pub async fn start_tls(set: &Value, certificates: &Certificates) -> Self {
        Self::listening(set, Some(certificates)).await
    }

    async fn listening(set: &Value, certificates: Option<&Certificates>) -> Self {
        let reply = Arc::new(Mutex::new(set_reply(set)));
        let now = reply.clone();
        let handler = move |HttpCall { line, headers, .. }| {
            assert!(line == "GET /keys?of=buyers HTTP/1.1" && headers.contains_key("host"), "{line} {headers:?}");
            now.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let server = HttpServer::start(certificates, handler).await;
        Self { url: server.url("/keys?of=buyers"), server, reply }
    }

    /// Shows another set from now on.
    pub fn publish(&self, set: &Value) {
        self.replies(set_reply(set));
    }

    /// Answers this.
    pub fn answer(&self, status: &str, headers: &str, body: &[u8]) {
        self.replies(HttpReply::new(status, headers, body));
    }

    /// Closes every connection without an answer.
    pub fn goes_away(&self) {
        self.replies(HttpReply::hang_up());
    }

    /// Takes requests and says nothing.
    pub fn falls_silent(&self) {
        self.replies(HttpReply::silence());
    }

    /// Answers without an end.
    pub fn never_ends(&self) {
        self.replies(HttpReply::endless());
    }

    /// How often it was asked, whatever it answered: each question has a connection of its own.
    pub fn fetches(&self) -> usize {
        self.server.connections()
    }

    fn replies(&self, reply: HttpReply) {
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = reply;
    }
}
