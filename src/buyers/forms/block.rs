//! A block as an operator asks for it: the same for the admin API and the command line.

use crate::buyers::rows::NewBlock;
use crate::domain::ids::UserId;
use crate::domain::instant;
use crate::http::bad_form::{BadForm, bad};
use chrono::{DateTime, Utc};
use serde::Deserialize;

/// Longest reason, characters: its column's.
const REASON_CHARS_MAX: usize = 200;

/// A buyer who may not buy any more.
#[derive(Debug, Clone, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = BlockBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockForm {
    /// The buyer: the `sub` of the access tokens, or a person, the fact `person`, in sales that limit by person.
    #[schema(min_length = 1, max_length = 64)]
    #[arg(
        value_name = "BUYER",
        help = "The buyer: the sub of the access tokens, or a person in sales that limit by person"
    )]
    buyer: String,
    /// Why, for the record; no buyer reads it.
    #[schema(min_length = 1, max_length = 200)]
    #[arg(long, help = "Why, for the record; no buyer reads it")]
    reason: String,
    /// When the block ends by itself; left out: never.
    #[serde(default, deserialize_with = "instant::read_optional")]
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-03-01T12:00:00+01:00")]
    #[arg(long, value_name = "TIME", value_parser = instant::instant, help = "When the block ends by itself; without it: never")]
    ends_at: Option<DateTime<Utc>>,
}

impl BlockForm {
    /// The block that is asked for at this time.
    ///
    /// # Errors
    /// Which field cannot be used.
    pub(crate) fn checked(&self, now: DateTime<Utc>) -> Result<NewBlock, BadForm> {
        if self.ends_at.is_some_and(|ends_at| ends_at <= now) {
            return bad("ends_at", "a time to come", "将来的时间");
        }
        let reason = reason(&self.reason)?;
        let ends_at_ms = self.ends_at.map(|ends_at| ends_at.timestamp_millis());
        Ok(NewBlock { buyer: buyer(&self.buyer)?, reason, ends_at_ms })
    }
}

/// A reason, without blanks around it.
///
/// # Errors
/// The field `reason`, and what would be accepted.
pub(super) fn reason(text: &str) -> Result<String, BadForm> {
    let reason = text.trim();
    if reason.is_empty() || reason.chars().count() > REASON_CHARS_MAX {
        return bad("reason", "1 to 200 characters", "1 至 200 个字符");
    }
    Ok(reason.to_owned())
}

/// A buyer's id.
///
/// # Errors
/// The field `buyer`, and what would be accepted.
pub(crate) fn buyer(text: &str) -> Result<UserId, BadForm> {
    UserId::parse(text).or_else(|_ignored| {
        bad("buyer", "1 to 64 bytes of UTF-8 without control characters", "1 至 64 字节的 UTF-8 文本，不含控制字符")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_refused_by_its_field() {
        let now = instant::instant("2027-03-01T12:00:00Z").unwrap();
        let form = |text: &str| serde_json::from_str::<BlockForm>(text).unwrap().checked(now);
        let block = form(r#"{"buyer": "ann", "reason": " a bot "}"#).unwrap();
        assert_eq!((block.buyer.as_str(), block.reason.as_str(), block.ends_at_ms), ("ann", "a bot", None));
        let ends = form(r#"{"buyer": "ann", "reason": "r", "ends_at": "2027-03-01T12:00:01Z"}"#).unwrap().ends_at_ms;
        assert_eq!(ends, Some(now.timestamp_millis() + 1_000));
        for (text, field) in [
            (r#"{"buyer": "", "reason": "r"}"#, "buyer"),
            (r#"{"buyer": "ann", "reason": " "}"#, "reason"),
            (r#"{"buyer": "ann", "reason": "r", "ends_at": "2027-03-01T12:00:00Z"}"#, "ends_at"),
        ] {
            assert_eq!(form(text).unwrap_err().field, field);
        }
    }
}
