//! One call of the shop's risk service: a question about a buyer, signed as webhooks are, and its answer.
//!
//! Input: what is known of the call for a token. Output: the verdict, or what went wrong, in words. The caller sets the deadline.
//! Redirects are not followed, the answer is read up to some kilobytes. A crash leaves a question whose answer nothing reads.

use crate::config::Risk;
use crate::domain::ids::{SaleId, UserId};
use crate::domain::webhook::payload;
use crate::events::webhooks::signer::MessageSigner;
use crate::http::client::{OutgoingClient, StatusCode, advised, whole_body};
use crate::http::times::shown_time;
use crate::runtime::now_ms;
use crate::store::tls::{TlsError, TlsFiles, Trust};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use url::Url;

/// Largest answer, bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024;
/// The type of a question about a buyer, and of one that the doctor asks.
const ASKED: &str = "token.asked";
const PROBED: &str = "risk.probed";

/// The risk service cannot be asked with these settings.
#[derive(Debug, thiserror::Error)]
pub enum RiskSetupError {
    /// Its address.
    #[error("risk.url: {0}")]
    Url(#[from] url::ParseError),
    /// Its certificates.
    #[error(transparent)]
    Trust(#[from] TlsError),
}

/// Where a call for a token comes from, as far as it is known. Nothing of it is proved: a proxy's address may be the only true one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SeenCaller {
    /// The other end of the connection: the buyer, or a proxy.
    pub(crate) address: Option<IpAddr>,
    /// The last `X-Forwarded-For`, as it came.
    pub(crate) forwarded_for: Option<String>,
    pub(crate) user_agent: Option<String>,
}

/// A question about a buyer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RiskQuestion {
    pub(super) sale_id: SaleId,
    /// As the access token names the buyer.
    pub(super) user: UserId,
    #[serde(flatten)]
    pub(super) seen: SeenCaller,
}

/// What the service has to answer; what else it says is not read.
#[derive(Deserialize)]
struct RiskAnswer {
    allow: bool,
}

/// The service of the settings.
pub(super) struct RiskService {
    client: OutgoingClient,
    signer: MessageSigner,
}

impl RiskService {
    /// For settings that were checked, with an address.
    pub(super) fn new(settings: &Risk) -> Result<Self, RiskSetupError> {
        let url = Url::parse(settings.url.expose())?;
        let files = TlsFiles { section: "risk", ca: &settings.tls_ca_file, cert: "", key: "" };
        let trust = if settings.url.is_encrypted() { Some(Trust::read(files)?) } else { None };
        let client = OutgoingClient::new(url, trust.as_ref(), settings.in_flight_max);
        Ok(Self { client, signer: MessageSigner::new(settings.secrets.all()) })
    }

    /// Whether the buyer may have a token.
    ///
    /// # Errors
    /// In words: no connection, another status than 200, or an answer that is none.
    pub(super) async fn ask(&self, question: &RiskQuestion) -> Result<bool, String> {
        self.send(ASKED, &serde_json::to_vec(question).map_err(|error| error.to_string())?).await
    }

    /// Whether it answers at all; what, does not matter.
    pub(super) async fn probe(&self) -> Result<bool, String> {
        self.send(PROBED, b"{}").await
    }

    async fn send(&self, kind: &str, data: &[u8]) -> Result<bool, String> {
        let now_ms = now_ms();
        let id = format!("msg_{:032x}", rand::random::<u128>());
        let call = self.signer.call(id, now_ms / 1000, payload(kind, &shown_time(now_ms), data));
        let answer = self.client.call(call).await.map_err(|words| advised(&words, "risk.tls_ca_file", "risk.url"))?;
        if answer.status() != StatusCode::OK {
            let remark = if answer.status().is_redirection() { "; redirects are not followed" } else { "" };
            return Err(format!("answers {}, expected 200{remark}", answer.status()));
        }
        read(&whole_body(answer, ANSWER_BYTES_MAX).await?)
    }
}

/// The verdict in the body of an answer.
fn read(body: &[u8]) -> Result<bool, String> {
    let answer: Result<RiskAnswer, _> = serde_json::from_slice(body);
    answer
        .map(|answer| answer.allow)
        .map_err(|error| format!("answers what is no verdict ({error}), expected {{\"allow\": true|false}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_true_or_false_and_nothing_else_is_one() {
        assert_eq!(read(br#"{"allow": true}"#), Ok(true));
        assert_eq!(read(br#"{"allow": false, "score": 0.97}"#), Ok(false));
        for body in
            ["", "{}", "true", r#"{"allow": 1}"#, r#"{"allow": "true"}"#, r#"{"allow": null}"#, r#"{"allow": true"#]
        {
            assert!(read(body.as_bytes()).unwrap_err().contains("no verdict"), "{body}");
        }
    }

    #[test]
    fn a_question_says_what_is_known() {
        let (sale_id, user) = (SaleId::parse("s").unwrap(), UserId::parse("alice").unwrap());
        let seen = SeenCaller { address: "192.0.2.7".parse().ok(), ..SeenCaller::default() };
        let question = serde_json::to_value(RiskQuestion { sale_id, user, seen }).unwrap();
        let expected = serde_json::json!({
            "sale_id": "s", "user": "alice", "address": "192.0.2.7", "forwarded_for": null, "user_agent": null
        });
        assert_eq!(question, expected);
    }
}
