//! The algorithms of access tokens: one in `auth.algorithm`, or several in `auth.algorithms`.
//!
//! Input: the settings. Output: the algorithms that are accepted, and what is wrong with them.
//! `auth.algorithm` has a default, so whether both keys are given is read from the layers above it.

use super::sections::{Algorithm, Auth};
use super::server_url::is_here;
use super::value_list::{ListValue, trimmed};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use std::collections::BTreeSet;

impl ListValue for Algorithm {
    const EXPECTED: &'static str = "a list of algorithms, or a text with commas between them";

    fn parts(text: &str) -> Result<Vec<Self>, String> {
        let named = |name: &str| Self::deserialize(IntoDeserializer::<ValueError>::into_deserializer(name));
        trimmed(text).map(named).collect::<Result<_, _>>().map_err(|error| error.to_string())
    }
}

/// What is wrong when both keys are given; `given` has the keys of all layers above the defaults.
pub(super) fn both_given(auth: &Auth, given: &BTreeSet<String>) -> Option<String> {
    let both =
        !auth.algorithms.is_empty() && ["auth.algorithm", "auth.algorithms"].iter().all(|key| given.contains(*key));
    both.then(|| "auth.algorithm, auth.algorithms: both are given, expected one of the two".to_owned())
}

impl Algorithm {
    /// As it stands in the configuration and in tokens.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl Auth {
    /// The algorithms that are accepted, of `algorithms` or `algorithm`; never none.
    #[must_use]
    pub fn algorithms_in_use(&self) -> &[Algorithm] {
        if self.algorithms.is_empty() { std::slice::from_ref(&self.algorithm) } else { self.algorithms.all() }
    }

    /// Whether tokens are checked with secrets (HS256), not with public keys.
    #[must_use]
    pub fn uses_secrets(&self) -> bool {
        self.algorithms_in_use().contains(&Algorithm::Hs256)
    }

    /// How many places of public keys are given.
    pub(crate) fn key_places_count(&self) -> usize {
        [&self.key_file, &self.jwks_file, &self.jwks_url].iter().filter(|place| !place.is_empty()).count()
    }

    /// What is wrong with the choice of algorithms and of the place that keys come from, in any process.
    pub(super) fn key_complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.uses_secrets() && self.algorithms_in_use().len() > 1 {
            found.push(
                "auth.algorithms: HS256 stands beside others, expected HS256 alone, or any of RS256, ES256, EdDSA"
                    .into(),
            );
        }
        if self.key_places_count() > 1 {
            found.push(
                "auth.key_file, auth.jwks_file, auth.jwks_url: more than one is given, expected one of the three"
                    .into(),
            );
        }
        found.extend(url_complaint(&self.jwks_url).map(|why| format!("auth.jwks_url: {why}")));
        if !self.tls_ca_file.is_empty() && !self.jwks_url.starts_with("https://") {
            found
                .push("auth.tls_ca_file: given, but auth.jwks_url does not begin with https://; leave it empty".into());
        }
        found
    }
}

/// Keys that came over a plain connection could be anybody's.
pub(super) fn url_complaint(text: &str) -> Option<String> {
    const EXPECTED: &str = "expected https://host/path, or http:// with 127.0.0.1, [::1] or localhost";
    if text.is_empty() {
        return None;
    }
    let url = match url::Url::parse(text) {
        Ok(url) => url,
        Err(error) => return Some(format!("{text:?}: {error}, {EXPECTED}")),
    };
    match url.scheme() {
        // Not shown: it may hold a password.
        _ if !url.username().is_empty() || url.password().is_some() => Some(format!("has a user, {EXPECTED}")),
        "https" => None,
        "http" if is_here(&url) => None,
        "http" => Some(format!("{text:?} is not encrypted, {EXPECTED}")),
        _ => Some(format!("{text:?} has another scheme, {EXPECTED}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Settings, api_complaints};

    fn load(set: &[&str]) -> Result<Settings, String> {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        Settings::load(&Layers { files: vec![], set }).map_err(|error| error.to_string())
    }

    fn load_file(name: &str, text: &str, set: &[&str]) -> Result<Settings, String> {
        let file = std::env::temp_dir().join(format!("seckill-algorithms-{name}-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let settings = Settings::load(&Layers { files: vec![file.clone()], set }).map_err(|error| error.to_string());
        std::fs::remove_file(file).unwrap();
        settings
    }

    #[test]
    fn one_algorithm_is_a_list_of_one_and_a_list_is_a_list_or_a_text() {
        assert_eq!(load(&[]).unwrap().auth.algorithms_in_use(), [Algorithm::Hs256]);
        assert_eq!(load(&["auth.algorithm=ES256"]).unwrap().auth.algorithms_in_use(), [Algorithm::Es256]);
        let both = [Algorithm::Rs256, Algorithm::EdDsa];
        assert_eq!(load(&["auth.algorithms=RS256, EdDSA"]).unwrap().auth.algorithms_in_use(), both);
        let listed = load_file("list", "[auth]\nalgorithms = [\"RS256\", \"EdDSA\"]\n", &[]).unwrap();
        assert_eq!(listed.auth.algorithms_in_use(), both);
        let error = load(&["auth.algorithms=RS256,none"]).unwrap_err();
        assert!(error.contains("none") && error.contains("ES256"), "{error}");
    }

    #[test]
    fn both_keys_are_refused_wherever_they_stand_and_the_default_is_no_gift() {
        let both = "auth.algorithm, auth.algorithms: both are given";
        let in_file = "[auth]\nalgorithm = \"RS256\"\n";
        for result in [
            load(&["auth.algorithm=RS256", "auth.algorithms=RS256"]),
            load(&["auth.algorithm=HS256", "auth.algorithms=RS256"]),
            load_file("both", in_file, &["auth.algorithms=RS256"]),
            load_file("both-in-one", &format!("{in_file}algorithms = [\"ES256\"]\n"), &[]),
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(both), "{error}");
        }
        assert!(load_file("empty", in_file, &["auth.algorithms="]).is_ok(), "an empty list is none");
    }

    #[test]
    fn where_keys_come_from_is_one_place_and_a_safe_one() {
        for (set, word) in [
            (
                vec!["auth.jwks_url=http://issuer.example/jwks"],
                "auth.jwks_url: \"http://issuer.example/jwks\" is not encrypted",
            ),
            (
                vec!["auth.jwks_url=ftp://issuer.example/jwks"],
                "auth.jwks_url: \"ftp://issuer.example/jwks\" has another scheme",
            ),
            (vec!["auth.jwks_url=issuer.example"], "auth.jwks_url: \"issuer.example\": "),
            (vec!["auth.jwks_url=https://me:hunter2@issuer.example/"], "auth.jwks_url: has a user"),
            (
                vec!["auth.jwks_url=https://i.example/", "auth.key_file=k"],
                "auth.key_file, auth.jwks_file, auth.jwks_url: more",
            ),
            (vec!["auth.jwks_file=f", "auth.key_file=k"], "auth.key_file, auth.jwks_file, auth.jwks_url: more"),
            (vec!["auth.tls_ca_file=ca.pem"], "auth.tls_ca_file: given"),
            (vec!["auth.algorithms=HS256,RS256"], "auth.algorithms: HS256 stands beside"),
            (vec!["auth.jwks_refresh_s=59"], "auth.jwks_refresh_s: 59, expected 60 to 3600"),
            (vec!["auth.reread_s=0"], "auth.reread_s: 0, expected 1 to 3600"),
        ] {
            let error = load(&set).unwrap_err();
            assert!(error.contains(word) && !error.contains("hunter2"), "{word}: {error}");
        }
        for url in ["https://issuer.example/jwks", "http://127.0.0.1:1/", "http://[::1]:1/", "http://localhost/jwks"] {
            let settings = load(&[&format!("auth.jwks_url={url}"), "auth.algorithm=RS256"]).unwrap();
            assert!(!api_complaints(&settings).join("\n").contains("auth.key_file"), "{url}");
        }
        let nowhere = api_complaints(&load(&["auth.algorithms=RS256"]).unwrap()).join("\n");
        assert!(
            nowhere.contains("auth.key_file, auth.jwks_file, auth.jwks_url: exactly one must be given"),
            "{nowhere}"
        );
    }
}
