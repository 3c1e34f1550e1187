//! Units that leave a sale, and those that another sale of its drop gets (`stock_withdrawals`).
//!
//! Input: how many, under which name; then what Redis gave. Output: first the open row, then in one transaction the units out of
//! `sales`, with a grant of less than nothing, and the grant of the sale that gets them. A crash in between leaves the open row:
//! [`GrantRows::open_withdrawals`] finds it, and the process that ends it first decides.

use super::{GrantMark, GrantRows, insert, mark};
use crate::domain::grant_names::{MOVE, WITHDRAWAL};
use crate::domain::ids::SaleId;
use crate::domain::sale::{STOCK_MAX, SaleStatus};
use crate::sales::rows::acts;
use crate::sales::rows::error::SaleError;
use crate::store::mysql::codes::unreadable;
use crate::store::mysql::columns::ByteText;
use crate::store::mysql::fault::{DbError, Halt};
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{sales, stock_grants, stock_withdrawals};
use crate::store::mysql::transaction::transaction;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use diesel_async::RunQueryDsl;
use std::collections::BTreeMap;

/// Most open withdrawals of a sale that are read at a time.
pub(crate) const OPEN_MAX: i64 = 100;

/// A row of `stock_withdrawals`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = stock_withdrawals)]
pub struct Withdrawal {
    /// The sale that the units leave.
    pub sale_id: SaleId,
    /// Its identity within the sale, 1 to 55 bytes.
    #[diesel(deserialize_as = ByteText)]
    pub name: String,
    /// Most units that leave, 1 or more.
    pub asked: i64,
    /// The sale of the same drop that gets them, if one does.
    pub moves_to: Option<SaleId>,
    /// Units that left, 0 to `asked`; `None` while it is open.
    pub taken: Option<i64>,
}

impl Withdrawal {
    /// Its grant in the sale that the units leave.
    pub(crate) fn grant_id(&self) -> String {
        format!("{WITHDRAWAL}{}", self.name)
    }

    /// What its grant may come to, as long as it is open.
    pub(crate) fn as_grant(&self) -> GrantMark {
        GrantMark { grant_id: self.grant_id(), quantity: -self.asked, applied_at_ms: None }
    }

    /// Its grant in the sale that gets them.
    fn grant_of_target(&self) -> String {
        format!("{MOVE}{}", self.name)
    }

    /// Its sales in the order in which every transaction locks them.
    fn sales(&self) -> Vec<&SaleId> {
        let mut sales: Vec<&SaleId> = [Some(&self.sale_id), self.moves_to.as_ref()].into_iter().flatten().collect();
        sales.sort_by_key(|sale| sale.as_str());
        sales
    }
}

/// What became of a withdrawal whose units Redis has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithdrawalEnd {
    /// The units left now.
    Now,
    /// It was ended before, with this number of units.
    Before(i64),
    /// The sale is in another epoch: its rebuild gave all units back.
    OtherEpoch,
}

/// What is locked of a sale.
struct LockedSale {
    status: SaleStatus,
    epoch: u32,
    granted: i64,
    drop_id: Option<Vec<u8>>,
}

/// Locks the sales of a withdrawal.
async fn lock<'a>(
    conn: &mut Conn,
    withdrawal: &'a Withdrawal,
) -> Result<BTreeMap<&'a str, LockedSale>, Halt<SaleError>> {
    let mut locked = BTreeMap::new();
    for sale_id in withdrawal.sales() {
        let row = sales::table.find(sale_id.as_str().as_bytes());
        let row = row.select((sales::status, sales::epoch, sales::granted, sales::drop_id)).for_update();
        let row: Option<(String, u32, i64, Option<Vec<u8>>)> = row.first(conn).await.optional()?;
        let Some((status, epoch, granted, drop_id)) = row else {
            return Err(Halt::Because(SaleError::Unknown(sale_id.clone())));
        };
        let status = SaleStatus::from_code(&status).ok_or_else(|| unreadable("sales.status", &status))?;
        locked.insert(sale_id.as_str(), LockedSale { status, epoch, granted, drop_id });
    }
    Ok(locked)
}

/// A refusal is an answer of the database, not its failure.
fn refused<T>(done: Result<T, Halt<SaleError>>) -> Result<Result<T, SaleError>, DbError> {
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(Halt::Because(refusal)) => Ok(Err(refusal)),
        Err(Halt::Db(error)) => Err(error),
    }
}

impl GrantRows {
    /// Writes down that units are to leave a sale that sells, on record. Repeating with the same units and target is safe. Returns the
    /// row, which may be open or ended.
    ///
    /// # Errors
    /// [`SaleError::WithdrawalConflict`] when its name was used with another value, [`SaleError::GrantConflict`] when a grant has it;
    /// [`SaleError::Status`] of a draft or a closed sale, [`SaleError::OtherDrop`], [`SaleError::TooMuch`], [`SaleError::Unknown`]. Nothing is written then.
    pub(crate) async fn begin_withdrawal(&self, wanted: &Withdrawal) -> Result<Withdrawal, SaleError> {
        let mut is_new = false;
        let begun = self
            .db
            .run("withdrawal_begin", async |conn| {
                refused(
                    transaction(conn, async |conn| {
                        let before = begin(conn, wanted).await?;
                        is_new = before.is_none();
                        Ok(before.unwrap_or_else(|| wanted.clone()))
                    })
                    .await,
                )
            })
            .await;
        match begun {
            Ok(begun) => {
                if is_new && begun.is_ok() {
                    acts::pending_is_written();
                }
                begun
            }
            // Another sale moves units to the same one under this name.
            Err(DbError::Duplicate(_)) => Err(SaleError::WithdrawalConflict(wanted.name.clone(), "from")),
            Err(error) => Err(error.into()),
        }
    }

    /// Open withdrawals of a sale that began `after_s` seconds ago or earlier by the database's clock (0: all), oldest first; a hundred
    /// at most.
    pub(crate) async fn open_withdrawals(&self, sale_id: &SaleId, after_s: u32) -> Result<Vec<Withdrawal>, DbError> {
        self.db
            .run("withdrawals_open", async |conn| {
                let old = sql::<Bool>(&format!("({after_s} = 0 OR created_at <= NOW(3) - INTERVAL {after_s} SECOND)"));
                let open = stock_withdrawals::table
                    .filter(stock_withdrawals::sale_id.eq(sale_id.as_str().as_bytes()))
                    .filter(stock_withdrawals::taken.is_null())
                    .filter(old)
                    .order((stock_withdrawals::created_at, stock_withdrawals::name))
                    .limit(OPEN_MAX);
                Ok(open.select(Withdrawal::as_select()).load(conn).await?)
            })
            .await
    }

    /// Whether units are still to leave this sale, or to come to it from another one.
    pub(crate) async fn is_withdrawing(&self, sale_id: &SaleId) -> Result<bool, DbError> {
        let sale = sale_id.as_str().as_bytes();
        self.db
            .run("withdrawals_any_open", async |conn| {
                let (leave, come) = (stock_withdrawals::sale_id.eq(sale), stock_withdrawals::moves_to.eq(sale));
                let open = stock_withdrawals::table.filter(leave.or(come.assume_not_null()));
                let open = open.filter(stock_withdrawals::taken.is_null()).select(stock_withdrawals::asked);
                let first: Option<i64> = open.first(conn).await.optional()?;
                Ok(first.is_some())
            })
            .await
    }

    /// Ends an open withdrawal of whose units Redis gave `taken` in `epoch`: they leave the sale, and the sale that gets them has a grant
    /// of as many, which Redis is given next. One transaction; after an unknown outcome a repeat finds out.
    ///
    /// # Errors
    /// [`SaleError::UnsoldDisagree`] when the database has fewer unsold units, [`SaleError::TooMuch`] when the target would have too many:
    /// nothing is written, it stays open.
    pub(crate) async fn end_withdrawal(
        &self,
        withdrawal: &Withdrawal,
        (epoch, taken): (u32, i64),
    ) -> Result<WithdrawalEnd, SaleError> {
        self.db
            .run("withdrawal_end", async |conn| {
                refused(transaction(conn, async |conn| end(conn, withdrawal, (epoch, taken)).await).await)
            })
            .await?
    }
}

/// Inside a transaction: the row, if it is there; otherwise it is written.
async fn begin(conn: &mut Conn, wanted: &Withdrawal) -> Result<Option<Withdrawal>, Halt<SaleError>> {
    let locked = lock(conn, wanted).await?;
    let (from, name) = (wanted.sale_id.as_str(), wanted.name.as_bytes());
    let there = stock_withdrawals::table.find((from.as_bytes(), name)).select(Withdrawal::as_select());
    if let Some(there) = there.first(conn).await.optional()? {
        let there: Withdrawal = there;
        let conflict = |field| Err(Halt::Because(SaleError::WithdrawalConflict(wanted.name.clone(), field)));
        return match (there.asked == wanted.asked, there.moves_to == wanted.moves_to) {
            (true, true) => Ok(Some(there)),
            (false, _) => conflict("units"),
            (true, false) => conflict("to"),
        };
    }
    let refuse = |refusal| Err(Halt::Because(refusal));
    let Some(of_from) = locked.get(from) else { return refuse(SaleError::Unknown(wanted.sale_id.clone())) };
    if !matches!(of_from.status, SaleStatus::Warmed | SaleStatus::Paused) {
        return refuse(SaleError::Status(wanted.sale_id.clone(), of_from.status));
    }
    if let Some((to, of_to)) = wanted.moves_to.as_ref().and_then(|to| Some((to, locked.get(to.as_str())?))) {
        if of_from.drop_id.is_none() || of_from.drop_id != of_to.drop_id {
            return refuse(SaleError::OtherDrop(wanted.sale_id.clone(), to.clone()));
        }
        if of_to.status == SaleStatus::Closed {
            return refuse(SaleError::Status(to.clone(), SaleStatus::Closed));
        }
        if of_to.granted > STOCK_MAX - wanted.asked {
            return refuse(SaleError::TooMuch(to.clone()));
        }
        no_grant(conn, to, wanted.grant_of_target()).await?;
    }
    // A version that did not reserve these names may have given them.
    no_grant(conn, &wanted.sale_id, wanted.grant_id()).await?;
    diesel::insert_into(stock_withdrawals::table)
        .values((
            stock_withdrawals::sale_id.eq(from.as_bytes()),
            stock_withdrawals::name.eq(name),
            stock_withdrawals::asked.eq(wanted.asked),
            stock_withdrawals::moves_to.eq(wanted.moves_to.as_ref().map(|to| to.as_str().as_bytes())),
        ))
        .execute(conn)
        .await?;
    for sale in wanted.sales() {
        acts::insert_pending(conn, sale).await?;
    }
    Ok(None)
}

async fn no_grant(conn: &mut Conn, sale_id: &SaleId, grant_id: String) -> Result<(), Halt<SaleError>> {
    let grant = stock_grants::table.find((sale_id.as_str().as_bytes(), grant_id.as_bytes()));
    let quantity: Option<i64> = grant.select(stock_grants::quantity).first(conn).await.optional()?;
    if quantity.is_some() { Err(Halt::Because(SaleError::GrantConflict(grant_id))) } else { Ok(()) }
}

/// Inside a transaction: the end of a withdrawal.
async fn end(
    conn: &mut Conn,
    withdrawal: &Withdrawal,
    (epoch, taken): (u32, i64),
) -> Result<WithdrawalEnd, Halt<SaleError>> {
    let locked = lock(conn, withdrawal).await?;
    let (sale_id, from) = (&withdrawal.sale_id, withdrawal.sale_id.as_str().as_bytes());
    let row = stock_withdrawals::table.find((from, withdrawal.name.as_bytes()));
    let before: Option<i64> = row.select(stock_withdrawals::taken).first(conn).await?;
    if let Some(before) = before {
        return Ok(WithdrawalEnd::Before(before));
    }
    if locked.get(sale_id.as_str()).is_none_or(|of_from| of_from.epoch != epoch) {
        return Ok(WithdrawalEnd::OtherEpoch);
    }
    let now = stock_withdrawals::ended_at.eq(sql("NOW(3)"));
    diesel::update(row).set((stock_withdrawals::taken.eq(taken), now)).execute(conn).await?;
    if taken == 0 {
        return Ok(WithdrawalEnd::Now);
    }
    let unsold = sales::table.find(from).filter(sales::stock.ge(taken));
    let fewer = (sales::granted.eq(sales::granted - taken), sales::stock.eq(sales::stock - taken));
    if diesel::update(unsold).set(fewer).execute(conn).await? != 1 {
        return Err(Halt::Because(SaleError::UnsoldDisagree(sale_id.clone())));
    }
    insert(conn, sale_id, &withdrawal.grant_id(), (-taken, epoch)).await?;
    mark(conn, from, &withdrawal.grant_id()).await?;
    if let Some((to, of_to)) = withdrawal.moves_to.as_ref().and_then(|to| Some((to, locked.get(to.as_str())?))) {
        let room = sales::table.find(to.as_str().as_bytes()).filter(sales::granted.le(STOCK_MAX - taken));
        let more = (sales::granted.eq(sales::granted + taken), sales::stock.eq(sales::stock + taken));
        if diesel::update(room).set(more).execute(conn).await? != 1 {
            return Err(Halt::Because(SaleError::TooMuch(to.clone())));
        }
        // In the target's own epoch, and whatever its status: units never leave one sale of a drop without coming to the other.
        insert(conn, to, &withdrawal.grant_of_target(), (taken, of_to.epoch)).await?;
    }
    Ok(WithdrawalEnd::Now)
}
