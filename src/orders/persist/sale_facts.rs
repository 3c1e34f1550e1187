//! The facts of a sale that never change after its start and that each order needs: price, purchase policy, payment terms. A cache
//! of the process, for sales that have started.

use crate::domain::ids::SaleId;
use crate::domain::message::UnitPrice;
use crate::domain::order_life::PaymentTerms;
use crate::domain::policy::PurchasePolicy;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most sales in the cache; no installation runs that many at a time. A full cache is emptied.
const SALES_MAX: usize = 4096;

/// The part of a sale that does not change after its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SaleFacts {
    pub unit_price: UnitPrice,
    pub policy: PurchasePolicy,
    pub payment: Option<PaymentTerms>,
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
        sale_ids.iter().filter_map(|sale_id| Some(((*sale_id).clone(), *cache.get(*sale_id)?))).collect()
    }

    pub(crate) fn extend(&self, facts: &HashMap<SaleId, SaleFacts>) {
        let mut cache = self.lock();
        if cache.len() + facts.len() > SALES_MAX {
            cache.clear();
        }
        cache.extend(facts.iter().map(|(sale_id, facts)| (sale_id.clone(), *facts)));
    }
}
