//! What landing must know of a sale and what never changes: price and limit. Cached, because each group would ask again.

use super::codes::read_sale_id;
use super::fault::DbError;
use super::pool::Db;
use super::schema::sales;
use crate::domain::ids::SaleId;
use crate::domain::policy::PurchasePolicy;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sales remembered at once; far more than any installation runs at a time. Beyond it the cache starts anew.
const SALES_MAX: usize = 4096;

/// The unchanging part of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub price_cents: i64,
    pub policy: PurchasePolicy,
}

/// Facts by sale. Unknown sales are not remembered: they may be created any moment.
#[derive(Debug, Default)]
pub(super) struct FactsCache(Mutex<HashMap<SaleId, Facts>>);

impl FactsCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<SaleId, Facts>> {
        // A panic elsewhere leaves the map whole: every change is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The facts of those of `sale_ids` that exist.
pub(super) async fn facts_of(db: &Db, sale_ids: &[&SaleId]) -> Result<HashMap<SaleId, Facts>, DbError> {
    let mut known: HashMap<SaleId, Facts> = HashMap::new();
    let mut missing: Vec<&[u8]> = Vec::new();
    {
        let cache = db.facts().lock();
        for sale_id in sale_ids {
            match cache.get(*sale_id) {
                Some(facts) => drop(known.insert((*sale_id).clone(), *facts)),
                None => missing.push(sale_id.as_str().as_bytes()),
            }
        }
    }
    if missing.is_empty() {
        return Ok(known);
    }
    missing.sort_unstable();
    missing.dedup();
    let rows: Vec<(Vec<u8>, i64, Option<u32>)> = db
        .run("sale_facts", async |conn| {
            let query = sales::table.filter(sales::sale_id.eq_any(&missing));
            Ok(query.select((sales::sale_id, sales::price_cents, sales::per_user_limit)).load(conn).await?)
        })
        .await?;
    for (sale_id, price_cents, limit) in rows {
        known.insert(read_sale_id(&sale_id)?, Facts { price_cents, policy: PurchasePolicy::from_limit(limit) });
    }
    let mut cache = db.facts().lock();
    if cache.len() + known.len() > SALES_MAX {
        cache.clear();
    }
    cache.extend(known.iter().map(|(sale_id, facts)| (sale_id.clone(), *facts)));
    drop(cache);
    Ok(known)
}
