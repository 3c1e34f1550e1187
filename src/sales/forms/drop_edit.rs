//! A change of a drop: what it is called, and how much a buyer may have of it. Which sales it has never changes.

use super::changes::{OrNone, given, or_none};
use super::new_drop::{limit_is_usable, title_is_usable};
use crate::domain::drops::SalesDrop;
use crate::http::bad_form::BadForm;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A change of a drop. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = DropEditBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct DropEditForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    #[arg(long, help = "What a buyer reads", required_unless_present = "limit")]
    title: Option<String>,
    /// Most units of one buyer over all its sales; null: no limit.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    #[arg(long, value_name = "UNITS|none", help = "Most units of a buyer over all its sales, or none", value_parser = or_none)]
    limit: Option<OrNone>,
}

impl DropEditForm {
    /// The drop as it is after the change.
    ///
    /// # Errors
    /// Which field cannot be used.
    pub(crate) fn applied(&self, drop: &SalesDrop) -> Result<SalesDrop, BadForm> {
        let (mut title, mut limit) = (drop.title.clone(), drop.limit);
        if let Some(new) = &self.title {
            title_is_usable(new)?;
            title.clone_from(new);
        }
        if let Some(OrNone(new)) = self.limit {
            limit_is_usable(new)?;
            limit = new.and_then(NonZeroU32::new);
        }
        Ok(SalesDrop { title, limit, ..drop.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::DropId;

    #[test]
    fn what_is_left_out_stays_and_null_is_no_limit() {
        let drop_id = DropId::parse("d").unwrap();
        let drop = SalesDrop { drop_id, title: "t".into(), limit: NonZeroU32::new(2), sale_ids: Vec::new() };
        let applied = |text: &str| serde_json::from_str::<DropEditForm>(text).unwrap().applied(&drop);
        assert_eq!(applied(r#"{"title": "new"}"#), Ok(SalesDrop { title: "new".into(), ..drop.clone() }));
        assert_eq!(applied(r#"{"limit": null}"#), Ok(SalesDrop { limit: None, ..drop.clone() }));
        assert_eq!(applied(r#"{"limit": 0}"#).unwrap_err().field, "limit");
        assert_eq!(applied(r#"{"title": " "}"#).unwrap_err().field, "title");
    }
}
