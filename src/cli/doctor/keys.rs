//! The public keys of access tokens: whether the file can be used, or the issuer's set be fetched.

use super::check::{CheckVerdict, DoctorCheck};
use crate::config::Auth;
use crate::p1_entry::key_set::check;

/// Nothing with HS256, whose secrets the api role checks at its start, and nothing without a place of keys.
pub(super) async fn check_keys(auth: &Auth) -> Option<DoctorCheck> {
    if auth.key_places_count() == 0 {
        return None;
    }
    let (place, found) = check(auth).await?;
    let check = |value: &str| DoctorCheck::new("issuer", place, value, "keys that fit auth.algorithms");
    Some(match found {
        Ok(keys) => check(&keys),
        Err(problem) => {
            let verdict = if auth.jwks_url.is_empty() { CheckVerdict::Wrong } else { CheckVerdict::Away };
            let why = format!("an api process that starts now refuses every buyer: {problem}");
            check("none").judged(false, verdict, &why, "mend what it names; this machine must reach the issuer")
        }
    })
}
