//! The line of a new sale, and the rules for it.

use super::NewSaleForm;
use crate::domain::line::{LineKind, LinePlan};
use crate::http::bad_form::{BadForm, bad};
use crate::http::times::shown_time;
use serde::Serialize;

/// A line as it was planned, in words of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct PlannedLine {
    /// How ranks come about.
    #[schema(value_type = String, example = "raffle")]
    pub(crate) kind: LineKind,
    /// Until when a raffle takes entries, RFC 3339; null of a waiting list.
    #[serde(serialize_with = "as_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) closes_at: Option<i64>,
    /// Whether it is drawn only with a text from outside.
    pub(crate) beacon: bool,
}

impl From<LinePlan> for PlannedLine {
    fn from(plan: LinePlan) -> Self {
        let closes_at = (plan.kind == LineKind::Raffle).then_some(plan.closes_at_ms);
        Self { kind: plan.kind, closes_at, beacon: plan.needs_beacon }
    }
}

fn as_time<S: serde::Serializer>(unix_ms: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
    unix_ms.map(shown_time).serialize(to)
}

impl NewSaleForm {
    /// Its line.
    pub(super) fn planned_line(&self) -> Result<Option<LinePlan>, BadForm> {
        let Some(kind) = self.line else {
            if self.line_closes_at.is_some() {
                return bad("line_closes_at", "none: the sale has no line", "空：该活动没有抽签");
            }
            if self.line_beacon {
                return bad("line_beacon", "false: the sale has no line", "false：该活动没有抽签");
            }
            return Ok(None);
        };
        if kind == LineKind::Waitlist {
            if self.line_closes_at.is_some() {
                return bad("line_closes_at", "none: a waiting list is by arrival", "空：候补按先后顺序");
            }
            if self.line_beacon {
                return bad("line_beacon", "false: a waiting list is not drawn", "false：候补不抽签");
            }
            return Ok(Some(LinePlan { kind, closes_at_ms: self.ends_at.timestamp_millis(), needs_beacon: false }));
        }
        let closes_at = self.line_closes_at.unwrap_or(self.starts_at);
        if closes_at > self.ends_at {
            return bad("line_closes_at", "a time not after ends_at", "不晚于 ends_at 的时间");
        }
        Ok(Some(LinePlan { kind, closes_at_ms: closes_at.timestamp_millis(), needs_beacon: self.line_beacon }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(more: &str) -> Result<Option<LinePlan>, BadForm> {
        let text = format!(
            r#"{{"id":"s","product":"p","title":"t","stock":5,"starts_at":"2026-01-01T10:00:00Z","ends_at":"2026-01-01T12:00:00Z"{more}}}"#
        );
        serde_json::from_str::<NewSaleForm>(&text).unwrap().planned_line()
    }

    #[test]
    fn a_line_closes_at_the_start_or_when_it_says_and_not_after_the_end() {
        assert_eq!(planned("").unwrap(), None);
        let at_start = planned(r#","line":"raffle""#).unwrap().unwrap();
        assert_eq!((at_start.closes_at_ms, at_start.needs_beacon), (1_767_261_600_000, false));
        let list = planned(r#","line":"waitlist""#).unwrap().unwrap();
        assert_eq!((list.kind, list.closes_at_ms), (LineKind::Waitlist, 1_767_268_800_000), "the end");
        let later = planned(r#","line":"raffle","line_closes_at":"2026-01-01T12:00:00Z","line_beacon":true"#);
        let later = later.unwrap().unwrap();
        assert_eq!((later.closes_at_ms, later.needs_beacon), (1_767_268_800_000, true));
        for (more, field) in [
            (r#","line":"raffle","line_closes_at":"2026-01-01T12:00:01Z""#, "line_closes_at"),
            (r#","line_closes_at":"2026-01-01T10:00:00Z""#, "line_closes_at"),
            (r#","line_beacon":true"#, "line_beacon"),
            (r#","line":"waitlist","line_beacon":true"#, "line_beacon"),
            (r#","line":"waitlist","line_closes_at":"2026-01-01T10:00:00Z""#, "line_closes_at"),
        ] {
            assert_eq!(planned(more).unwrap_err().field, field);
        }
    }
}
