//! Orders whose deadline passed unpaid (L2): sale by sale along an index, each batch one transaction of one sale with one grant.
//!
//! Input: the clock of the database. Output: EXPIRED orders, units back in `sales.stock`, a grant `return-<lowest request id>`, an
//! event an order. An order expires once, so a batch's name is its own for ever. Any number of processes may work at the same time:
//! the condition of the UPDATE decides, and a payment that was first keeps its order.
//!
//! The orders of a batch are read again under locks, which pass over those that another transaction has: it holds up no neighbour.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::order_life::{OrderEvent, OrderState, ReturnedPurchase};
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::published::PublishedEvent;
use crate::events::rows::order as events;
use crate::faults::{crash_point, left_out};
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::locked::{movable, retried};
use crate::orders::rows::overdue::OverdueOrder;
use crate::orders::rows::row::{COLUMNS, OrderRow, OrderTerms, terms_of_sale};
use crate::orders::rows::units::{ReturnedUnits, give_back};
use crate::runtime::now_ms;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::{commit_half, transaction};
use crate::trace_points::trace_point;
use diesel_async::RunQueryDsl;

/// Most orders of one transaction: bounds its locks and what a replica has to follow.
pub const BATCH_MAX: u16 = 1000;

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

impl OrderRows {
    /// Expires those of these orders of one sale that are still unpaid and overdue. `None`: none was. Repeating is safe.
    ///
    /// # Errors
    /// [`DbError`]; after [`DbError::Unavailable`] and [`DbError::Timeout`] it is unknown, and a repeat finds out.
    pub async fn expire(&self, sale_id: &SaleId, chosen: Vec<OverdueOrder>) -> Result<Option<ExpiredBatch>, DbError> {
        let mut asked: Vec<RequestId> = chosen.into_iter().map(|order| order.request_id).collect();
        asked.sort_unstable();
        asked.truncate(BATCH_MAX.into());
        crash_point!(ExpiryChosen);
        let webhooks = self.subscriptions.wanted().await?;
        let batch = retried!(self.db.run("orders_expire", async |conn| {
            transaction(conn, async |conn| in_transaction(conn, sale_id, &asked, &webhooks).await).await
        }))?;
        crash_point!(ExpiryCommitted);
        if let Some(batch) = &batch {
            trace_point!(OrderChanged { grant: batch.grant_id, event: "DeadlinePassed" });
        }
        Ok(batch)
    }
}

/// Those of the batch that are still due and that no other session holds. All that changes is locked by the one read, by ascending id, and
/// what another transaction holds is waited for by none of it. The index is forced: along another one it would lock what is not asked
/// for.
async fn in_transaction(
    conn: &mut Conn,
    sale_id: &SaleId,
    asked: &[RequestId],
    webhooks: &WebhookSubscriptions,
) -> Result<Option<ExpiredBatch>, DbError> {
    if asked.is_empty() {
        return Ok(None);
    }
    let query = format!(
        "/* orders::still_due */ SELECT {COLUMNS} FROM orders o FORCE INDEX (PRIMARY) \
         WHERE request_id IN ({}) AND ({} OR ({CANCELLED})) ORDER BY request_id FOR UPDATE{}",
        listed(asked.iter()),
        due_condition(),
        if left_out!(ExpiryCondition) { "" } else { " SKIP LOCKED" }
    );
    let locked: Vec<OrderRow> = diesel::sql_query(query).load(conn).await?;
    let (cancelled, due): (Vec<_>, Vec<_>) = locked.into_iter().partition(OrderRow::lacks_its_state);
    close_cancelled(conn, &cancelled).await?;
    let terms = terms_of_sale(conn, sale_id).await?;
    if !due.is_empty() {
        let matched = mark(conn, &due, terms.limit_returns).await?;
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
async fn mark(conn: &mut Conn, due: &[OrderRow], limit_returns: bool) -> Result<usize, DbError> {
    let limit = if limit_returns { ", limit_returned = 1, one_per_user_id = NULL" } else { "" };
    let set = format!(
        "/* orders::expire */ UPDATE orders FORCE INDEX (PRIMARY) SET state = 'EXPIRED', state_at = NOW(3), \
         version = version + 1{limit} WHERE request_id IN ({}) AND {}",
        listed(due.iter().map(|order| &order.request_id)),
        due_condition()
    );
    Ok(diesel::sql_query(set).execute(conn).await?)
}

/// What makes an order expire, in SQL.
fn due_condition() -> String {
    if left_out!(ExpiryCondition) {
        return "TRUE".to_owned();
    }
    let state = format!("state IN {} AND cancelled_at IS NULL", movable(OrderEvent::DeadlinePassed));
    let state = if left_out!(ExpiryState) { "TRUE" } else { &state };
    let deadline = if left_out!(ExpiryDeadline) { "TRUE" } else { "expire_at <= NOW(3)" };
    format!("{state} AND {deadline}")
}

/// An order that is cancelled and is still marked unpaid, in SQL.
const CANCELLED: &str = "state = 'UNPAID' AND cancelled_at IS NOT NULL";

/// A process of 0.2.0 or earlier has cancelled them (see `row`): the unit is back already. The state follows, and nothing else.
async fn close_cancelled(conn: &mut Conn, cancelled: &[OrderRow]) -> Result<(), DbError> {
    if cancelled.is_empty() {
        return Ok(());
    }
    let set = format!(
        "/* orders::close_cancelled */ UPDATE orders FORCE INDEX (PRIMARY) SET state = 'CANCELLED', state_at = cancelled_at \
         WHERE request_id IN ({}) AND {CANCELLED}",
        listed(cancelled.iter().map(|order| &order.request_id))
    );
    diesel::sql_query(set).execute(conn).await?;
    Ok(())
}

fn listed<'a>(ids: impl Iterator<Item = &'a RequestId>) -> String {
    let ids: Vec<String> = ids.map(|id| id.get().to_string()).collect();
    ids.join(",")
}

/// What follows from orders that are expired now.
async fn write(
    conn: &mut Conn,
    sale_id: &SaleId,
    orders: &[OrderRow],
    terms: &OrderTerms,
    webhooks: &WebhookSubscriptions,
) -> Result<Option<ExpiredBatch>, DbError> {
    let Some(OrderRow { request_id: lowest, .. }) = orders.first() else { return Ok(None) };
    let at = now_ms();
    let expired = orders.iter().map(|order| {
        let change = PublishedEvent::of_state(order.request_id, OrderState::Expired);
        order.event(change, terms, order.version + 1, at)
    });
    let expired: Vec<PublishedEvent<'_>> = expired.collect();
    events::write(conn, &expired, webhooks).await?;
    let limits: Vec<ReturnedPurchase> = match terms.limit_returns {
        true => orders.iter().map(OrderRow::returned).collect(),
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
        terms,
    };
    if left_out!(ReturnWithExpiry) {
        commit_half(conn).await?;
        crash_point!(ExpiryWritten);
    }
    give_back(conn, &returned).await?;
    for order in orders {
        trace_point!(OrderWritten { rid: order.request_id.to_string(), grant: grant_id, event: "DeadlinePassed" });
    }
    crash_point!(ExpiryWritten);
    Ok(Some(ExpiredBatch { orders: orders.len(), units, grant_id }))
}
