//! Blocked buyers as the database knows them.
//!
//! A change and its act are one transaction. A process that reads what changed within some seconds misses nothing as long as no
//! transaction takes longer to commit: the time in the row is that of its statement.

mod bought;
pub mod forgotten;
pub mod searched;
pub(crate) mod under_way;
pub(crate) mod walked;

use self::schema::blocked_buyers;
use crate::domain::ids::UserId;
use crate::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use crate::sales::rows::acts;
use crate::store::mysql::codes::{datetime, read_user_id};
use crate::store::mysql::columns::{MaybeUnixMs, UnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Datetime, Nullable};
use diesel_async::RunQueryDsl;
use serde::Serialize;
use serde_json::json;

#[allow(missing_docs, reason = "the migration says what each column is")]
mod schema {
    diesel::table! {
        blocked_buyers (user_id) {
            user_id -> Binary,
            reason -> Varchar,
            ends_at -> Nullable<Datetime>,
            blocked_at -> Datetime,
            lifted_at -> Nullable<Datetime>,
            changed_at -> Datetime,
        }
    }
}

mysql_handle! {
    /// Buyers who may not buy.
    BlockRows
}

/// Most blocks at one time: each api process has them all in memory.
pub(crate) const BLOCKS_MAX: i64 = 100_000;
/// Most blocks in one list, and most changes that are read at once.
pub(crate) const PAGE_MAX: i64 = 10_000;
/// Whether a block counts now, by the database's clock.
const IN_FORCE: &str = "(lifted_at IS NULL AND (ends_at IS NULL OR ends_at > NOW(3)))";

/// A block that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewBlock {
    pub(crate) buyer: UserId,
    /// In the operator's words.
    pub(crate) reason: String,
    /// Unix milliseconds; `None`: never.
    pub(crate) ends_at_ms: Option<i64>,
}

/// A row of `blocked_buyers`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = blocked_buyers)]
pub(crate) struct Block {
    /// The buyer's id, as it is stored.
    pub(crate) user_id: Vec<u8>,
    pub(crate) reason: String,
    #[diesel(column_name = ends_at, deserialize_as = MaybeUnixMs)]
    pub(crate) ends_at_ms: Option<i64>,
    #[diesel(column_name = blocked_at, deserialize_as = UnixMs)]
    pub(crate) blocked_at_ms: i64,
    #[diesel(column_name = lifted_at, deserialize_as = MaybeUnixMs)]
    pub(crate) lifted_at_ms: Option<i64>,
}

impl Block {
    /// The buyer; `None` when the row has what is no id, and so blocks none.
    pub(crate) fn buyer(&self) -> Option<UserId> {
        read_user_id(&self.user_id).ok()
    }

    /// Until when it counts, Unix milliseconds; `None`: it was lifted.
    pub(crate) fn until_ms(&self) -> Option<i64> {
        if self.lifted_at_ms.is_some() { None } else { Some(self.ends_at_ms.unwrap_or(i64::MAX)) }
    }
}

/// A buyer who may not buy, for the admin API and the command line.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Block)]
pub(crate) struct BlockDocument {
    pub(crate) buyer: String,
    /// Why, in the operator's words.
    pub(crate) reason: String,
    /// When it ends by itself, Unix milliseconds; null: never.
    pub(crate) ends_at_ms: Option<i64>,
    /// Since when, Unix milliseconds.
    pub(crate) blocked_at_ms: i64,
}

impl BlockDocument {
    /// `None` for a row that blocks none.
    pub(crate) fn of(block: Block) -> Option<Self> {
        let buyer = block.buyer()?.as_str().to_owned();
        let Block { reason, ends_at_ms, blocked_at_ms, .. } = block;
        Some(Self { buyer, reason, ends_at_ms, blocked_at_ms })
    }
}

/// Why a buyer was not blocked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlockError {
    /// There is no room.
    #[error("{BLOCKS_MAX} buyers are blocked already, and no more can be; lift some, see seckill block list")]
    TooMany,
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// A block before and after an act.
#[derive(Serialize)]
struct Shown<'a> {
    reason: &'a str,
    ends_at_ms: Option<i64>,
}

impl BlockRows {
    /// Blocks a buyer, on record. `false`: the same block was there before, and nothing changed. Repeating is safe.
    pub(crate) async fn add(&self, actor: &Actor, block: &NewBlock) -> Result<bool, BlockError> {
        let added = self
            .db
            .run("block_add", async |conn| {
                transaction(conn, async |conn| {
                    let NewBlock { buyer, reason, ends_at_ms } = block;
                    let before = locked(conn, buyer).await?;
                    if before.as_ref().is_some_and(|old| old.reason == *reason && old.ends_at_ms == *ends_at_ms) {
                        return Ok(Added::Before);
                    }
                    if before.is_none() && in_force(conn).await? >= BLOCKS_MAX {
                        return Ok(Added::NoRoom);
                    }
                    write(conn, block).await?;
                    let mut act = OperatorAct::new(actor, Operation::BuyerBlock, ActTarget::Buyer(buyer.clone()));
                    act.reason = Some(reason.clone());
                    act.before = before.as_ref().map(shown);
                    act.after = Some(json!(Shown { reason, ends_at_ms: *ends_at_ms }));
                    acts::insert(conn, &act).await?;
                    Ok::<_, DbError>(Added::Now)
                })
                .await
            })
            .await?;
        match added {
            Added::Now => Ok(true),
            Added::Before => Ok(false),
            Added::NoRoom => Err(BlockError::TooMany),
        }
    }

    /// Lifts a buyer's block, on record. `false`: there is none. Repeating is safe.
    pub(crate) async fn remove(&self, actor: &Actor, buyer: &UserId) -> Result<bool, DbError> {
        self.db
            .run("block_remove", async |conn| {
                transaction(conn, async |conn| {
                    let Some(before) = locked(conn, buyer).await? else { return Ok(false) };
                    let row = blocked_buyers::table.find(buyer.as_str().as_bytes());
                    let now = || sql::<Datetime>("NOW(3)");
                    let lifted = sql::<Nullable<Datetime>>("NOW(3)");
                    let set = (blocked_buyers::lifted_at.eq(lifted), blocked_buyers::changed_at.eq(now()));
                    diesel::update(row).set(set).execute(conn).await?;
                    let mut act = OperatorAct::new(actor, Operation::BuyerUnblock, ActTarget::Buyer(buyer.clone()));
                    act.before = Some(shown(&before));
                    acts::insert(conn, &act).await?;
                    Ok(true)
                })
                .await
            })
            .await
    }

    /// Blocks that count now, in the order of the buyers' ids, behind `after`; at most `limit`, and at most [`PAGE_MAX`].
    pub(crate) async fn page(&self, after: Option<&UserId>, limit: i64) -> Result<Vec<Block>, DbError> {
        let after = after.map_or(&[][..], |buyer| buyer.as_str().as_bytes());
        self.db
            .run("block_page", async |conn| {
                let blocks = blocked_buyers::table.filter(blocked_buyers::user_id.gt(after));
                let page = blocks.filter(sql::<Bool>(IN_FORCE)).order(blocked_buyers::user_id);
                Ok(page.limit(limit.min(PAGE_MAX)).select(Block::as_select()).load(conn).await?)
            })
            .await
    }

    /// Rows that were changed within these seconds before now, by the database's clock. `None`: there are too many to be read at once.
    pub(crate) async fn changed_within(&self, seconds: u32) -> Result<Option<Vec<Block>>, DbError> {
        let since = format!("NOW(3) - INTERVAL {seconds} SECOND");
        let rows: Vec<Block> = self
            .db
            .run("block_changed", async |conn| {
                let changed = blocked_buyers::table.filter(blocked_buyers::changed_at.ge(sql::<Datetime>(&since)));
                Ok(changed.limit(PAGE_MAX).select(Block::as_select()).load(conn).await?)
            })
            .await?;
        Ok((rows.len() < usize::try_from(PAGE_MAX).unwrap_or(usize::MAX)).then_some(rows))
    }
}

enum Added {
    Now,
    Before,
    NoRoom,
}

/// How many blocks count now.
async fn in_force(conn: &mut Conn) -> Result<i64, DbError> {
    Ok(blocked_buyers::table.filter(sql::<Bool>(IN_FORCE)).count().get_result(conn).await?)
}

/// Writes a block over what there was of the buyer.
async fn write(conn: &mut Conn, block: &NewBlock) -> Result<(), DbError> {
    let user_id = block.buyer.as_str().as_bytes();
    let now = || sql::<Datetime>("NOW(3)");
    let set = (
        blocked_buyers::reason.eq(&block.reason),
        blocked_buyers::ends_at.eq(block.ends_at_ms.map(datetime).transpose()?),
        blocked_buyers::blocked_at.eq(now()),
        blocked_buyers::lifted_at.eq(sql::<Nullable<Datetime>>("NULL")),
        blocked_buyers::changed_at.eq(now()),
    );
    let matched = diesel::update(blocked_buyers::table.find(user_id)).set(set.clone()).execute(conn).await?;
    if matched == 0 {
        let row = (blocked_buyers::user_id.eq(user_id), set);
        diesel::insert_into(blocked_buyers::table).values(row).execute(conn).await?;
    }
    Ok(())
}

/// A buyer's block that counts now, locked.
async fn locked(conn: &mut Conn, buyer: &UserId) -> Result<Option<Block>, DbError> {
    let row = blocked_buyers::table.find(buyer.as_str().as_bytes()).filter(sql::<Bool>(IN_FORCE));
    Ok(row.select(Block::as_select()).for_update().first(conn).await.optional()?)
}

fn shown(block: &Block) -> serde_json::Value {
    json!(Shown { reason: &block.reason, ends_at_ms: block.ends_at_ms })
}
