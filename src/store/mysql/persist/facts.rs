//! The facts of the sales of a group: from the cache, else from `sales`.

use super::super::codes::read_sale_id;
use super::super::fault::DbError;
use super::super::pool::Db;
use super::super::sale_facts::{SaleFacts, payment_terms};
use super::super::schema::sales;
use crate::domain::ids::SaleId;
use crate::domain::message::UnitPrice;
use crate::domain::policy::PurchasePolicy;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::Datetime;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

#[derive(Queryable, Selectable)]
#[diesel(table_name = sales)]
struct FactsRow {
    sale_id: Vec<u8>,
    price_cents: i64,
    currency: String,
    per_user_limit: Option<u32>,
    pay_within_s: Option<u32>,
    pay_grace_s: u32,
    limit_returns: bool,
}

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
    let rows: Vec<(FactsRow, NaiveDateTime, NaiveDateTime)> = db
        .run("sale_facts", async |conn| {
            let query = sales::table.filter(sales::sale_id.eq_any(&missing));
            let now = diesel::dsl::sql::<Datetime>("NOW(3)");
            Ok(query.select((FactsRow::as_select(), sales::starts_at, now)).load(conn).await?)
        })
        .await?;
    // Before its start a sale can be edited.
    let mut settled = HashMap::with_capacity(rows.len());
    for (row, starts_at, now) in rows {
        let payment = payment_terms(row.pay_within_s, row.pay_grace_s, row.limit_returns);
        let policy = PurchasePolicy::from_limit(row.per_user_limit);
        let unit_price = UnitPrice::new(row.price_cents, &row.currency);
        let (sale_id, found) = (read_sale_id(&row.sale_id)?, SaleFacts { unit_price, policy, payment });
        if starts_at <= now {
            settled.insert(sale_id.clone(), found);
        }
        facts.insert(sale_id, found);
    }
    db.sale_facts().extend(&settled);
    Ok(facts)
}

/// What a unit costs in these sales; of a sale that is not there nothing. From the cache, where one of their orders was persisted just
/// now.
pub async fn unit_prices(db: &Db, sale_ids: &[&SaleId]) -> Result<HashMap<SaleId, UnitPrice>, DbError> {
    let facts = facts_of(db, sale_ids).await?;
    Ok(facts.into_iter().map(|(sale_id, facts)| (sale_id, facts.unit_price)).collect())
}
