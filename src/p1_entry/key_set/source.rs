//! Where public keys come from: a PEM file, a file with a JWK set, or the issuer's JWK set.
//!
//! Input: the settings. Output: the bytes that are there now, 64 KiB at most, and the keys in them. Keeps nothing.

use super::AuthKeyError;
use super::issuer::IssuerClient;
use super::parse::{self, AccessKey, BYTES_MAX, ParsedKeys, ReadText};
use crate::config::{Algorithm, KeySection, KeySettings};
use std::io::Read;
use std::path::PathBuf;

/// One place, of keys of this section.
pub(in crate::p1_entry) struct KeySource {
    section: KeySection,
    place: KeyPlace,
}

enum KeyPlace {
    Pem(PathBuf),
    Set(PathBuf),
    Issuer(Box<IssuerClient>),
}

impl KeySource {
    /// The place of the settings; none with HS256.
    pub(super) fn of(settings: &KeySettings<'_>) -> Result<Option<Self>, AuthKeyError> {
        let place = match (settings.uses_secrets(), settings.key_file, settings.jwks_url) {
            (true, ..) => return Ok(None),
            (false, "", "") => KeyPlace::Set(PathBuf::from(settings.jwks_file)),
            (false, "", _) => KeyPlace::Issuer(Box::new(IssuerClient::new(settings)?)),
            (false, file, _) => KeyPlace::Pem(PathBuf::from(file)),
        };
        Ok(Some(Self { section: settings.section, place }))
    }

    /// The configuration key.
    pub(super) const fn name(&self) -> &'static str {
        match self.place {
            KeyPlace::Pem(_) => self.section.key_file(),
            KeyPlace::Set(_) => self.section.jwks_file(),
            KeyPlace::Issuer(_) => self.section.jwks_url(),
        }
    }

    /// Whether it is another machine's, which may be away.
    pub(super) const fn is_remote(&self) -> bool {
        matches!(self.place, KeyPlace::Issuer(_))
    }

    /// The keys of a file, which stop the start when they cannot be used; none of the issuer, who may be away for a while.
    pub(super) fn read_at_start(&self, algorithms: &[Algorithm]) -> Result<Vec<AccessKey>, AuthKeyError> {
        let (KeyPlace::Pem(file) | KeyPlace::Set(file)) = &self.place else { return Ok(Vec::new()) };
        let parsed = read_file(file).and_then(|text| self.parse(&text, algorithms));
        let parsed = parsed.map_err(|problem| AuthKeyError::Place { key: self.name(), problem })?;
        log_skipped(&parsed, self.name());
        Ok(parsed.keys)
    }

    /// What is there now, within a few seconds.
    pub(super) async fn read(&self) -> Result<ReadText, String> {
        match &self.place {
            KeyPlace::Issuer(issuer) => issuer.fetch().await,
            KeyPlace::Pem(file) | KeyPlace::Set(file) => {
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
        match self.place {
            KeyPlace::Pem(_) => parse::pem(text, algorithms),
            KeyPlace::Set(_) | KeyPlace::Issuer(_) => parse::jwk_set(text, algorithms),
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
