//! Where public keys come from: a PEM file, a file with a JWK set, or the issuer's JWK set.
//!
//! Input: `[auth]`. Output: the bytes that are there now, 64 KiB at most, and the keys in them. Keeps nothing.

use super::AuthKeyError;
use super::issuer::IssuerClient;
use super::parse::{self, AccessKey, BYTES_MAX, ParsedKeys, ReadText};
use crate::config::{Algorithm, Auth};
use std::io::Read;
use std::path::PathBuf;

/// One place.
pub(in crate::p1_entry) enum KeySource {
    Pem(PathBuf),
    Set(PathBuf),
    Issuer(IssuerClient),
}

impl KeySource {
    /// The place of the settings; none with HS256.
    pub(super) fn of(settings: &Auth) -> Result<Option<Self>, AuthKeyError> {
        Ok(match (settings.uses_secrets(), settings.key_file.as_str(), settings.jwks_url.as_str()) {
            (true, ..) => None,
            (false, "", "") => Some(Self::Set(PathBuf::from(&settings.jwks_file))),
            (false, "", _) => Some(Self::Issuer(IssuerClient::new(settings)?)),
            (false, file, _) => Some(Self::Pem(PathBuf::from(file))),
        })
    }

    /// The configuration key.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Pem(_) => "auth.key_file",
            Self::Set(_) => "auth.jwks_file",
            Self::Issuer(_) => "auth.jwks_url",
        }
    }

    /// Whether it is another machine's, which may be away.
    pub(super) const fn is_remote(&self) -> bool {
        matches!(self, Self::Issuer(_))
    }

    /// The keys of a file, which stop the start when they cannot be used; none of the issuer, who may be away for a while.
    pub(super) fn read_at_start(&self, algorithms: &[Algorithm]) -> Result<Vec<AccessKey>, AuthKeyError> {
        let (Self::Pem(file) | Self::Set(file)) = self else { return Ok(Vec::new()) };
        let parsed = read_file(file).and_then(|text| self.parse(&text, algorithms));
        let parsed = parsed.map_err(|problem| AuthKeyError::Place { key: self.name(), problem })?;
        log_skipped(&parsed, self.name());
        Ok(parsed.keys)
    }

    /// What is there now, within a few seconds.
    pub(super) async fn read(&self) -> Result<ReadText, String> {
        match self {
            Self::Issuer(issuer) => issuer.fetch().await,
            Self::Pem(file) | Self::Set(file) => {
                let file = file.clone();
                // A file system may stand still; no thread that serves buyers waits for it.
                let text =
                    tokio::task::spawn_blocking(move || read_file(&file)).await.map_err(|error| error.to_string())?;
                text.map(|text| ReadText { text, max_age: None })
            }
        }
    }

    /// The keys in a text.
    pub(super) fn parse(&self, text: &[u8], algorithms: &[Algorithm]) -> Result<ParsedKeys, String> {
        match self {
            Self::Pem(_) => parse::pem(text, algorithms),
            Self::Set(_) | Self::Issuer(_) => parse::jwk_set(text, algorithms),
        }
    }
}

fn log_skipped(parsed: &ParsedKeys, from: &'static str) {
    for skipped in &parsed.skipped {
        tracing::warn!(from, key = skipped, "key skipped");
    }
}

fn read_file(file: &PathBuf) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let limit = BYTES_MAX as u64 + 1;
    let read = std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut text));
    match read {
        Err(error) => Err(format!("cannot read {}: {error}", file.display())),
        Ok(_) if text.len() > BYTES_MAX => Err(format!("{} has more than {BYTES_MAX} bytes", file.display())),
        Ok(_) => Ok(text),
    }
}
