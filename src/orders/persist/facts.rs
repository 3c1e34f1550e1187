//! The facts of the sales of a group: from the cache, else from `sales`.

use crate::domain::ids::SaleId;
use crate::domain::message::UnitPrice;
use crate::domain::order_life::PaymentTerms;
use crate::domain::policy::PurchasePolicy;
use crate::orders::persist::Persister;
use crate::orders::persist::numbers::ClosedNumbers;
use crate::orders::persist::sale_facts::SaleFacts;
use crate::sales::rows::drops;
use crate::store::mysql::codes::read_sale_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::sales;
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
    closings: u32,
    drop_id: Option<Vec<u8>>,
}

impl Persister {
    /// The facts of those of `sale_ids` that exist.
    pub(crate) async fn facts_of(&self, sale_ids: &[&SaleId]) -> Result<HashMap<SaleId, SaleFacts>, DbError> {
        let mut facts = self.facts.get(sale_ids);
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
        let (rows, of_drops, mut closed) = self
            .db
            .run("sale_facts", async |conn| {
                let query = sales::table.filter(sales::sale_id.eq_any(&missing));
                let now = diesel::dsl::sql::<Datetime>("NOW(3)");
                let query = query.select((FactsRow::as_select(), sales::starts_at, now));
                let rows: Vec<(FactsRow, NaiveDateTime, NaiveDateTime)> = query.load(conn).await?;
                let of_drops = drops::of(conn, rows.iter().filter_map(|(row, ..)| row.drop_id.as_deref())).await?;
                Ok((rows, of_drops, ClosedNumbers::of(conn, &missing).await?))
            })
            .await?;
        // Before its start a sale can be edited.
        let mut settled = HashMap::with_capacity(rows.len());
        for (row, starts_at, now) in rows {
            let payment = PaymentTerms::of_columns(row.pay_within_s, row.pay_grace_s, row.limit_returns);
            let policy = PurchasePolicy::from_limit(row.per_user_limit);
            let unit_price = UnitPrice::new(row.price_cents, &row.currency);
            let sale_id = read_sale_id(&row.sale_id)?;
            let closed = closed.remove(&sale_id).unwrap_or_default().into();
            let in_drop = row.drop_id.map(|drop_id| of_drops.get(&drop_id, &sale_id)).transpose()?;
            let found = SaleFacts { unit_price, policy, payment, in_drop, closings: row.closings, closed };
            if starts_at <= now {
                settled.insert(sale_id.clone(), found.clone());
            }
            facts.insert(sale_id, found);
        }
        self.facts.extend(&settled);
        Ok(facts)
    }

    /// What a unit costs in these sales; of a sale that is not there nothing. From the cache, where one of their orders was persisted just
    /// now.
    pub(crate) async fn unit_prices(&self, sale_ids: &[&SaleId]) -> Result<HashMap<SaleId, UnitPrice>, DbError> {
        let facts = self.facts_of(sale_ids).await?;
        Ok(facts.into_iter().map(|(sale_id, facts)| (sale_id, facts.unit_price)).collect())
    }
}
