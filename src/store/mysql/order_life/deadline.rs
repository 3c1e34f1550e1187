//! Orders whose deadline passed unpaid (L2): in batches along an index, each batch one transaction of one sale with one grant.
//!
//! Input: the clock of the database. Output: EXPIRED orders, units back in `sales.stock`, a grant `return-<lowest request id>`, an
//! event an order. An order expires once, so a batch's name is its own for ever. Any number of processes may work at the same time:
//! the condition of the UPDATE decides, and a payment that was first keeps its order.

use super::super::codes::read_sale_id;
use super::super::columns::MaybeOrderState;
use super::super::fault::DbError;
use super::super::pool::{Conn, Db};
use super::super::schema::orders;
use super::events::{self, NewOrderEvent};
use super::units::{ReturnedUnits, give_back};
use super::{LockedOrder, OrderTerms, movable, retried, terms_of};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::{OrderEvent, OrderState, ReturnedPurchase};
use crate::domain::webhook::WebhookSubscriptions;
use crate::faults::{crash_point, left_out};
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable};
use diesel_async::{AsyncConnection, RunQueryDsl};

/// Most orders of one transaction: bounds its locks and what a replica has to follow.
pub const BATCH_MAX: u16 = 1000;

/// An order whose deadline has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueOrder {
    /// The sale.
    pub sale_id: SaleId,
    /// The request that became the order.
    pub request_id: RequestId,
    expire_at: NaiveDateTime,
}

/// Orders of one sale that expired together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredBatch {
    /// Number of orders, at least 1.
    pub orders: usize,
    /// Their units.
    pub units: i64,
    /// The grant that carries them to Redis.
    pub grant_id: String,
}

/// The first overdue orders behind `after`, by deadline; at most `limit`, which is what it reads, however many there are.
pub async fn overdue(db: &Db, after: Option<&OverdueOrder>, limit: u16) -> Result<Vec<OverdueOrder>, DbError> {
    let rows: Vec<(Vec<u8>, RequestId, NaiveDateTime)> = db
        .run("orders_overdue", async |conn| {
            let mut due = orders::table
                .filter(orders::state.eq(OrderState::Unpaid.code()))
                .filter(orders::expire_at.le(diesel::dsl::sql("NOW(3)")))
                .into_boxed();
            if let Some(OverdueOrder { request_id, expire_at, .. }) = after {
                // Two ranges of one index. Any number of orders may have the same deadline.
                let same = orders::expire_at.eq(expire_at).and(orders::request_id.gt(request_id.get()));
                due = due.filter(orders::expire_at.gt(expire_at).or(same).assume_not_null());
            }
            let columns = (orders::sale_id, orders::request_id, orders::expire_at.assume_not_null());
            let first = due.order((orders::expire_at, orders::request_id)).limit(limit.into());
            Ok(first.select(columns).load(conn).await?)
        })
        .await?;
    let order = |(sale, request_id, expire_at): (Vec<u8>, _, _)| {
        Ok(OverdueOrder { sale_id: read_sale_id(&sale)?, request_id, expire_at })
    };
    rows.into_iter().map(order).collect()
}

/// How long the oldest overdue order has been so, milliseconds; 0 when there is none.
pub async fn overdue_age_ms(db: &Db) -> Result<i64, DbError> {
    #[derive(QueryableByName)]
    struct OverdueAge {
        #[diesel(sql_type = Nullable<BigInt>)]
        ms: Option<i64>,
    }
    let query = "/* order_life::overdue_age */ SELECT CAST(GREATEST(0, TIMESTAMPDIFF(MICROSECOND, MIN(expire_at), NOW(3)) DIV 1000) \
                 AS SIGNED) AS ms FROM orders WHERE state = 'UNPAID'";
    let OverdueAge { ms } =
        db.run("orders_overdue_age", async |conn| Ok(diesel::sql_query(query).get_result(conn).await?)).await?;
    Ok(ms.unwrap_or(0))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = orders)]
struct DueRow {
    request_id: RequestId,
    user_id: UserId,
    quantity: u32,
    amount_cents: i64,
    #[diesel(deserialize_as = MaybeOrderState)]
    state: Option<OrderState>,
    version: u32,
}

/// Expires those of a sale's orders that are still unpaid and overdue. `None`: none was. Repeating is safe.
///
/// # Errors
/// [`DbError`]; after [`DbError::Unavailable`] and [`DbError::Timeout`] it is unknown, and a repeat finds out.
pub async fn expire(db: &Db, sale_id: &SaleId, request_ids: &[RequestId]) -> Result<Option<ExpiredBatch>, DbError> {
    let mut ids: Vec<u64> = request_ids.iter().map(|id| id.get()).collect();
    ids.sort_unstable();
    ids.truncate(BATCH_MAX.into());
    crash_point!(ExpiryChosen);
    let batch = retried!(db.run("orders_expire", async |conn| {
        conn.transaction(async |conn| in_transaction(conn, sale_id, &ids, db.webhooks()).await).await
    }))?;
    crash_point!(ExpiryCommitted);
    Ok(batch)
}

async fn in_transaction(
    conn: &mut Conn,
    sale_id: &SaleId,
    ids: &[u64],
    webhooks: &WebhookSubscriptions,
) -> Result<Option<ExpiredBatch>, DbError> {
    let sale = sale_id.as_str().as_bytes();
    let chosen = orders::table.filter(orders::request_id.eq_any(ids)).filter(orders::sale_id.eq(sale));
    let rows: Vec<DueRow> = match left_out!(ExpiryCondition) {
        true => chosen.order(orders::request_id).select(DueRow::as_select()).for_update().load(conn).await?,
        false => {
            let due = chosen
                .filter(orders::state.eq_any(OrderEvent::DeadlinePassed.movable_states()))
                .filter(orders::expire_at.le(diesel::dsl::sql("NOW(3)")));
            due.order(orders::request_id).select(DueRow::as_select()).for_update().load(conn).await?
        }
    };
    let Some(lowest) = rows.as_slice().first().map(|row| row.request_id) else { return Ok(None) };
    let terms = terms_of(conn, sale).await?;
    let due: Vec<u64> = rows.iter().map(|row| row.request_id.get()).collect();
    let matched = mark(conn, &due, terms.limit_returns).await?;
    if matched != due.len() && !left_out!(ExpiryCondition) {
        return Err(DbError::Other(format!("{matched} orders of {sale_id} expired where {} were locked", due.len())));
    }
    let orders = rows.into_iter().map(|row| locked(row, sale_id, &terms)).collect::<Vec<_>>();
    let told: Vec<NewOrderEvent> =
        orders.iter().map(|order| NewOrderEvent::of_state(order, OrderState::Expired, order.version + 1)).collect();
    events::write(conn, &told, webhooks).await?;
    let limits: Vec<ReturnedPurchase> = match terms.limit_returns {
        true => orders.iter().map(|o| ReturnedPurchase(o.user_id.clone(), o.request_id, o.quantity)).collect(),
        false => Vec::new(),
    };
    let units = orders.iter().map(|order| i64::from(order.quantity)).sum();
    let grant_id = format!("return-{lowest}");
    let returned = ReturnedUnits {
        sale_id,
        units,
        kind: "expire",
        reference: lowest.to_string(),
        grant_id: grant_id.clone(),
        limits: &limits,
        counted_by_buyer: terms.limited,
    };
    give_back(conn, &returned).await?;
    crash_point!(ExpiryWritten);
    Ok(Some(ExpiredBatch { orders: orders.len(), units, grant_id }))
}

/// The conditional UPDATE; the rows are locked and were read with the same condition.
async fn mark(conn: &mut Conn, due: &[u64], limit_returns: bool) -> Result<usize, DbError> {
    let ids: Vec<String> = due.iter().map(u64::to_string).collect();
    let limit = if limit_returns { ", limit_returned = 1, one_per_user_id = NULL" } else { "" };
    let condition = match left_out!(ExpiryCondition) {
        true => String::new(),
        false => format!(" AND state IN {} AND expire_at <= NOW(3)", movable(OrderEvent::DeadlinePassed)),
    };
    let set = format!(
        "/* order_life::expire */ UPDATE orders SET state = 'EXPIRED', state_at = NOW(3), version = version + 1{limit} \
         WHERE request_id IN ({}){condition}",
        ids.join(",")
    );
    Ok(diesel::sql_query(set).execute(conn).await?)
}

fn locked(row: DueRow, sale_id: &SaleId, terms: &OrderTerms) -> LockedOrder {
    LockedOrder {
        request_id: row.request_id,
        sale_id: sale_id.clone(),
        user_id: row.user_id,
        quantity: row.quantity,
        amount_cents: row.amount_cents,
        state: row.state,
        cancelled: false,
        version: row.version,
        currency: terms.currency.clone(),
        limit_returns: terms.limit_returns,
        limited: terms.limited,
    }
}
