//! Cancelling an order: its units go back into `sales.stock`, and a grant carries them to Redis.
//!
//! One transaction, in the lock order of persisting (order, journal, the hot sale row, then the grant). A crash before COMMIT
//! leaves the order valid; after it, the grant is open until P5 or the api applies it.

use super::archive;
use super::codes::{GrantKind, cut, read_sale_id};
use super::fault::DbError;
use super::grants;
use super::pool::{Conn, Db};
use super::schema::{orders, sales, stock_flow};
use crate::domain::ids::{RequestId, SaleId};
use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};

/// What a cancellation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// The order was cancelled now, and this many units are unsold again.
    Now(SaleId, u32),
    /// It was cancelled before; nothing changed.
    Before(SaleId),
    /// There is no such order.
    NoOrder,
}

/// Cancels the order of a request. The buyer's quota stays used: Redis still knows him, and a limit that came back here
/// only would be refused there. Repeating is safe.
pub async fn cancel(db: &Db, request_id: RequestId, reason: &str, by: &str) -> Result<Cancelled, DbError> {
    let id = request_id.get();
    db.run("order_cancel", async |conn| {
        conn.transaction(async |conn| {
            let order: Option<(Vec<u8>, u32)> =
                orders::table.find(id).select((orders::sale_id, orders::quantity)).first(conn).await.optional()?;
            let Some((sale, quantity)) = order else { return Ok(Cancelled::NoOrder) };
            let standing = orders::table.find(id).filter(orders::cancelled_at.is_null());
            let cancelled = diesel::update(standing)
                .set((
                    orders::cancelled_at.eq(diesel::dsl::sql("NOW(3)")),
                    orders::cancelled_by.eq(cut(by, 64)),
                    orders::cancel_reason.eq(cut(reason, 1000)),
                ))
                .execute(conn)
                .await?;
            let sale_id = read_sale_id(&sale)?;
            if cancelled == 0 {
                return Ok(Cancelled::Before(sale_id));
            }
            give_back(conn, &sale, request_id, i64::from(quantity)).await?;
            Ok(Cancelled::Now(sale_id, quantity))
        })
        .await
    })
    .await
}

/// Journal, grant and stock. A closed sale gets a grant, too, which is never applied to Redis: it shows in the books where
/// the units are.
async fn give_back(conn: &mut Conn, sale: &[u8], request_id: RequestId, units: i64) -> Result<(), DbError> {
    let row = (
        stock_flow::sale_id.eq(sale),
        stock_flow::delta.eq(units),
        stock_flow::kind.eq("cancel"),
        stock_flow::orders_count.eq(0),
        stock_flow::reference.eq(request_id.to_string().into_bytes()),
    );
    diesel::insert_into(stock_flow::table).values(row).execute(conn).await?;
    let more = sales::stock.eq(sales::stock + units);
    diesel::update(sales::table.find(sale)).set(more).execute(conn).await?;
    // Behind the update, which holds the row: a removal that has not begun by now sees this cancel.
    if archive::is_there(conn, sale).await? {
        return Err(DbError::Other("the sale is being removed, its orders cannot be cancelled any more".to_owned()));
    }
    // The epoch is that of the commit.
    let epoch: u32 = sales::table.find(sale).select(sales::epoch).first(conn).await?;
    let grant_id = format!("cancel-{request_id}");
    grants::write(conn, &read_sale_id(sale)?, &grant_id, (GrantKind::Reclaim, units, epoch)).await
}
