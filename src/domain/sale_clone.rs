//! A new sale with the terms of one that exists. Values only.

use super::ids::SaleId;
use super::instant;
use super::new_sale::{BadSale, NewSale};
use super::sale::Sale;
use chrono::{DateTime, Utc};

/// A new sale with the terms of one that exists.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloneForm {
    pub id: SaleId,
    /// RFC 3339.
    #[serde(deserialize_with = "instant::read")]
    pub starts_at: DateTime<Utc>,
    /// RFC 3339.
    #[serde(deserialize_with = "instant::read")]
    pub ends_at: DateTime<Utc>,
    /// Units; left out: as many as the other sale was ever granted.
    pub stock: Option<i64>,
    /// Whether buyers do not see it until it is published.
    #[serde(default)]
    pub hidden: bool,
}

impl CloneForm {
    /// The new sale as a draft.
    pub(crate) fn draft(&self, of: &Sale) -> Result<Sale, BadSale> {
        let terms = NewSale::of(of);
        let new = NewSale {
            id: self.id.clone(),
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            stock: self.stock.unwrap_or(of.granted),
            hidden: self.hidden,
            ..terms
        };
        new.draft()
    }
}
