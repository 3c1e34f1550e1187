//! Orders whose deadline passed unpaid (L2): sale by sale along an index, each batch one transaction of one sale with one grant.
//!
//! Input: the clock of the database. Output: EXPIRED orders, units back in `sales.stock`, a grant `return-<lowest request id>`, an
//! event an order. An order expires once, so a batch's name is its own for ever. Any number of processes may work at the same time:
//! the condition of the UPDATE decides, and a payment that was first keeps its order.
//!
//! A batch is written as it was read by [`super::overdue()`], without reading its orders again: nothing of them that the events tell can
//! change but `version`, which is part of the condition. If one of them has moved meanwhile, nothing is written, and the batch is
//! read again under locks.

use super::super::fault::{DbError, Halt};
use super::super::pool::{Conn, Db};
use super::super::schema::orders;
use super::events;
use super::overdue::OverdueOrder;
use super::shared_events::{ChangedOrder, SharedChange};
use super::units::{ReturnedUnits, give_back};
use super::{OrderTerms, movable, retried, terms_of};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::{OrderEvent, OrderState, ReturnedPurchase};
use crate::domain::webhook::WebhookSubscriptions;
use crate::faults::{crash_point, left_out};
use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};

/// Most orders of one transaction: bounds its locks and what a replica has to follow.
pub const BATCH_MAX: u16 = 1000;

/// What an event tells of an order that expires.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
#[diesel(table_name = orders)]
pub(super) struct DueOrder {
    pub(super) request_id: RequestId,
    user_id: UserId,
    quantity: u32,
    amount_cents: i64,
    version: u32,
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

/// Expires those of these orders of one sale that are still unpaid and overdue. `None`: none was. Repeating is safe.
///
/// # Errors
/// [`DbError`]; after [`DbError::Unavailable`] and [`DbError::Timeout`] it is unknown, and a repeat finds out.
pub async fn expire(db: &Db, sale_id: &SaleId, chosen: Vec<OverdueOrder>) -> Result<Option<ExpiredBatch>, DbError> {
    let mut due: Vec<DueOrder> = chosen.into_iter().map(|order| order.due).collect();
    due.sort_unstable_by_key(|order| order.request_id);
    due.truncate(BATCH_MAX.into());
    crash_point!(ExpiryChosen);
    let batch = retried!(db.run("orders_expire", async |conn| {
        let as_read = conn.transaction(async |conn| as_it_was_read(conn, sale_id, &due, db.webhooks()).await).await;
        match as_read {
            Err(Halt::Because(Moved)) => {
                conn.transaction(async |conn| under_locks(conn, sale_id, &due, db.webhooks()).await).await
            }
            Err(Halt::Db(error)) => Err(error),
            Ok(batch) => Ok(batch),
        }
    }))?;
    crash_point!(ExpiryCommitted);
    Ok(batch)
}

/// An order of the batch is not as it was read.
struct Moved;

/// The whole batch, or nothing.
async fn as_it_was_read(
    conn: &mut Conn,
    sale_id: &SaleId,
    due: &[DueOrder],
    webhooks: &WebhookSubscriptions,
) -> Result<Option<ExpiredBatch>, Halt<Moved>> {
    let Some(DueOrder { version, .. }) = due.first() else { return Ok(None) };
    if due.iter().any(|order| order.version != *version) {
        return Err(Halt::Because(Moved));
    }
    let terms = terms_of(conn, sale_id.as_str().as_bytes()).await?;
    if mark(conn, due, Some(*version), terms.limit_returns).await? != due.len() && !left_out!(ExpiryCondition) {
        return Err(Halt::Because(Moved));
    }
    Ok(write(conn, sale_id, due, &terms, webhooks).await?)
}

/// Those of the batch that are still due. The index is forced: along another one it would lock what is not asked for.
async fn under_locks(
    conn: &mut Conn,
    sale_id: &SaleId,
    asked: &[DueOrder],
    webhooks: &WebhookSubscriptions,
) -> Result<Option<ExpiredBatch>, DbError> {
    let query = format!(
        "/* order_life::still_due */ SELECT request_id, user_id, quantity, amount_cents, version FROM orders FORCE INDEX (PRIMARY) \
         WHERE request_id IN ({}) AND {} ORDER BY request_id FOR UPDATE",
        listed(asked),
        due_condition()
    );
    let due: Vec<DueOrder> = diesel::sql_query(query).load(conn).await?;
    if due.len() < asked.len() {
        close_cancelled(conn, asked).await?;
    }
    let terms = terms_of(conn, sale_id.as_str().as_bytes()).await?;
    if !due.is_empty() {
        let matched = mark(conn, &due, None, terms.limit_returns).await?;
        if matched != due.len() {
            return Err(DbError::Other(format!(
                "{matched} orders of {sale_id} expired where {} were locked",
                due.len()
            )));
        }
    }
    write(conn, sale_id, &due, &terms, webhooks).await
}

/// The conditional UPDATE. Returns how many orders met the condition. By the primary key, so that rows are locked in its order.
async fn mark(conn: &mut Conn, due: &[DueOrder], version: Option<u32>, limit_returns: bool) -> Result<usize, DbError> {
    let limit = if limit_returns { ", limit_returned = 1, one_per_user_id = NULL" } else { "" };
    let as_read = version.map(|version| format!(" AND version = {version}")).unwrap_or_default();
    let condition = match left_out!(ExpiryCondition) {
        true => String::new(),
        false => format!(" AND {}{as_read}", due_condition()),
    };
    let set = format!(
        "/* order_life::expire */ UPDATE orders FORCE INDEX (PRIMARY) SET state = 'EXPIRED', state_at = NOW(3), \
         version = version + 1{limit} WHERE request_id IN ({}){condition}",
        listed(due)
    );
    Ok(diesel::sql_query(set).execute(conn).await?)
}

/// What makes an order expire, in SQL.
fn due_condition() -> String {
    format!("state IN {} AND expire_at <= NOW(3) AND cancelled_at IS NULL", movable(OrderEvent::DeadlinePassed))
}

/// A build that knew no states cancels an order beside this one: it gives the unit back and leaves the state. The state follows,
/// and nothing else.
async fn close_cancelled(conn: &mut Conn, due: &[DueOrder]) -> Result<(), DbError> {
    let set = format!(
        "/* order_life::close_cancelled */ UPDATE orders FORCE INDEX (PRIMARY) SET state = 'CANCELLED', state_at = cancelled_at \
         WHERE request_id IN ({}) AND state = 'UNPAID' AND cancelled_at IS NOT NULL",
        listed(due)
    );
    diesel::sql_query(set).execute(conn).await?;
    Ok(())
}

fn listed(due: &[DueOrder]) -> String {
    let ids: Vec<String> = due.iter().map(|order| order.request_id.get().to_string()).collect();
    ids.join(",")
}

/// What follows from orders that are expired now.
async fn write(
    conn: &mut Conn,
    sale_id: &SaleId,
    orders: &[DueOrder],
    terms: &OrderTerms,
    webhooks: &WebhookSubscriptions,
) -> Result<Option<ExpiredBatch>, DbError> {
    let Some(DueOrder { request_id: lowest, .. }) = orders.first() else { return Ok(None) };
    let changed: Vec<ChangedOrder<'_>> = orders
        .iter()
        .map(|order| ChangedOrder {
            request_id: order.request_id,
            user_id: &order.user_id,
            quantity: order.quantity,
            amount_cents: order.amount_cents,
            version: order.version + 1,
        })
        .collect();
    let change = SharedChange { sale_id, currency: &terms.currency, to: OrderState::Expired, orders: changed };
    events::write_shared(conn, &change, webhooks).await?;
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
