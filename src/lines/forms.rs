//! What operators ask of lines, and the rules for it. The command line and the admin API read the same ones.

use super::rows::{EntriesQuery, PAGE_MAX};
use crate::domain::ids::EntryId;
use crate::domain::line::{BEACON_CHARS_MAX, EntryState};
use crate::http::bad_form::{BadForm, bad};
use serde::Deserialize;

/// Entries of a page when nothing else is asked for.
const fn page() -> u16 {
    100
}

/// Which entries of a line are listed.
#[derive(Debug, Clone, Deserialize, clap::Args, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntriesForm {
    /// Only WAITING, OFFERED, TAKEN, LAPSED or LEFT.
    #[arg(long)]
    state: Option<String>,
    /// Only entries behind this one: `next` of the page before.
    #[param(value_type = Option<String>, pattern = "^[1-9][0-9]{0,18}$")]
    #[arg(long, value_name = "ID", help = "Only entries behind this one: the last one of the page before")]
    after: Option<EntryId>,
    /// How many; 100 when left out.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 200)]
    #[serde(default = "page")]
    #[arg(long, help = "Most entries, 1 to 200", default_value_t = page())]
    limit: u16,
}

impl EntriesForm {
    /// The query.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub(crate) fn query(&self) -> Result<EntriesQuery, BadForm> {
        let state = match self.state.as_deref().map(EntryState::from_code) {
            Some(None) => {
                return bad(
                    "state",
                    "WAITING, OFFERED, TAKEN, LAPSED or LEFT",
                    " WAITING、OFFERED、TAKEN、LAPSED 或 LEFT",
                );
            }
            known => known.flatten(),
        };
        if !(1..=PAGE_MAX).contains(&self.limit) {
            return bad("limit", "1 to 200", " 1 至 200");
        }
        Ok(EntriesQuery { state, after: self.after, limit: self.limit })
    }
}

/// What a line is drawn with.
#[derive(Debug, Clone, Deserialize, utoipa::ToSchema)]
#[schema(as = DrawBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrawForm {
    /// The text from outside, one that no person could know at the close: public at once, and never changed.
    #[schema(min_length = 1, max_length = 200)]
    beacon: String,
}

impl DrawForm {
    /// The text.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub(crate) fn checked(self) -> Result<String, BadForm> {
        if self.beacon.trim().is_empty() || self.beacon.chars().count() > BEACON_CHARS_MAX {
            return bad("beacon", "1 to 200 characters", " 1 至 200 个字符");
        }
        Ok(self.beacon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_bounded_and_a_state_is_one_of_those_there_are() {
        let form = |text: &str| serde_json::from_str::<EntriesForm>(text).unwrap().query();
        assert_eq!(form("{}").unwrap().limit, 100);
        let all = form(r#"{"state":"LAPSED","after":"7","limit":200}"#).unwrap();
        assert_eq!((all.state, all.after, all.limit), (Some(EntryState::Lapsed), EntryId::new(7), 200));
        for (text, field) in
            [(r#"{"limit":0}"#, "limit"), (r#"{"limit":201}"#, "limit"), (r#"{"state":"waiting"}"#, "state")]
        {
            assert_eq!(form(text).unwrap_err().field, field);
        }
    }

    #[test]
    fn a_text_from_outside_says_something_and_fits_its_column() {
        let beacon = |text: &str| DrawForm { beacon: text.to_owned() }.checked();
        assert_eq!(beacon(" 灯塔 ").unwrap(), " 灯塔 ", "as it was given");
        assert!(beacon(&"塔".repeat(200)).is_ok());
        for text in ["", " ", &"b".repeat(201)] {
            assert_eq!(beacon(text).unwrap_err().field, "beacon");
        }
    }
}
