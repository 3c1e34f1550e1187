//! Orders of a sale, newest first: by epoch, acceptance number and shard. Reads only.
//!
//! No index of `orders` has them in an order that stands; their outcomes have one, which is unique for another reason
//! (`request_outcome.uk_acceptance`). A place in it never changes, so that an order whose state changes between two pages is neither
//! missed nor listed twice. Orders in one state are found among the newest, a bounded number for a page, which may have fewer orders
//! than it could and say where the next one begins; a state that few orders are in is read as a whole (`ix_orders_deadline`).
//!
//! Input: a sale, a filter. Output: the first orders of it.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::order_life::OrderState;
use crate::orders::rows::query::{OrdersQuery, RowCount, rows_of};
use crate::orders::rows::row::OrderRow;
use crate::orders::rows::series::{ends_of_series, of_sale};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::request_outcome;
use crate::store::mysql::values::literal;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Unsigned};
use diesel_async::RunQueryDsl;

/// Places that are read at a time for orders in one state.
const READ: u16 = 1_000;
/// How often, for one page.
const READS_MAX: u32 = 10;
/// A state that no more orders of the sale are in is read as a whole.
const FEW: i64 = 10_000;

/// Where a request stands among those of its sale.
#[derive(Debug, Clone, Copy, QueryableByName)]
#[diesel(table_name = request_outcome)]
struct Place {
    epoch: u32,
    #[diesel(sql_type = Unsigned<BigInt>)]
    number: u64,
    shard: u16,
    request_id: RequestId,
}

#[derive(QueryableByName)]
#[diesel(table_name = request_outcome)]
struct SeriesRow {
    epoch: u32,
    shard: u16,
}

/// The newest orders of a sale that are asked for, and where to go on when not all were read. `None`: where the page is to begin is no
/// request of this sale.
pub(super) async fn newest(
    conn: &mut Conn,
    query: &OrdersQuery,
    sale: &SaleId,
    limit: u16,
) -> Result<Option<(Vec<OrderRow>, Option<RequestId>)>, DbError> {
    let mut before = None;
    if let Some(cursor) = query.before {
        before = place_of(conn, sale, cursor).await?;
        if before.is_none() {
            return Ok(None);
        }
    }
    if let Some(state) = query.state
        && is_rare(conn, sale, state).await?
    {
        let places = in_state(conn, sale, state, before, limit).await?;
        return Ok(Some((orders_at(conn, &places, query.state).await?, None)));
    }
    let series = series_of(conn, sale).await?;
    let part = if query.state.is_some() { limit.max(READ) } else { limit };
    let mut rows = Vec::new();
    for _ in 0..READS_MAX {
        let places = places(conn, sale, &series, before, part).await?;
        rows.extend(orders_at(conn, &places, query.state).await?);
        before = places.last().copied();
        if places.len() < usize::from(part) || rows.len() >= usize::from(limit) {
            rows.truncate(limit.into());
            return Ok(Some((rows, None)));
        }
    }
    Ok(Some((rows, before.map(|place| place.request_id))))
}

async fn orders_at(conn: &mut Conn, places: &[Place], state: Option<OrderState>) -> Result<Vec<OrderRow>, DbError> {
    let ids: Vec<RequestId> = places.iter().map(|place| place.request_id).collect();
    rows_of(conn, &ids, state).await
}

async fn place_of(conn: &mut Conn, sale: &SaleId, request_id: RequestId) -> Result<Option<Place>, DbError> {
    let text = format!(
        "/* orders::find */ SELECT epoch, number, shard, request_id FROM request_outcome \
         WHERE request_id = {request_id} AND sale_id = {} AND number IS NOT NULL",
        literal(sale.as_str().as_bytes())
    );
    Ok(diesel::sql_query(text).get_result(conn).await.optional()?)
}

/// Its series with outcomes, the latest epoch first.
async fn series_of(conn: &mut Conn, sale: &SaleId) -> Result<Vec<SeriesRow>, DbError> {
    let text = format!("/* orders::find */ {}", ends_of_series("epoch, shard", sale));
    let mut series: Vec<SeriesRow> = diesel::sql_query(text).load(conn).await?;
    series.sort_unstable_by_key(|series| std::cmp::Reverse(series.epoch));
    Ok(series)
}

/// The places behind this one, the newest first: of each shard as many as there can be.
async fn places(
    conn: &mut Conn,
    sale: &SaleId,
    series: &[SeriesRow],
    before: Option<Place>,
    part: u16,
) -> Result<Vec<Place>, DbError> {
    let mut found: Vec<Place> = Vec::new();
    for of_epoch in series.chunk_by(|one, next| one.epoch == next.epoch) {
        let missing = usize::from(part) - found.len();
        let each: Vec<String> = of_epoch.iter().filter_map(|series| of_series(sale, series, before, missing)).collect();
        if missing == 0 || each.is_empty() {
            continue;
        }
        let text =
            format!("/* orders::find */ {} ORDER BY number DESC, shard DESC LIMIT {missing}", each.join(" UNION ALL "));
        let places: Vec<Place> = diesel::sql_query(text).load(conn).await?;
        found.extend(places);
    }
    Ok(found)
}

/// The newest places of one series; `None` where `before` is of an earlier epoch. Bounds instead of "=", so that the number is part of
/// the range (`books::series`).
fn of_series(sale: &SaleId, series: &SeriesRow, before: Option<Place>, limit: usize) -> Option<String> {
    let SeriesRow { epoch, shard } = series;
    let numbers = match before {
        Some(place) if place.epoch < *epoch => return None,
        Some(place) if place.epoch == *epoch && *shard < place.shard => format!("number <= {}", place.number),
        Some(place) if place.epoch == *epoch => format!("number < {}", place.number),
        Some(_) | None => "number IS NOT NULL".to_owned(),
    };
    Some(format!(
        "(SELECT epoch, number, shard, request_id FROM request_outcome FORCE INDEX (uk_acceptance) \
         WHERE {} AND shard >= {shard} AND shard <= {shard} AND epoch >= {epoch} AND epoch <= {epoch} AND {numbers} \
         ORDER BY sale_id DESC, shard DESC, epoch DESC, number DESC LIMIT {limit})",
        of_sale(sale)
    ))
}

/// The orders of a sale in a state, out of an index of their own.
fn ids_in_state(sale: &SaleId, state: OrderState) -> String {
    format!(
        "SELECT request_id FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id = {} AND state = '{}'",
        literal(sale.as_str().as_bytes()),
        state.code()
    )
}

async fn is_rare(conn: &mut Conn, sale: &SaleId, state: OrderState) -> Result<bool, DbError> {
    let ids = ids_in_state(sale, state);
    let text = format!("/* orders::find */ SELECT COUNT(*) AS n FROM ({ids} LIMIT {}) AS some", FEW + 1);
    let counted: RowCount = diesel::sql_query(text).get_result(conn).await?;
    Ok(counted.n <= FEW)
}

/// The places of all orders in a state, sorted.
async fn in_state(
    conn: &mut Conn,
    sale: &SaleId,
    state: OrderState,
    before: Option<Place>,
    limit: u16,
) -> Result<Vec<Place>, DbError> {
    let behind = before.map_or_else(String::new, |Place { epoch, number, shard, .. }| {
        format!(
            " AND (r.epoch < {epoch} OR (r.epoch = {epoch} AND (r.number < {number} OR (r.number = {number} AND r.shard < {shard}))))"
        )
    });
    let text = format!(
        "/* orders::find */ SELECT r.epoch, r.number, r.shard, r.request_id FROM ({}) AS chosen \
         JOIN request_outcome r FORCE INDEX (PRIMARY) ON r.request_id = chosen.request_id \
         WHERE r.number IS NOT NULL{behind} ORDER BY r.epoch DESC, r.number DESC, r.shard DESC LIMIT {limit}",
        ids_in_state(sale, state)
    );
    Ok(diesel::sql_query(text).load(conn).await?)
}
