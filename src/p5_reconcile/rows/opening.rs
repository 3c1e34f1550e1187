//! The transaction of a rebuild that fixes the units that Redis gets (E7).
//!
//! Input: what an audit of the loaded, frozen keys counted. Output: the grant `rebuild-<epoch>`, and all earlier grants marked as given.
//! A crash leaves all of it or nothing; whatever it left, the next attempt does it again in an epoch of its own.
//!
//! Units that buyers return in the epoch that is being built are left out: their grants belong to it and are given, with the limits
//! of their buyers, once its keys are open. So returns end no attempt, however many there are. The load leaves these out, too.

use crate::domain::ids::SaleId;
use crate::faults::left_out;
use crate::p5_reconcile::rows::DecidedRows;
use crate::sales::rows::grants::{self, IS_RETURN};
use crate::store::mysql::codes::{GrantKind, datetime, reasons_with_unit};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{sales, stock_grants};
use crate::store::mysql::transaction::transaction;
use chrono::NaiveDateTime;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Unsigned};
use diesel_async::RunQueryDsl;

/// What was counted for the keys of an epoch, in one snapshot of the database. Units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub epoch: u32,
    /// `sales.stock`.
    pub stock: i64,
    /// Of failures held.
    pub held: i64,
    /// Of gaps kept back.
    pub gaps: i64,
    /// Of grants that were made in this epoch.
    pub granted: i64,
    /// Before the epoch was begun, Unix milliseconds by the database's clock.
    pub(crate) began_at_ms: i64,
}

/// What Redis gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpeningUnits {
    pub units: i64,
    /// Grants among them that another process may still be about to give.
    pub given: Vec<String>,
}

#[derive(QueryableByName)]
struct HeldRow {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

#[derive(QueryableByName)]
struct GrantedRow {
    #[diesel(sql_type = BigInt)]
    units: i64,
    #[diesel(sql_type = BigInt)]
    returned: i64,
}

const HELD: &str = "/* opening::held */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units FROM failed_request \
    WHERE sale_id = ? AND status = 'failed_final' AND reclaimed_by IS NULL AND reason IN";

/// The sale's books as the transaction finds them.
#[derive(Debug, Clone, Copy)]
struct BooksNow {
    epoch: u32,
    stock: i64,
    held: i64,
    granted: GrantedNow,
}

/// Grants of the epoch that is being built.
#[derive(Debug, Clone, Copy)]
struct GrantedNow {
    all: i64,
    /// Those that it leaves open.
    returned: i64,
}

impl BooksNow {
    /// Behind the sale's row, which every change of the other figures waits for.
    async fn read(conn: &mut Conn, sale: &[u8], epoch: u32) -> Result<Option<Self>, DbError> {
        let row = sales::table.find(sale).select((sales::stock, sales::epoch)).for_update();
        let Some((stock, epoch_now)) = row.first::<(i64, u32)>(conn).await.optional()? else { return Ok(None) };
        let held: HeldRow = diesel::sql_query(format!("{HELD} ({})", reasons_with_unit()))
            .bind::<Binary, _>(sale)
            .get_result(conn)
            .await?;
        let query = format!(
            "/* opening::granted */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units, \
             CAST(COALESCE(SUM(IF(applied_at IS NULL AND {IS_RETURN}, quantity, 0)), 0) AS SIGNED) AS returned \
             FROM stock_grants FORCE INDEX (ix_grants_epoch) WHERE sale_id = ? AND epoch = ?"
        );
        let granted: GrantedRow = diesel::sql_query(query)
            .bind::<Binary, _>(sale)
            .bind::<Unsigned<Integer>, _>(epoch)
            .get_result(conn)
            .await?;
        let granted = GrantedNow { all: granted.units, returned: granted.returned };
        Ok(Some(Self { epoch: epoch_now, stock, held: held.units, granted }))
    }

    /// Whether nothing was decided, and no unit that is kept back was offered again, since the count: a return or a top-up moves the
    /// stock and the grants by as much, an order or an offer only one of them.
    fn is_as_counted(self, opening: &Opening) -> bool {
        (self.stock - self.granted.all, self.held) == (opening.stock - opening.granted, opening.held)
            || left_out!(OneSnapshot)
    }

    fn units(self, opening: &Opening) -> i64 {
        let stock = if left_out!(OneSnapshot) { opening.stock } else { self.stock };
        (stock - self.held - opening.gaps - self.granted.returned).max(0)
    }
}

impl DecidedRows {
    /// Fixes what Redis gets: every grant of the past is marked as given and belongs to a former epoch, and the units are the grant
    /// `rebuild-<epoch>`. One transaction, which holds the sale's row: a grant is part of this or belongs to the epoch that opens.
    /// `None` when the sale moved on meanwhile, and nothing was written. After an unknown outcome, begin again under the next epoch.
    pub(crate) async fn open(&self, sale_id: &SaleId, opening: &Opening) -> Result<Option<OpeningUnits>, DbError> {
        let began_at = datetime(opening.began_at_ms)?;
        self.db
            .patient()
            .run("decided_open", async |conn| {
                transaction(conn, async |conn| in_transaction(conn, sale_id, (opening, began_at)).await).await
            })
            .await
    }
}

async fn in_transaction(
    conn: &mut Conn,
    sale_id: &SaleId,
    (opening, began_at): (&Opening, NaiveDateTime),
) -> Result<Option<OpeningUnits>, DbError> {
    let sale = sale_id.as_str().as_bytes();
    let Some(books) = BooksNow::read(conn, sale, opening.epoch).await? else { return Ok(None) };
    let is_ours = books.epoch == opening.epoch || left_out!(SnapshotEpoch);
    if !is_ours || !books.is_as_counted(opening) {
        return Ok(None);
    }
    let is_past = || sql::<Bool>(&format!("NOT (epoch = {} AND {IS_RETURN})", opening.epoch));
    let of_past = || stock_grants::table.filter(stock_grants::sale_id.eq(sale)).filter(is_past());
    let late = stock_grants::applied_at.is_null().or(stock_grants::applied_at.ge(began_at));
    let ids: Vec<Vec<u8>> = of_past().filter(late).select(stock_grants::grant_id).load(conn).await?;
    if !left_out!(RebuildMarks) {
        let open = of_past().filter(stock_grants::applied_at.is_null());
        diesel::update(open).set(stock_grants::applied_at.eq(sql("NOW(3)"))).execute(conn).await?;
        let early = of_past().filter(stock_grants::epoch.ge(opening.epoch));
        diesel::update(early).set(stock_grants::epoch.eq(opening.epoch - 1)).execute(conn).await?;
    }
    let name = format!("rebuild-{}", opening.epoch);
    if left_out!(OwnEpoch) {
        diesel::delete(of_past().filter(stock_grants::grant_id.eq(name.as_bytes()))).execute(conn).await?;
    }
    let units = books.units(opening);
    grants::write(conn, sale_id, &name, (GrantKind::Rebuild, units, opening.epoch)).await?;
    grants::mark(conn, sale, &name).await?;
    let given = ids.into_iter().map(|id| String::from_utf8_lossy(&id).into_owned()).collect();
    Ok(Some(OpeningUnits { units, given }))
}
