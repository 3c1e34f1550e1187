//! The orders of a sale by what became of them, and its payments, counted for the books (L6). All orders are counted in an
//! index, and the row of one is read for each payment that was applied to it: once in many rounds where a sale is large. In the others
//! those that wait for their payment are counted, and ended ones are those of the journal. Reads only.

use crate::domain::balance::LifeCounts;
use crate::domain::order_life::OrderState;
use crate::p5_reconcile::rows::books::journal::JournalSum;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use diesel::sql_types::{BigInt, Binary, Text};
use diesel_async::RunQueryDsl;

#[derive(diesel::QueryableByName)]
struct StateRow {
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = BigInt)]
    orders_count: i64,
    #[diesel(sql_type = BigInt)]
    units: i64,
}

#[derive(diesel::QueryableByName)]
struct PaymentsRow {
    #[diesel(sql_type = BigInt)]
    applied: i64,
    #[diesel(sql_type = BigInt)]
    unmatched: i64,
}

#[derive(diesel::QueryableByName)]
struct OrderUnits {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

/// The bounds instead of "=": with it MariaDB would read the whole table where most orders are of one sale (`books::series`).
const BY_STATE: &str = "/* books::life */ SELECT state, COUNT(*) AS orders_count, CAST(SUM(quantity) AS SIGNED) AS units \
    FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id >= ? AND sale_id <= ? AND state IS NOT NULL \
    GROUP BY sale_id, state";
const PAYMENTS: &str = "/* books::payments */ SELECT COUNT(*) AS applied, \
    CAST(COALESCE(SUM(o.request_id IS NULL), 0) AS SIGNED) AS unmatched \
    FROM payments p FORCE INDEX (ix_payments_sale) LEFT JOIN orders o FORCE INDEX (PRIMARY) \
    ON o.request_id = p.request_id AND o.sale_id = p.sale_id AND o.state = 'PAID' \
    WHERE p.sale_id = ? AND p.state = 'APPLIED'";
/// Cancelled by 0.2.0, which knew no states; such rows stay until their sale is archived.
const CANCELLED_WITHOUT_STATE: &str = "/* books::life_rows */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units \
    FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id = ? AND state IS NULL AND cancelled_at IS NOT NULL";

/// Those that wait for their payment: as many as can be unpaid at a time, however many were.
const UNPAID: &str = "/* books::unpaid */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units \
    FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id >= ? AND sale_id <= ? AND state >= 'UNPAID' AND state <= 'UNPAID'";

/// What can have changed since all of them were counted, as far as a decision depends on it: unpaid orders keep a sale open. What is
/// paid is as it was.
pub(crate) async fn since(
    conn: &mut Conn,
    sale: &[u8],
    counted: LifeCounts,
    journal: &JournalSum,
) -> Result<LifeCounts, DbError> {
    let unpaid: OrderUnits =
        diesel::sql_query(UNPAID).bind::<Binary, _>(sale).bind::<Binary, _>(sale).get_result(conn).await?;
    let JournalSum { cancelled, expired, .. } = *journal;
    Ok(LifeCounts { unpaid: unpaid.units, cancelled, expired, ..counted })
}

/// Counts them; `returned` are the units that the journal says came back. Only where those disagree, rows are read:
/// 0.2.0 may have cancelled an order without giving it a state.
pub(super) async fn by_state(conn: &mut Conn, sale: &[u8], returned: i64) -> Result<LifeCounts, DbError> {
    let rows: Vec<StateRow> =
        diesel::sql_query(BY_STATE).bind::<Binary, _>(sale).bind::<Binary, _>(sale).load(conn).await?;
    let mut counted = LifeCounts::default();
    for row in rows {
        match OrderState::from_code(&row.state) {
            Some(OrderState::Unpaid) => counted.unpaid = row.units,
            Some(OrderState::Paid) => (counted.paid, counted.paid_orders) = (row.units, row.orders_count),
            Some(OrderState::Expired) => counted.expired = row.units,
            Some(OrderState::Cancelled) => counted.cancelled = row.units,
            None => {
                return Err(DbError::Other(format!(
                    "orders.state holds a value this build does not know: {}",
                    row.state
                )));
            }
        }
    }
    if counted.expired + counted.cancelled != returned {
        let stateless: OrderUnits =
            diesel::sql_query(CANCELLED_WITHOUT_STATE).bind::<Binary, _>(sale).get_result(conn).await?;
        counted.cancelled += stateless.units;
    }
    let payments: PaymentsRow = diesel::sql_query(PAYMENTS).bind::<Binary, _>(sale).get_result(conn).await?;
    (counted.payments_applied, counted.payments_unmatched) = (payments.applied, payments.unmatched);
    Ok(counted)
}
