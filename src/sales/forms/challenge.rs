//! The challenge of a sale as operators say it, and the rule for it.

use crate::domain::challenge::Challenge;
use crate::http::bad_form::{BadForm, bad};
use serde::{Deserialize, Deserializer, Serialize};

/// For `--challenge` of a new sale.
pub(super) const HELP: &str = "What a buyer passes before a purchase token: pow:N (proof of work, N = 1 to 24 zero bits) or hook \
     (the shop's risk service, [risk]); purchases need a token then";
/// For `--challenge` of an edit.
pub(super) const EDIT_HELP: &str = "pow:N (N = 1 to 24), hook, or none";

/// A challenge; without one: none of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ChallengeOrNone(pub(crate) Option<String>);

/// A field that is there, be it null.
pub(super) fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<ChallengeOrNone>, D::Error> {
    ChallengeOrNone::deserialize(value).map(Some)
}

/// The same on the command line: a challenge, or the word none.
#[expect(clippy::unnecessary_wraps, reason = "clap calls it so; what is no challenge is refused with the other fields")]
pub(super) fn or_none(text: &str) -> Result<ChallengeOrNone, String> {
    Ok(ChallengeOrNone((text != "none").then(|| text.to_owned())))
}

/// The challenge that was given.
pub(super) fn checked(given: Option<&str>) -> Result<Option<Challenge>, BadForm> {
    let Some(text) = given else { return Ok(None) };
    match Challenge::asked(text) {
        Some(challenge) => Ok(Some(challenge)),
        None => bad(
            "challenge",
            "pow:N with N from 1 to 24 (zero bits of a proof of work, e.g. pow:18), hook (the shop's risk service), or none",
            "pow:N（N 为 1 至 24，工作量证明的零位数，例如 pow:18）、hook（商店的风控服务），或留空",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_challenge_is_refused_with_what_is_one() {
        assert_eq!(checked(None), Ok(None));
        assert_eq!(checked(Some("pow:18")), Ok(Some(Challenge::Pow(18))));
        for text in ["pow:25", "captcha", ""] {
            let bad = checked(Some(text)).unwrap_err();
            assert!(bad.field == "challenge" && bad.expected.contains("N from 1 to 24"), "{text}: {bad}");
        }
        assert_eq!(or_none("none"), Ok(ChallengeOrNone(None)));
        assert_eq!(or_none("hook"), Ok(ChallengeOrNone(Some("hook".to_owned()))));
    }
}
