//! Units of orders that ended: they go back into `sales.stock`, and one grant carries them to Redis.
//!
//! Input: how many units of which sale, and whose limits, of the sale and of its drop, come back with them. Output: journal row, stock, grant, in the caller's
//! transaction. A closed sale gets a grant, too, which is never applied to Redis: it shows in the books where the units are.

use crate::domain::ids::SaleId;
use crate::domain::order_life::ReturnedPurchase;
use crate::faults::left_out;
use crate::orders::rows::purchases::{DROP_PURCHASES, LimitTable, PURCHASES};
use crate::orders::rows::row::OrderTerms;
use crate::sales::rows::archived as archive;
use crate::sales::rows::grants;
use crate::store::mysql::codes::GrantKind;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{sales, stock_flow};
use crate::store::mysql::values::Values;
use diesel::prelude::*;
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use std::collections::BTreeMap;

/// Units that come back together.
pub(crate) struct ReturnedUnits<'a> {
    pub(crate) sale_id: &'a SaleId,
    pub(crate) units: i64,
    /// `stock_flow.kind`: cancel or expire.
    pub(crate) kind: &'static str,
    /// `stock_flow.ref`, unique within the sale and kind.
    pub(crate) reference: String,
    pub(crate) grant_id: String,
    /// The purchases that no longer count against their buyers' limits.
    pub(crate) limits: &'a [ReturnedPurchase],
    /// Of the sale: where units are counted by buyer.
    pub(crate) terms: &'a OrderTerms,
}

/// Journal, buyers, stock, grant.
pub(crate) async fn give_back(conn: &mut Conn, returned: &ReturnedUnits<'_>) -> Result<(), DbError> {
    let sale = returned.sale_id.as_str().as_bytes();
    let row = (
        stock_flow::sale_id.eq(sale),
        stock_flow::delta.eq(returned.units),
        stock_flow::kind.eq(returned.kind),
        stock_flow::orders_count.eq(0),
        stock_flow::reference.eq(returned.reference.as_bytes()),
    );
    diesel::insert_into(stock_flow::table).values(row).execute(conn).await?;
    if returned.terms.limited {
        give_limits_back(conn, (PURCHASES, sale), returned.limits).await?;
    }
    if let Some(drop_id) = &returned.terms.drop_id
        && !left_out!(ReturnsToDrop)
    {
        give_limits_back(conn, (DROP_PURCHASES, drop_id), returned.limits).await?;
    }
    let more = sales::stock.eq(sales::stock + returned.units);
    // A session that holds this row holds up the whole sale, whichever order ends.
    let of_the_sale = |error: diesel::result::Error| {
        let error = DbError::from(error);
        if matches!(error, DbError::LockWait) { DbError::SaleLocked(returned.sale_id.clone()) } else { error }
    };
    diesel::update(sales::table.find(sale)).set(more).execute(conn).await.map_err(of_the_sale)?;
    // Behind the update, which holds the row: a removal that has not begun by now sees these units.
    if archive::is_there(conn, sale).await? {
        return Err(DbError::Other("the sale is being removed, its orders cannot change any more".to_owned()));
    }
    // The epoch is that of the commit.
    let epoch: u32 = sales::table.find(sale).select(sales::epoch).first(conn).await?;
    let units = (GrantKind::Reclaim, returned.units, epoch);
    grants::write_with_buyers(conn, returned.sale_id, &returned.grant_id, units, returned.limits).await
}

/// Buyers in the order of persisting. A buyer who owned less would be a broken book, and the unsigned column says so.
async fn give_limits_back(
    conn: &mut Conn,
    (LimitTable { table, column, .. }, id): (LimitTable, &[u8]),
    limits: &[ReturnedPurchase],
) -> Result<(), DbError> {
    if limits.is_empty() {
        return Ok(());
    }
    let mut by_buyer: BTreeMap<&[u8], u64> = BTreeMap::new();
    for ReturnedPurchase(user, _, units) in limits {
        *by_buyer.entry(user.as_str().as_bytes()).or_default() += u64::from(*units);
    }
    let mut cases = String::new();
    let (mut users, mut named) = (Values::list(by_buyer.len()), Values::list(1));
    named.bytes(id);
    for (user, units) in by_buyer {
        let mut one = Values::list(1);
        one.bytes(user);
        cases.push_str(&format!(" WHEN {} THEN {units}", one.finish()));
        users.bytes(user);
    }
    let less = format!(
        "/* orders::limits */ UPDATE {table} SET quantity = quantity - CASE user_id{cases} END \
         WHERE {column} = {} AND user_id IN {} ORDER BY user_id",
        named.finish(),
        users.finish()
    );
    Ok(conn.batch_execute(&less).await?)
}
