//! The public keys of access tokens and of passes: whether the file can be used, or the issuer's set be fetched.

use super::check::{CheckVerdict, DoctorCheck};
use crate::config::{KeySection, Settings};
use crate::p1_entry::key_set::check;

/// Nothing with HS256, whose secrets are checked at the start, and nothing without a place of keys.
pub(super) async fn check_keys(settings: &Settings) -> Vec<DoctorCheck> {
    let access = Some(settings.auth.keys()).filter(|_| settings.auth.key_places_count() > 0);
    let mut checks = Vec::new();
    for keys in [access].into_iter().chain(settings.pass_keys()).flatten() {
        let Some((place, found)) = check(&keys).await else { continue };
        let expected = match keys.section {
            KeySection::Auth => "keys that fit auth.algorithms",
            KeySection::Passes => "keys for RS256, ES256 or EdDSA",
        };
        let check = |value: &str| DoctorCheck::new("issuer", place, value, expected);
        checks.push(match found {
            Ok(names) => check(&names),
            Err(problem) => {
                let verdict = if keys.jwks_url.is_empty() { CheckVerdict::Wrong } else { CheckVerdict::Away };
                let refused = match keys.section {
                    KeySection::Auth => "every buyer",
                    KeySection::Passes => "every pass of the shop",
                };
                let why = format!("an api process that starts now refuses {refused}: {problem}");
                check("none").judged(false, verdict, &why, "mend what it names; this machine must reach the issuer")
            }
        });
    }
    checks
}
