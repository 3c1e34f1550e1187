//! Where the keys of one kind of token come from: of access tokens (`[auth]`) or of passes (`[passes]`).

use super::algorithms::url_complaint;
use super::secret::Secret;
use super::sections::{Algorithm, Auth, Passes, Settings};

/// The algorithms of passes whose keys are public: a key says which of them it is for.
const PUBLIC: [Algorithm; 3] = [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];

/// The kinds of tokens whose keys are settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeySection {
    /// `[auth]`.
    Auth,
    /// `[passes]`.
    Passes,
}

impl KeySection {
    /// The name of the section.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Passes => "passes",
        }
    }

    /// The key of each place.
    pub(crate) const fn key_file(self) -> &'static str {
        match self {
            Self::Auth => "auth.key_file",
            Self::Passes => "passes.key_file",
        }
    }

    pub(crate) const fn jwks_file(self) -> &'static str {
        match self {
            Self::Auth => "auth.jwks_file",
            Self::Passes => "passes.jwks_file",
        }
    }

    pub(crate) const fn jwks_url(self) -> &'static str {
        match self {
            Self::Auth => "auth.jwks_url",
            Self::Passes => "passes.jwks_url",
        }
    }

    /// The key of the certificates.
    pub(crate) const fn tls_ca_file(self) -> &'static str {
        match self {
            Self::Auth => "auth.tls_ca_file",
            Self::Passes => "passes.tls_ca_file",
        }
    }
}

/// Keys of one kind of token, and how they are kept up to date.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeySettings<'a> {
    /// Whose they are.
    pub(crate) section: KeySection,
    /// Of HS256; none where the keys are public.
    pub(crate) secrets: &'a [Secret],
    /// Those that are accepted; never none.
    pub(crate) algorithms: &'a [Algorithm],
    /// Of the three places one is given, where the keys are public.
    pub(crate) key_file: &'a str,
    pub(crate) jwks_file: &'a str,
    pub(crate) jwks_url: &'a str,
    /// For an https `jwks_url`; empty: the system's CAs.
    pub(crate) tls_ca_file: &'a str,
    /// A set of an issuer is fetched again within this time, seconds.
    pub(crate) jwks_refresh_s: u64,
    /// A file is read again after this time, and nothing is read sooner, seconds.
    pub(crate) reread_s: u64,
    /// Verified tokens that are remembered.
    pub(crate) verified_max: usize,
    /// Tolerated difference of clocks, seconds.
    pub(crate) leeway_s: u64,
}

impl KeySettings<'_> {
    /// Whether tokens are checked with secrets (HS256), not with public keys.
    pub(crate) fn uses_secrets(&self) -> bool {
        self.algorithms.contains(&Algorithm::Hs256)
    }
}

impl Auth {
    /// The keys of access tokens.
    pub(crate) fn keys(&self) -> KeySettings<'_> {
        KeySettings {
            section: KeySection::Auth,
            secrets: self.secrets_in_use(),
            algorithms: self.algorithms_in_use(),
            key_file: &self.key_file,
            jwks_file: &self.jwks_file,
            jwks_url: &self.jwks_url,
            tls_ca_file: &self.tls_ca_file,
            jwks_refresh_s: self.jwks_refresh_s,
            reread_s: self.reread_s,
            verified_max: self.verified_max,
            leeway_s: self.leeway_s,
        }
    }
}

impl Settings {
    /// The keys of passes: our own, which sign too, then those of the shop. None where passes have no such keys.
    pub(crate) fn pass_keys(&self) -> [Option<KeySettings<'_>>; 2] {
        let Passes { secrets, key_file, jwks_file, jwks_url, tls_ca_file } = &self.passes;
        let shared = KeySettings { section: KeySection::Passes, ..self.auth.keys() };
        let none = KeySettings { secrets: &[], key_file: "", jwks_file: "", jwks_url: "", tls_ca_file: "", ..shared };
        let ours = KeySettings { secrets: secrets.all(), algorithms: &[Algorithm::Hs256], ..none };
        let public = KeySettings { algorithms: &PUBLIC, key_file, jwks_file, jwks_url, tls_ca_file, ..none };
        [(!secrets.is_empty()).then_some(ours), (self.passes.key_places_count() > 0).then_some(public)]
    }
}

impl Passes {
    /// How many places of public keys are given.
    pub(crate) fn key_places_count(&self) -> usize {
        [&self.key_file, &self.jwks_file, &self.jwks_url].iter().filter(|place| !place.is_empty()).count()
    }

    /// The secret that signs passes: the first one.
    pub(crate) fn signing_secret(&self) -> Option<&Secret> {
        self.secrets.all().first()
    }

    /// What is wrong with the places of their keys, in any process.
    pub(super) fn key_complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.key_places_count() > 1 {
            found.push(
                "passes.key_file, passes.jwks_file, passes.jwks_url: more than one is given, expected one of the three at most"
                    .into(),
            );
        }
        found.extend(url_complaint(&self.jwks_url).map(|why| format!("passes.jwks_url: {why}")));
        if !self.tls_ca_file.is_empty() && !self.jwks_url.starts_with("https://") {
            found.push(
                "passes.tls_ca_file: given, but passes.jwks_url does not begin with https://; leave it empty".into(),
            );
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, api_complaints};

    fn load(set: &[&str]) -> Result<Settings, String> {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        Settings::load(&Layers { files: vec![], set }).map_err(|error| error.to_string())
    }

    const SECRET: &str = "a-secret-of-passes-of-thirty-two-bytes-or-more";

    #[test]
    fn passes_have_our_keys_those_of_the_shop_both_or_none() {
        let kinds = |set: &[&str]| load(set).unwrap().pass_keys().map(|keys| keys.map(|keys| keys.uses_secrets()));
        let ours = format!("passes.secrets={SECRET}");
        assert_eq!(kinds(&[]), [None, None]);
        assert_eq!(kinds(&[&ours]), [Some(true), None]);
        assert_eq!(kinds(&["passes.jwks_file=keys.json"]), [None, Some(false)]);
        assert_eq!(kinds(&[&ours, "passes.jwks_url=https://shop.example/jwks"]), [Some(true), Some(false)]);
    }

    #[test]
    fn each_mistake_is_named_and_no_secret_is_shown() {
        let shared = format!("auth.secret={SECRET}");
        for (set, said) in [
            (&["passes.secrets=short-hunter2"][..], "passes.secrets: number 1: has 13 bytes, 32 or more are needed"),
            (&["passes.secrets=a,b,c,d,e"], "passes.secrets: has 5 secrets, expected 4 at most"),
            (
                &["passes.jwks_file=f", "passes.key_file=k"],
                "passes.key_file, passes.jwks_file, passes.jwks_url: more than one",
            ),
            (&["passes.jwks_url=http://shop.example/"], "passes.jwks_url: \"http://shop.example/\" is not encrypted"),
            (&["passes.tls_ca_file=ca.pem"], "passes.tls_ca_file: given"),
            (&["passes.algorithm=RS256"], "algorithm"),
            (&[&shared, &format!("passes.secrets={SECRET}")], "passes.secrets: is the same as auth.secret"),
        ] {
            let found = match load(set) {
                Ok(settings) => api_complaints(&settings).join("\n"),
                Err(error) => error,
            };
            assert!(found.contains(said) && !found.contains("hunter2"), "{said}: {found}");
        }
    }
}
