//! What the database says of a sale's units and acceptance numbers, for the equations of the books (E11, E12).
//!
//! Reads only, with the patient connections of [`Db::patient`]. What grows with the sale is read in pieces (`series`), from where it
//! was read before (`journal`, `given`), or once in many rounds (`life`); the caller remembers.

pub mod ages;
pub mod closing;
mod closing_steps;
pub mod given;
pub mod journal;
pub mod life;
pub mod movement;
pub mod series;
pub mod void;
mod withdrawn;

use crate::p5_reconcile::rows::BookRows;
pub use closing::Closed;
pub use given::GrantsSum;
pub use journal::JournalSum;
use journal::journal;
pub use movement::Movement;
pub use series::{PIECE, Series, SeriesQuery};
pub(crate) use series::{Piece, SeriesRead, Tally, of_series};

use crate::domain::balance::LifeCounts;
use crate::domain::ids::SaleId;
use crate::domain::outcome::FailReason;
use crate::orders::rows::series::ends_of_series;
use crate::sales::rows::archived;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{sale_epochs, sales};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, SmallInt, Text, Unsigned};
use diesel_async::{AsyncConnection, RunQueryDsl, SimpleAsyncConnection};

/// Everything that the database holds of one sale, in one snapshot. Units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Books {
    /// Units ever released, `sales.granted`.
    pub granted: i64,
    /// Units not sold, `sales.stock`.
    pub stock: i64,
    /// The present epoch, `sales.epoch`.
    pub epoch: u32,
    /// The journal.
    pub flow: JournalSum,
    /// The part of it that need not be read again.
    pub flow_settled: JournalSum,
    /// Units of all withdrawals that have ended.
    pub withdrawn: i64,
    /// Grants of the epoch, with the grant of its rebuild.
    pub grants: i64,
    /// The part of them that need not be read again.
    pub grants_settled: GrantsSum,
    /// Grants that Redis is not known to have.
    pub grants_unapplied: i64,
    /// Whether the grants of the epoch are all there: an epoch that was opened before grants had epochs lacks its first.
    pub grants_known: bool,
    /// Final failures that Redis had taken units for and that were not offered again, all epochs.
    pub held: i64,
    /// All orders, counted in their own table; `None` when the query did not want them.
    pub orders: Option<OrdersCount>,
    /// Orders by what became of them, and payments.
    pub life: LifeCounts,
    /// Final failures for lack of units, all epochs.
    pub refused: i64,
    /// What persons closed.
    pub closed: Vec<Closed>,
    /// One for each series of the query, in its order.
    pub series: Vec<SeriesRead>,
}

/// The orders of a sale, counted in their own table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrdersCount {
    /// Number of orders.
    pub count: u64,
    /// Their units, when their number is not the expected one; a sum that has to read every row.
    pub units: Option<OrdersUnits>,
}

/// The units of a sale's orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct OrdersUnits {
    /// Of all orders.
    #[diesel(sql_type = BigInt)]
    pub all: i64,
    /// Of those without a row in `request_outcome`, whatever its number.
    #[diesel(sql_type = BigInt)]
    pub without_outcome: i64,
}

/// What to read of a sale.
#[derive(Debug, Clone, Copy)]
pub struct BooksQuery<'a> {
    /// The series whose numbers are counted.
    pub asked: &'a [SeriesQuery],
    /// The part of the journal that was summed before.
    pub flow_before: JournalSum,
    /// The part of the grants that was summed before.
    pub grants_before: GrantsSum,
    /// What is counted of the orders' own table.
    pub orders: OrdersTurn,
}

/// How much of the orders' own table is read: all of it grows with the sale.
#[derive(Debug, Clone, Copy)]
pub enum OrdersTurn {
    /// Count all orders, by state too, and the payments.
    All {
        /// Orders that were counted before by their outcomes.
        by_outcome: u64,
    },
    /// Only what waits for its payment. The rest is as it was counted.
    Unpaid(LifeCounts),
}

/// A series that has ended, or one that the database has outcomes of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownSeries {
    /// Epoch and shard.
    pub series: Series,
    /// The last known acceptance number: the highest with an outcome, or Redis' own when the epoch ended.
    pub number: u64,
    /// Units accepted, if Redis said so when the epoch ended.
    pub accepted: Option<i64>,
}

#[derive(QueryableByName)]
struct KnownRow {
    #[diesel(sql_type = Unsigned<Integer>)]
    epoch: u32,
    #[diesel(sql_type = Unsigned<SmallInt>)]
    shard: u16,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    number: Option<u64>,
}

impl BookRows {
    /// The series of a sale that the database knows of: those with outcomes, and those whose end was written down.
    pub async fn known(&self, sale_id: &SaleId) -> Result<Vec<KnownSeries>, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let (ended, counted) = self
            .db
            .patient()
            .run("books_known", async |conn| {
                let ended: Vec<(u32, u16, u64, Option<i64>)> = sale_epochs::table
                    .filter(sale_epochs::sale_id.eq(sale))
                    .select((sale_epochs::epoch, sale_epochs::shard, sale_epochs::number, sale_epochs::accepted))
                    .load(conn)
                    .await?;
                let numbers = ends_of_series("epoch, shard, MAX(number) AS number", sale_id);
                let counted: Vec<KnownRow> =
                    diesel::sql_query(format!("/* books::known */ {numbers}")).load(conn).await?;
                Ok((ended, counted))
            })
            .await?;
        let mut known: std::collections::BTreeMap<Series, KnownSeries> = ended
            .into_iter()
            .map(|(epoch, shard, number, accepted)| (Series { epoch, shard }, number, accepted))
            .map(|(series, number, accepted)| (series, KnownSeries { series, number, accepted }))
            .collect();
        for KnownRow { epoch, shard, number } in counted {
            let series = Series { epoch, shard };
            let known = known.entry(series).or_insert(KnownSeries { series, number: 0, accepted: None });
            known.number = known.number.max(number.unwrap_or(0));
        }
        Ok(known.into_values().collect())
    }

    /// Reads everything of one sale in one snapshot; `None` when there is no such sale, or it is being removed (`archive`): what is left
    /// of it then adds up to nothing.
    pub async fn read(&self, sale_id: &SaleId, query: BooksQuery<'_>) -> Result<Option<Books>, DbError> {
        let sale = sale_id.as_str().as_bytes();
        self.db
            .patient()
            .run("books_read", async |conn| {
                // For the next transaction only: its first read makes the snapshot that all others share.
                conn.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
                conn.transaction(async |conn| in_snapshot(conn, sale, query).await).await
            })
            .await
    }
}

async fn in_snapshot(conn: &mut Conn, sale: &[u8], query: BooksQuery<'_>) -> Result<Option<Books>, DbError> {
    let of_sale = sales::table.find(sale).select((sales::granted, sales::stock, sales::epoch));
    let row: Option<(i64, i64, u32)> = of_sale.first(conn).await.optional()?;
    let Some((granted, stock, epoch)) = row else { return Ok(None) };
    if archived::is_there(conn, sale).await? {
        return Ok(None);
    }
    let journal = journal(conn, sale, query.flow_before).await?;
    let life = match query.orders {
        OrdersTurn::All { .. } => life::by_state(conn, sale, journal.all.returned()).await?,
        OrdersTurn::Unpaid(counted) => life::since(conn, sale, counted, &journal.all).await?,
    };
    let given = given::given(conn, sale, epoch, query.grants_before).await?;
    let failures: Vec<Failures> = diesel::sql_query(FAILURES).bind::<Binary, _>(sale).load(conn).await?;
    let of = |wanted: fn(FailReason) -> bool| {
        let reason = |row: &&Failures| FailReason::from_code(&row.reason).is_some_and(wanted);
        failures.iter().filter(reason).map(|row| row.units).sum()
    };
    let closed = closing::closed(conn, sale).await?;
    let mut read = Vec::with_capacity(query.asked.len());
    for asked in query.asked {
        read.push(series::read(conn, sale, asked).await?);
    }
    let by_outcome: u64 = read
        .iter()
        .flat_map(|read| read.pieces.iter().map(|piece| &piece.tally).chain([&read.above]))
        .map(|tally| tally.orders)
        .sum();
    let orders = match query.orders {
        OrdersTurn::All { by_outcome: before } => Some(orders(conn, sale, before + by_outcome).await?),
        OrdersTurn::Unpaid(_) => None,
    };
    Ok(Some(Books {
        granted,
        stock,
        epoch,
        flow: journal.all,
        flow_settled: journal.settled,
        withdrawn: withdrawn::withdrawn(conn, sale).await?,
        grants: given.units,
        grants_settled: given.settled,
        grants_unapplied: given.unapplied,
        grants_known: given.known,
        held: of(FailReason::has_unit),
        orders,
        life,
        refused: of(|reason| reason == FailReason::SoldOut),
        closed,
        series: read,
    }))
}

/// The orders of a sale in their own table: by index, and row by row only if there are not as many as their outcomes say.
async fn orders(conn: &mut Conn, sale: &[u8], expected: u64) -> Result<OrdersCount, DbError> {
    // The index is named: where most orders are of one sale the server would read the whole table instead.
    let query = "/* books::orders_count */ SELECT COUNT(*) AS units FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id >= ? AND sale_id <= ?";
    let counted: UnitsRow =
        diesel::sql_query(query).bind::<Binary, _>(sale).bind::<Binary, _>(sale).get_result(conn).await?;
    let count = u64::try_from(counted.units).unwrap_or(0);
    if count == expected {
        return Ok(OrdersCount { count, units: None });
    }
    let query = "/* books::orders */ SELECT CAST(COALESCE(SUM(o.quantity), 0) AS SIGNED) AS `all`, \
        CAST(COALESCE(SUM(IF(r.request_id IS NULL, o.quantity, 0)), 0) AS SIGNED) AS without_outcome \
        FROM orders o FORCE INDEX (ix_orders_deadline) LEFT JOIN request_outcome r ON r.request_id = o.request_id \
        WHERE o.sale_id >= ? AND o.sale_id <= ?";
    let units: OrdersUnits =
        diesel::sql_query(query).bind::<Binary, _>(sale).bind::<Binary, _>(sale).get_result(conn).await?;
    Ok(OrdersCount { count, units: Some(units) })
}

#[derive(QueryableByName)]
struct UnitsRow {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

#[derive(QueryableByName)]
struct Failures {
    #[diesel(sql_type = Text)]
    reason: String,
    #[diesel(sql_type = BigInt)]
    units: i64,
}

/// MySQL would rather read each row by another key, and group them in a temporary table.
const FAILURES: &str = "/* books::failures */ SELECT reason, CAST(SUM(quantity) AS SIGNED) AS units \
    FROM failed_request FORCE INDEX (ix_failed_units) WHERE sale_id = ? AND status = 'failed_final' AND reclaimed_by IS NULL GROUP BY reason";
