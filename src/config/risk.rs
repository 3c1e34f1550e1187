//! `[risk]`: the shop's risk service, which judges buyers of sales with the challenge `hook`.
//!
//! Input: the section. Output: complaints that show neither a secret nor the address, which may hold one in its path.

use super::sections::Risk;
use super::webhooks::{secret_complaints, url_complaint};

impl Risk {
    /// Whether there is a service.
    pub(crate) fn is_given(&self) -> bool {
        !self.url.expose().is_empty()
    }

    /// What is wrong with it. Nothing where there is none but its certificates.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.is_given() {
            found.extend(url_complaint(&self.url, self.allow_http).map(|why| format!("risk.url: {why}")));
            found.extend(secret_complaints(self.secrets.all()).into_iter().map(|why| format!("risk.{why}")));
        }
        if !self.tls_ca_file.is_empty() && !self.url.is_encrypted() {
            found.push("risk.tls_ca_file: given, but risk.url does not begin with https://; leave it empty".to_owned());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Layers, OnRiskFailure, Settings};

    const SECRET: &str = "risk.secrets=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn load(set: &[&str]) -> Result<Settings, String> {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        Settings::load(&Layers { files: vec![], set }).map_err(|error| error.to_string())
    }

    #[test]
    fn a_service_is_an_address_with_secrets_and_there_may_be_none() {
        assert!(!load(&[]).unwrap().risk.is_given());
        let risk =
            load(&["risk.url=https://shop.example/risk?key=hunter2", SECRET, "risk.on_failure=refuse"]).unwrap().risk;
        assert!(risk.is_given() && risk.on_failure == OnRiskFailure::Refuse);
        let shown = format!("{risk:?}{}", serde_json::to_string(&risk).unwrap());
        assert!(shown.contains("https://shop.example/…") && !shown.contains("hunter2"), "{shown}");
        assert!(load(&["risk.url=http://127.0.0.1:9/risk", SECRET]).is_ok(), "a loopback address");
        assert!(load(&["risk.url=http://risk.internal/", "risk.allow_http=true", SECRET]).is_ok());
    }

    #[test]
    fn each_mistake_is_named_and_no_secret_is_shown() {
        for (set, said) in [
            (&["risk.url=http://risk.internal/hunter2", SECRET][..], "risk.url: expected https://"),
            (&["risk.url=https://me:hunter2@h/", SECRET], "risk.url: has a user"),
            (&["risk.url=hunter2", SECRET], "risk.url: is not a url"),
            (&["risk.url=https://h/"], "risk.secrets: 0, expected 1 to 4"),
            (&["risk.url=https://h/", "risk.secrets=hunter2"], "risk.secrets: number 1: expected whsec_"),
            (&["risk.tls_ca_file=ca.pem"], "risk.tls_ca_file: given"),
            (&["risk.timeout_ms=9"], "risk.timeout_ms: 9, expected 10 to 10000"),
            (&["risk.in_flight_max=0"], "risk.in_flight_max: 0, expected 1 to 10000"),
            (&["risk.on_failure=ask"], "ask"),
        ] {
            let error = load(set).unwrap_err();
            assert!(error.contains(said) && !error.contains("hunter2"), "{said}: {error}");
        }
    }
}
