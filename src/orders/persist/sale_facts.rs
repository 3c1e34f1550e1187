//! The facts of a sale that each order needs. Price, purchase policy and payment terms never change after its start; which of its
//! numbers are closed does, and the transaction finds out ([`super::numbers`]). A cache of the process, for sales that have started.

use crate::domain::drops::SalesDrop;
use crate::domain::ids::SaleId;
use crate::domain::message::UnitPrice;
use crate::domain::order_life::PaymentTerms;
use crate::domain::policy::{PurchasePolicy, Quantity};
use crate::orders::persist::numbers::ClosedNumbers;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most sales in the cache; no installation runs that many at a time. A full cache is emptied.
const SALES_MAX: usize = 4096;

/// What of a sale its orders need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SaleFacts {
    pub unit_price: UnitPrice,
    pub policy: PurchasePolicy,
    pub payment: Option<PaymentTerms>,
    /// The drop whose limit its orders count against, too.
    pub(crate) in_drop: Option<Arc<SalesDrop>>,
    /// How often numbers of it were closed when these were read.
    pub(crate) closings: u32,
    pub(crate) closed: Arc<ClosedNumbers>,
}

impl SaleFacts {
    /// Whether a buyer who has nothing may have this many units, here and in the drop.
    pub(crate) fn allow(&self, quantity: Quantity) -> bool {
        let limit_of_drop = self.in_drop.as_ref().and_then(|of| of.limit);
        self.policy.allows(0, quantity) && limit_of_drop.is_none_or(|limit| quantity.get() <= limit.get())
    }
}

/// Facts by sale. Unknown sales are not remembered: they may be created at any moment.
#[derive(Debug, Default)]
pub(crate) struct SaleFactsCache(Mutex<HashMap<SaleId, SaleFacts>>);

impl SaleFactsCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<SaleId, SaleFacts>> {
        // A panic elsewhere leaves the map whole: every change is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts of those of `sale_ids` that are in the cache.
    pub(crate) fn get(&self, sale_ids: &[&SaleId]) -> HashMap<SaleId, SaleFacts> {
        let cache = self.lock();
        sale_ids.iter().filter_map(|sale_id| Some(((*sale_id).clone(), cache.get(*sale_id)?.clone()))).collect()
    }

    pub(crate) fn extend(&self, facts: &HashMap<SaleId, SaleFacts>) {
        let mut cache = self.lock();
        if cache.len() + facts.len() > SALES_MAX {
            cache.clear();
        }
        cache.extend(facts.iter().map(|(sale_id, facts)| (sale_id.clone(), facts.clone())));
    }

    /// These have changed: they are read again.
    pub(crate) fn forget<'a>(&self, sale_ids: impl IntoIterator<Item = &'a SaleId>) {
        let mut cache = self.lock();
        for sale_id in sale_ids {
            cache.remove(sale_id);
        }
    }
}
