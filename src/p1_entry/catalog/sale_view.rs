//! A sale as the entry sees it, and what a lookup can come to. Values only.

use crate::domain::sale::Sale;
use crate::store::redis::SoldOutMark;
use std::sync::Arc;

/// A sale, and what this process knows about its stock right now.
#[derive(Debug, Clone)]
pub(crate) struct SaleView {
    /// The sale as the database had it.
    pub sale: Sale,
    /// Set when it was found sold out in its present epoch and with its present grants.
    pub sold_out: Option<SoldOutMark>,
    /// Units left as last read; approximate. `None` when Redis does not hold the sale.
    pub remaining: Option<i64>,
}

/// The result of a lookup.
#[derive(Debug, Clone)]
pub(crate) enum CatalogLookup {
    /// There is one.
    Found(Arc<SaleView>),
    /// There is no such sale (`P1-S3`).
    Missing,
    /// Another process is loading it (`P1-S4`).
    Loading,
    /// Neither Redis nor the database answers.
    Unavailable,
}

impl SaleView {
    /// The same with a mark, if it is of its epoch and grants.
    pub(super) fn marked(&self, mark: SoldOutMark) -> Option<Self> {
        let is_of_it = (self.sale.epoch, self.sale.granted) == (mark.epoch, mark.granted);
        is_of_it.then(|| Self { sale: self.sale.clone(), sold_out: Some(mark), remaining: Some(0) })
    }
}
