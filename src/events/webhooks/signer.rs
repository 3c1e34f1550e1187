//! A signed call by Standard Webhooks 1.0.0: to receivers of webhooks, and to the shop's risk service.
//!
//! Input: the secrets of the settings, which were checked; an id, a time and a body. Output: the call with its headers. Keeps the keys only.

use crate::config::{Secret, webhook_secret_bytes};
use crate::domain::webhook::signed_content;
use crate::http::client::{CONTENT_TYPE, HeaderName, Method, OutgoingCall};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The secrets; all of them sign, so that a receiver may change from one to the next.
pub(crate) struct MessageSigner(Vec<hmac::Key>);

impl MessageSigner {
    /// Signs with each of these; one of another form than `whsec_<base64>` is left out.
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        let bytes = secrets.iter().filter_map(webhook_secret_bytes);
        Self(bytes.map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes)).collect())
    }

    /// A POST of `body`, JSON, signed. `message_id` has no dot; `timestamp_s`: Unix seconds of this try.
    pub(crate) fn call(&self, message_id: String, timestamp_s: i64, body: Vec<u8>) -> OutgoingCall {
        let signatures = self.signatures(&message_id, timestamp_s, &body);
        let headers = vec![
            (CONTENT_TYPE, "application/json".to_owned()),
            (HeaderName::from_static("webhook-id"), message_id),
            (HeaderName::from_static("webhook-timestamp"), timestamp_s.to_string()),
            (HeaderName::from_static("webhook-signature"), signatures),
        ];
        OutgoingCall { method: Method::POST, headers, body: body.into() }
    }

    /// The value of `webhook-signature`.
    fn signatures(&self, message_id: &str, timestamp_s: i64, body: &[u8]) -> String {
        let content = signed_content(message_id, timestamp_s, body);
        let one = |key: &hmac::Key| format!("v1,{}", STANDARD.encode(hmac::sign(key, &content)));
        self.0.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(secrets: &[&str]) -> MessageSigner {
        let secrets: Vec<Secret> = secrets.iter().map(|secret| Secret::new((*secret).to_owned())).collect();
        MessageSigner::new(&secrets)
    }

    /// The example that the libraries of the standard test themselves with.
    #[test]
    fn the_signature_is_that_of_the_standard() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = br#"{"test": 2432232314}"#;
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signer(&[secret]).signatures(id, 1_614_265_330, body), expected);
        let both = signer(&["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", secret]).signatures(id, 1_614_265_330, body);
        assert_eq!(both.split(' ').map(|one| &one[..3]).collect::<Vec<_>>(), ["v1,", "v1,"]);
        assert!(both.ends_with(expected) && !both.starts_with(expected), "{both}");
    }
}
