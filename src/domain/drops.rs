//! A drop (活动): sales that belong together, with one limit for each buyer over all of them.
//!
//! A lot is a sale, so a drop adds nothing to how one sells: `lua/reserve.lua` counts what a buyer has in the drop from the buyers
//! hashes of all its sales, and the transaction of an order counts it in `drop_purchases`.

use super::ids::{DropId, SaleId};
use std::num::NonZeroU32;

/// Most sales of a drop.
pub const SALES_MAX: usize = 64;

/// A drop: which sales it has never changes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct SalesDrop {
    /// The id, unique for ever.
    #[schema(value_type = String)]
    pub drop_id: DropId,
    /// What a buyer reads.
    pub title: String,
    /// Most units of one buyer over all its sales, beside the limit of each sale; none: only those.
    #[schema(value_type = Option<u32>)]
    pub limit: Option<NonZeroU32>,
    /// Its sales, 1 to [`SALES_MAX`], in the order in which they are shown.
    #[schema(value_type = Vec<String>)]
    pub sale_ids: Vec<SaleId>,
}

impl SalesDrop {
    /// Its sales beside this one, in order.
    pub fn others<'a>(&'a self, sale: &'a SaleId) -> impl Iterator<Item = &'a SaleId> {
        self.sale_ids.iter().filter(move |other| *other != sale)
    }

    /// Whether this sale acts for all where one act is enough: it has the lowest id.
    #[must_use]
    pub(crate) fn is_acted_for_by(&self, sale: &SaleId) -> bool {
        self.sale_ids.iter().min() == Some(sale)
    }

    /// What the reserve script obeys in this sale, the field `drop` of its `meta`: the limit, then the other sales. None without a limit.
    #[must_use]
    pub(crate) fn in_meta(&self, sale: &SaleId) -> Option<String> {
        Some(self.others(sale).fold(self.limit?.to_string(), |text, other| text + " " + other.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_gets_the_limit_and_the_other_sales() {
        let sales = |ids: &[&str]| ids.iter().map(|id| SaleId::parse(id).unwrap()).collect::<Vec<_>>();
        let of = |limit, ids: &[&str]| {
            let drop_id = DropId::parse("d").unwrap();
            let drop =
                SalesDrop { drop_id, title: "d".to_owned(), limit: NonZeroU32::new(limit), sale_ids: sales(ids) };
            drop.in_meta(&sales(ids)[0])
        };
        assert_eq!(of(2, &["m", "l", "xl"]).as_deref(), Some("2 l xl"));
        assert_eq!([of(0, &["m", "l"]), of(2, &["m"])], [None, Some("2".to_owned())]);
    }
}
