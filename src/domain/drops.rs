//! A drop (活动): sales that belong together, with one limit for each buyer over all of them.
//!
//! A lot is a sale, so a drop adds nothing to how one sells: `lua/reserve.lua` counts what a buyer has in the drop from the buyers
//! hashes of all its sales, and the transaction of an order counts it in `drop_purchases`.

use super::ids::{DropId, SaleId};
use std::num::NonZeroU32;

/// Most sales of a drop.
pub const SALES_MAX: usize = 64;

/// A drop: which sales it has never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalesDrop {
    /// The id, unique for ever.
    pub drop_id: DropId,
    /// What a buyer reads.
    pub title: String,
    /// Most units of one buyer over all its sales, beside the limit of each sale; none: only those.
    pub limit: Option<NonZeroU32>,
    /// Its sales, 1 to [`SALES_MAX`], in the order in which they are shown.
    pub sale_ids: Vec<SaleId>,
}

/// What a sale of a drop has to know of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SaleDrop {
    /// Which drop.
    pub drop_id: DropId,
    /// Most units of one buyer over all its sales; none: no limit.
    pub limit: Option<NonZeroU32>,
    /// Its other sales.
    pub others: Vec<SaleId>,
}

impl SalesDrop {
    /// What one of its sales has to know.
    #[must_use]
    pub fn of_sale(&self, sale: &SaleId) -> SaleDrop {
        let others = self.sale_ids.iter().filter(|other| *other != sale).cloned().collect();
        SaleDrop { drop_id: self.drop_id.clone(), limit: self.limit, others }
    }
}

impl SaleDrop {
    /// What the reserve script obeys, the field `drop` of the sale's `meta`: the limit, then the other sales. None without a limit.
    #[must_use]
    pub(crate) fn in_meta(&self) -> Option<String> {
        Some(self.others.iter().fold(self.limit?.to_string(), |text, sale| text + " " + sale.as_str()))
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
            drop.of_sale(&sales(ids)[0]).in_meta()
        };
        assert_eq!(of(2, &["m", "l", "xl"]).as_deref(), Some("2 l xl"));
        assert_eq!([of(0, &["m", "l"]), of(2, &["m"])], [None, Some("2".to_owned())]);
    }
}
