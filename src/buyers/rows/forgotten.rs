//! Buyers who are being forgotten (`forgotten_buyers`), and the block that keeps them from buying meanwhile.
//!
//! Input: a wish, and how far the work has come. Output: rows. The block lasts a little longer than the work at each moment: an api
//! process that has read it lets the buyer in again by itself, whatever rows are gone by then.

use self::schema::forgotten_buyers;
use crate::buyers::rows::schema::blocked_buyers;
use crate::domain::ids::UserId;
use crate::domain::operator::OperatorAct;
use crate::sales::rows::acts;
use crate::store::mysql::codes::read_user_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Datetime, Nullable};
use diesel_async::RunQueryDsl;

#[allow(missing_docs, reason = "the migration says what each column is")]
mod schema {
    diesel::table! {
        forgotten_buyers (pseudonym) {
            pseudonym -> Binary,
            user_id -> Nullable<Binary>,
            state -> Varchar,
            reason -> Varchar,
            asked_by -> Varchar,
            started_at -> Datetime,
            worked_at -> Datetime,
            ended_at -> Nullable<Datetime>,
        }
    }
}

mysql_handle! {
    /// Buyers who are forgotten.
    pub(super) ForgottenRows
}

/// How long a block lasts that is not renewed, seconds: longer than any step of the work between two renewals.
pub(crate) const BLOCK_S: u32 = 120;
/// Work that was not touched for this time is another process' to end, seconds.
const LEFT_AFTER_S: u32 = 30;
/// Buyers of one question for work that was left.
const LEFT_MAX: i64 = 16;
const RENAMING: &str = "RENAMING";
const CHECKING: &str = "CHECKING";

/// A buyer who is being forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forgetting {
    pub(crate) buyer: UserId,
    pub(crate) pseudonym: UserId,
    /// In the operator's words, without the id.
    pub(crate) reason: String,
    /// The operator, in a word.
    pub(crate) asked_by: String,
    /// Whether it can only go forward.
    pub(crate) is_decided: bool,
}

/// Its row.
type ForgottenRow = (Vec<u8>, Option<Vec<u8>>, String, String, String);

fn read((pseudonym, user_id, state, reason, asked_by): ForgottenRow) -> Result<Option<Forgetting>, DbError> {
    let Some(user_id) = user_id else { return Ok(None) };
    let (buyer, pseudonym) = (read_user_id(&user_id)?, read_user_id(&pseudonym)?);
    Ok(Some(Forgetting { buyer, pseudonym, reason, asked_by, is_decided: state == RENAMING }))
}

macro_rules! columns {
    () => {
        (
            forgotten_buyers::pseudonym,
            forgotten_buyers::user_id,
            forgotten_buyers::state,
            forgotten_buyers::reason,
            forgotten_buyers::asked_by,
        )
    };
}

fn now() -> diesel::expression::SqlLiteral<Datetime> {
    sql("NOW(3)")
}

impl ForgottenRows {
    /// The work on this buyer that has not ended.
    pub(crate) async fn of(&self, buyer: &UserId) -> Result<Option<Forgetting>, DbError> {
        let row: Option<ForgottenRow> = self
            .db
            .run("forgotten_of", async |conn| {
                let rows = forgotten_buyers::table.filter(forgotten_buyers::user_id.eq(buyer.as_str().as_bytes()));
                Ok(rows.select(columns!()).first(conn).await.optional()?)
            })
            .await?;
        row.map_or(Ok(None), read)
    }

    /// Work that no process has touched for a while, the oldest first.
    pub(crate) async fn left(&self) -> Result<Vec<Forgetting>, DbError> {
        let left = format!("worked_at < NOW(3) - INTERVAL {LEFT_AFTER_S} SECOND");
        let rows: Vec<ForgottenRow> = self
            .db
            .run("forgotten_left", async |conn| {
                let rows = forgotten_buyers::table.filter(forgotten_buyers::user_id.is_not_null());
                let rows = rows.filter(sql::<Bool>(&left)).order(forgotten_buyers::started_at).limit(LEFT_MAX);
                Ok(rows.select(columns!()).load(conn).await?)
            })
            .await?;
        Ok(rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Whether there is a block of this buyer, or was.
    pub(crate) async fn is_blocked_or_was(&self, buyer: &UserId) -> Result<bool, DbError> {
        let of = buyer.as_str().as_bytes();
        self.db
            .run("forgotten_block", async |conn| {
                Ok(blocked_buyers::table.find(of).count().get_result::<i64>(conn).await? > 0)
            })
            .await
    }

    /// Begins: the row, and a block unless there is one. `false`: another process was first.
    pub(crate) async fn begin(&self, new: &Forgetting) -> Result<bool, DbError> {
        let begun = self
            .db
            .run("forgotten_begin", async |conn| {
                transaction(conn, async |conn| {
                    let row = (
                        forgotten_buyers::pseudonym.eq(new.pseudonym.as_str().as_bytes()),
                        forgotten_buyers::user_id.eq(new.buyer.as_str().as_bytes()),
                        forgotten_buyers::state.eq(CHECKING),
                        forgotten_buyers::reason.eq(&new.reason),
                        forgotten_buyers::asked_by.eq(&new.asked_by),
                    );
                    diesel::insert_into(forgotten_buyers::table).values(row).execute(conn).await?;
                    block(conn, new).await
                })
                .await
            })
            .await;
        match begun {
            Ok(()) => Ok(true),
            Err(error) if error.is_duplicate_of("uk_forgotten_user") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// This process works on it: no other takes it up, and the block is renewed. `false`: the work has ended.
    pub(crate) async fn keep(&self, of: &Forgetting) -> Result<bool, DbError> {
        self.db
            .run("forgotten_keep", async |conn| {
                transaction(conn, async |conn| {
                    let is_open = touch(conn, of).await?;
                    if is_open {
                        block(conn, of).await?;
                    }
                    Ok(is_open)
                })
                .await
            })
            .await
    }

    /// From here on it only goes forward; on record.
    pub(crate) async fn decide(&self, of: &Forgetting, act: &OperatorAct) -> Result<(), DbError> {
        self.db
            .run("forgotten_decide", async |conn| {
                transaction(conn, async |conn| {
                    let row = forgotten_buyers::table.find(of.pseudonym.as_str().as_bytes());
                    let undecided = row.filter(forgotten_buyers::state.eq(CHECKING));
                    let decided = forgotten_buyers::state.eq(RENAMING);
                    if diesel::update(undecided).set(decided).execute(conn).await? == 1 {
                        acts::insert(conn, act).await?;
                    }
                    Ok(())
                })
                .await
            })
            .await
    }

    /// Nothing was renamed, and nothing will be: the buyer may buy again.
    pub(crate) async fn give_up(&self, of: &Forgetting) -> Result<(), DbError> {
        self.db
            .run("forgotten_give_up", async |conn| {
                transaction(conn, async |conn| {
                    end(conn, of, CHECKING, "REFUSED").await?;
                    let own = own_block(of);
                    let lifted = sql::<Nullable<Datetime>>("NOW(3)");
                    let set = (blocked_buyers::lifted_at.eq(lifted), blocked_buyers::changed_at.eq(now()));
                    diesel::update(own).set(set).execute(conn).await?;
                    Ok(())
                })
                .await
            })
            .await
    }

    /// The end: no row knows the id any more, and the block is that of the pseudonym, and lifted.
    pub(crate) async fn end(&self, of: &Forgetting) -> Result<(), DbError> {
        self.db
            .run("forgotten_end", async |conn| {
                transaction(conn, async |conn| {
                    let set = (
                        blocked_buyers::user_id.eq(of.pseudonym.as_str().as_bytes()),
                        blocked_buyers::lifted_at.eq(sql::<Nullable<Datetime>>("NOW(3)")),
                        blocked_buyers::changed_at.eq(now()),
                    );
                    // Another process may have ended it, and the buyer may be back as a new one.
                    if end(conn, of, RENAMING, "DONE").await? {
                        let row = blocked_buyers::table.find(of.buyer.as_str().as_bytes());
                        diesel::update(row).set(set).execute(conn).await?;
                    }
                    Ok(())
                })
                .await
            })
            .await
    }
}

/// Says why a buyer is blocked whose row this room has written.
fn block_reason(of: &Forgetting) -> String {
    format!("is being forgotten as {}", of.pseudonym)
}

type OwnBlock = diesel::dsl::Filter<
    diesel::dsl::Find<blocked_buyers::table, Vec<u8>>,
    diesel::dsl::Eq<blocked_buyers::reason, String>,
>;

fn own_block(of: &Forgetting) -> OwnBlock {
    let row = blocked_buyers::table.find(of.buyer.as_str().as_bytes().to_vec());
    row.filter(blocked_buyers::reason.eq(block_reason(of)))
}

/// Blocks the buyer for a while, or for a while longer. An operator's block that lasts longer stays as it is.
async fn block(conn: &mut Conn, of: &Forgetting) -> Result<(), DbError> {
    let ends = || sql::<Nullable<Datetime>>(&format!("NOW(3) + INTERVAL {BLOCK_S} SECOND"));
    let lasts = format!("(lifted_at IS NULL AND (ends_at IS NULL OR ends_at > NOW(3) + INTERVAL {BLOCK_S} SECOND))");
    let row = || blocked_buyers::table.find(of.buyer.as_str().as_bytes());
    let there: i64 = row().filter(sql::<Bool>(&lasts)).count().get_result(conn).await?;
    if there > 0 {
        return Ok(());
    }
    let set = (
        blocked_buyers::reason.eq(block_reason(of)),
        blocked_buyers::ends_at.eq(ends()),
        blocked_buyers::blocked_at.eq(now()),
        blocked_buyers::lifted_at.eq(sql::<Nullable<Datetime>>("NULL")),
        blocked_buyers::changed_at.eq(now()),
    );
    if diesel::update(row()).set(set.clone()).execute(conn).await? == 0 {
        let row = (blocked_buyers::user_id.eq(of.buyer.as_str().as_bytes()), set);
        diesel::insert_into(blocked_buyers::table).values(row).execute(conn).await?;
    }
    Ok(())
}

/// Whether the work is under way; the row is locked then.
async fn touch(conn: &mut Conn, of: &Forgetting) -> Result<bool, DbError> {
    let row = || forgotten_buyers::table.find(of.pseudonym.as_str().as_bytes());
    let open = row().filter(forgotten_buyers::user_id.is_not_null()).select(forgotten_buyers::pseudonym);
    let pseudonym: Option<Vec<u8>> = open.for_update().first(conn).await.optional()?;
    diesel::update(row().filter(forgotten_buyers::user_id.is_not_null()))
        .set(forgotten_buyers::worked_at.eq(now()))
        .execute(conn)
        .await?;
    Ok(pseudonym.is_some())
}

/// Whether it has ended now; `false`: it was not in this state any more.
async fn end(conn: &mut Conn, of: &Forgetting, from: &str, to: &str) -> Result<bool, DbError> {
    let row = forgotten_buyers::table.find(of.pseudonym.as_str().as_bytes());
    let set = (
        forgotten_buyers::state.eq(to),
        forgotten_buyers::user_id.eq(sql::<Nullable<diesel::sql_types::Binary>>("NULL")),
        forgotten_buyers::ended_at.eq(sql::<Nullable<Datetime>>("NOW(3)")),
        forgotten_buyers::worked_at.eq(now()),
    );
    Ok(diesel::update(row.filter(forgotten_buyers::state.eq(from))).set(set).execute(conn).await? == 1)
}
