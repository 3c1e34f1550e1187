//! The facts of the sales of a group: from the cache, else from `sales`.

use super::super::codes::read_sale_id;
use super::super::fault::DbError;
use super::super::pool::Db;
use super::super::sale_facts::SaleFacts;
use super::super::schema::sales;
use crate::domain::ids::SaleId;
use crate::domain::policy::PurchasePolicy;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// The facts of those of `sale_ids` that exist.
pub(super) async fn facts_of(db: &Db, sale_ids: &[&SaleId]) -> Result<HashMap<SaleId, SaleFacts>, DbError> {
    let mut facts = db.sale_facts().get(sale_ids);
    let mut missing: Vec<&[u8]> = sale_ids
        .iter()
        .filter(|sale_id| !facts.contains_key(**sale_id))
        .map(|sale_id| sale_id.as_str().as_bytes())
        .collect();
    if missing.is_empty() {
        return Ok(facts);
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
        facts.insert(read_sale_id(&sale_id)?, SaleFacts { price_cents, policy: PurchasePolicy::from_limit(limit) });
    }
    db.sale_facts().extend(&facts);
    Ok(facts)
}
