//! Orders whose deadline has passed, read along an index: the sales that have some, and those of one sale. Reads only.
//!
//! Input: the clock of the database. Output: what [`OrderRows::expire`] may try; it reads again, so what moved meanwhile does no harm.

use crate::domain::ids::{RequestId, SaleId};
use crate::orders::rows::handles::OrderRows;
use crate::store::mysql::codes::read_sale_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{orders, sales};
use crate::store::mysql::values::literal;
use chrono::NaiveDateTime;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Unsigned};
use diesel_async::RunQueryDsl;

/// A sale with orders whose deadline has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueSale {
    /// The sale.
    pub sale_id: SaleId,
    /// How long its oldest one has been so, milliseconds.
    pub overdue_ms: i64,
}

/// An order whose deadline has passed, as it was read: its entry in the index, no more, because most of what is read may be held or
/// left aside. [`OrderRows::expire`] reads the row.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
#[diesel(table_name = orders)]
pub struct OverdueOrder {
    /// The request that became the order.
    pub request_id: RequestId,
    #[diesel(sql_type = Datetime)]
    expire_at: NaiveDateTime,
}

#[cfg(test)]
impl OverdueOrder {
    /// For tests about batches, without a deadline that means something.
    pub(crate) fn of(request_id: RequestId) -> Self {
        Self { request_id, expire_at: NaiveDateTime::default() }
    }
}

/// Most sales that one call of [`overdue_sales`] names.
const SALES_MAX: usize = 1000;

/// Sales that one statement asks about.
const SALES_ASKED: u16 = 100;

impl OrderRows {
    /// The sales with overdue orders, the longest overdue first, at most a thousand. Reads one entry of the index for each sale, whether
    /// or not it has a payment step: an order keeps its deadline, whatever becomes of the terms of its sale.
    ///
    /// Each sale is named: where a subquery refers to `sales`, one server or the other (MySQL 9.7, MariaDB 10.11) reads all unpaid orders
    /// of the sale, in whatever order they are asked for.
    pub async fn overdue_sales(&self) -> Result<Vec<OverdueSale>, DbError> {
        #[derive(QueryableByName)]
        struct Listed {
            #[diesel(sql_type = Binary)]
            sale_id: Vec<u8>,
            #[diesel(sql_type = BigInt)]
            overdue_ms: i64,
        }
        let oldest_of = |sale: &Vec<u8>| {
            format!(
                "(SELECT o.sale_id, CAST(TIMESTAMPDIFF(MICROSECOND, o.expire_at, NOW(3)) DIV 1000 AS SIGNED) AS overdue_ms \
             FROM orders o FORCE INDEX (ix_orders_deadline) WHERE o.sale_id = {} AND o.state = 'UNPAID' AND o.expire_at <= NOW(3) \
             ORDER BY o.expire_at LIMIT 1)",
                literal(sale)
            )
        };
        let mut listed: Vec<Listed> = self
            .db
            .run("orders_overdue_sales", async |conn| {
                let mut listed = Vec::new();
                let mut after = Vec::new();
                loop {
                    let next =
                        sales::table.filter(sales::sale_id.gt(&after)).order(sales::sale_id).limit(SALES_ASKED.into());
                    let asked: Vec<Vec<u8>> = next.select(sales::sale_id).load(conn).await?;
                    let Some(last) = asked.last() else { return Ok(listed) };
                    after.clone_from(last);
                    let each: Vec<String> = asked.iter().map(oldest_of).collect();
                    let text = format!("/* orders::overdue_sales */ {}", each.join(" UNION ALL "));
                    listed.extend(diesel::sql_query(text).load(conn).await?);
                    if asked.len() < usize::from(SALES_ASKED) {
                        return Ok(listed);
                    }
                }
            })
            .await?;
        listed.sort_by_key(|sale: &Listed| std::cmp::Reverse(sale.overdue_ms));
        listed.truncate(SALES_MAX);
        let sale = |Listed { sale_id, overdue_ms }| Ok(OverdueSale { sale_id: read_sale_id(&sale_id)?, overdue_ms });
        listed.into_iter().map(sale).collect()
    }

    /// The first overdue orders of a sale behind `after`, by deadline; at most `limit`, which is what it reads, however many there are.
    pub async fn overdue(
        &self,
        sale_id: &SaleId,
        after: Option<&OverdueOrder>,
        limit: u16,
    ) -> Result<Vec<OverdueOrder>, DbError> {
        // Two ranges of one index. Any number of orders may have the same deadline.
        let behind = if after.is_some() { "AND (expire_at > ? OR (expire_at = ? AND request_id > ?)) " } else { "" };
        let text = format!(
            "/* orders::overdue */ SELECT expire_at, request_id FROM orders FORCE INDEX (ix_orders_deadline) \
         WHERE sale_id = ? AND state = 'UNPAID' AND expire_at <= NOW(3) {behind}\
         ORDER BY expire_at, request_id LIMIT {limit}"
        );
        self.db
            .run("orders_overdue", async |conn| {
                let mut query = diesel::sql_query(&text).into_boxed::<Mysql>();
                query = query.bind::<Binary, _>(sale_id.as_str().as_bytes());
                if let Some(OverdueOrder { request_id, expire_at, .. }) = after {
                    query = query.bind::<Datetime, _>(expire_at).bind::<Datetime, _>(expire_at);
                    query = query.bind::<Unsigned<BigInt>, _>(request_id.get());
                }
                Ok(query.load(conn).await?)
            })
            .await
    }
}
