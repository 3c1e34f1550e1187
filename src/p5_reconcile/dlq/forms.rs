//! What operators say about parked requests, and the rules for it. The command line and the admin API read the same ones.

use super::action::DlqSelection;
use super::entry::DlqSource;
use crate::http::bad_form::{BadForm, bad};
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Deserialize;

/// The words for the queues.
pub(crate) fn sources() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("relay").help("What the relay could not publish"),
        PossibleValue::new("mq").help("What the consumer could not land"),
    ])
}

/// The queue of a word.
pub(crate) fn source(word: Option<&str>) -> Result<Option<DlqSource>, BadForm> {
    match word {
        None => Ok(None),
        Some("relay") => Ok(Some(DlqSource::Relay)),
        Some("mq") => Ok(Some(DlqSource::Mq)),
        Some(_) => bad("source", "relay or mq", "relay 或 mq"),
    }
}

/// Which parked requests are replayed or given up.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = DlqActionBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct DlqActionForm {
    /// Request ids or entry names.
    #[serde(default)]
    #[arg(
        value_name = "RID",
        help = "Request ids, or entry names as `dlq list` shows them",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) named: Vec<String>,
    /// Every entry, instead of named ones.
    #[serde(default)]
    #[arg(long, help = "Everything that is parked")]
    pub(crate) all: bool,
    /// `relay` or `mq`; both when left out.
    #[arg(long, help = "Only this dead-letter queue (and the register's rows from it)", value_parser = sources())]
    pub(crate) source: Option<String>,
    /// Change nothing, only report what would happen.
    #[serde(default)]
    #[arg(long, help = "Change nothing, only show what would happen")]
    pub(crate) dry_run: bool,
    /// Why; for giving up only.
    #[arg(skip)]
    pub(crate) reason: Option<String>,
}

impl DlqActionForm {
    /// The entries that are meant.
    pub(crate) fn selection(&self) -> Result<DlqSelection, BadForm> {
        let source = source(self.source.as_deref())?;
        if self.all != self.named.is_empty() {
            let expected = "request ids or entry names, or all: true instead";
            return bad("named", expected, "请求号或条目名，或改用 all: true");
        }
        Ok(DlqSelection { named: self.named.clone(), all: self.all, source, dry_run: self.dry_run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_names_what_it_is_about() {
        let form = |text: &str| serde_json::from_str::<DlqActionForm>(text).unwrap().selection();
        assert!(form(r#"{"named":["1"]}"#).is_ok());
        assert!(form(r#"{"all":true,"source":"mq","dry_run":true}"#).is_ok_and(|which| which.dry_run));
        for (wrong, field) in [
            (r#"{}"#, "named"),
            (r#"{"all":true,"named":["1"]}"#, "named"),
            (r#"{"all":true,"source":"redis"}"#, "source"),
        ] {
            assert_eq!(form(wrong).unwrap_err().field, field, "{wrong}");
        }
    }
}
