//! One buyer's entry: left, and read.
//!
//! Input: a buyer. Output: the row; who leaves holds the line's row meanwhile, so the list of a closed line stays what it is. A crash leaves
//! the entry as it was, or left.

use super::LineRows;
use super::schema::line_entries;
use crate::domain::ids::{EntryId, RequestId, SaleId, UserId};
use crate::domain::line::{EntryEvent, EntryState, EntryTransition, LineState};
use crate::faults::left_out;
use crate::store::mysql::codes::{read_request_id, unreadable};
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::transaction::transaction;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Datetime, Integer, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// What became of the wish to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftLine {
    /// The entry is out of the line, now or since before.
    Left,
    /// It has, or had, an offer.
    Offered(EntryState),
    /// The buyer has no such entry.
    Unknown,
}

/// A row of `line_entries`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: EntryId,
    pub(crate) quantity: u32,
    pub(crate) state: EntryState,
    pub(crate) entered_at_ms: i64,
    /// Of a waiting list; of a raffle once its turn has come.
    pub(crate) rank: Option<u32>,
    /// Once its turn has come.
    pub(crate) request_id: Option<RequestId>,
    pub(crate) lapse_reason: Option<String>,
}

#[derive(QueryableByName)]
struct Before {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Entries that are counted at most in front of one.
const BEFORE_MAX: u32 = 10_000;

#[derive(QueryableByName)]
struct SharedLine {
    #[diesel(sql_type = Bool)]
    is_open: bool,
}

pub(super) fn entry_id(value: u64) -> Result<EntryId, DbError> {
    EntryId::new(value).ok_or_else(|| unreadable("line_entries.entry_id", &value.to_string()))
}

pub(super) fn entry_state(code: &str) -> Result<EntryState, DbError> {
    EntryState::from_code(code).ok_or_else(|| unreadable("line_entries.state", code))
}

impl LineRows {
    /// Takes an entry of this buyer out of the line; out of the list as well, while the line is open. Repeating is safe.
    pub(crate) async fn leave(&self, sale: &SaleId, id: EntryId, user: &UserId) -> Result<LeftLine, DbError> {
        self.db
            .run("line_leave", async |conn| {
                transaction(conn, async |conn| {
                    let shared = "SELECT state = ? AS is_open FROM sale_lines WHERE sale_id = ? LOCK IN SHARE MODE";
                    let held = diesel::sql_query(shared)
                        .bind::<Text, _>(LineState::Open.code())
                        .bind::<Binary, _>(sale.as_str().as_bytes());
                    let held: Option<SharedLine> = held.get_result(conn).await.optional()?;
                    let Some(SharedLine { is_open }) = held else { return Ok(LeftLine::Unknown) };
                    let row = line_entries::table.find((sale.as_str().as_bytes(), id.get()));
                    let mine = row.filter(line_entries::user_id.eq(user.as_str().as_bytes()));
                    let columns = (line_entries::state, line_entries::request_id);
                    let found: Option<(String, Option<u64>)> =
                        mine.select(columns).for_update().first(conn).await.optional()?;
                    let Some((state, request_id)) = found else { return Ok(LeftLine::Unknown) };
                    let state = entry_state(&state)?;
                    // Its offer is under way: P2 may have accepted it.
                    if state == EntryState::Waiting && request_id.is_some() && !left_out!(InHandStays) {
                        return Ok(LeftLine::Offered(state));
                    }
                    match state.after(EntryEvent::LeftByBuyer) {
                        EntryTransition::To(to) => {
                            let stays = if is_open { "0" } else { "listed" };
                            let set = (
                                line_entries::state.eq(to.code()),
                                line_entries::listed.eq(sql::<Bool>(stays)),
                                line_entries::state_at.eq(sql::<Datetime>("NOW(3)")),
                            );
                            diesel::update(row).set(set).execute(conn).await?;
                            Ok(LeftLine::Left)
                        }
                        EntryTransition::Already => Ok(LeftLine::Left),
                        EntryTransition::Refused => Ok::<_, DbError>(LeftLine::Offered(state)),
                    }
                })
                .await
            })
            .await
    }

    /// The entry of this buyer: the one that is in the line, else the last one that left.
    pub(crate) async fn entry_of(&self, sale: &SaleId, user: &UserId) -> Result<Option<Entry>, DbError> {
        type Columns = (u64, u32, String, UnixMs, (Option<u32>, Option<u64>, Option<String>));
        let found: Option<Columns> = self
            .db
            .run("line_mine", async |conn| {
                let of_buyer = line_entries::table
                    .filter(line_entries::sale_id.eq(sale.as_str().as_bytes()))
                    .filter(line_entries::user_id.eq(user.as_str().as_bytes()));
                let offer = (line_entries::entry_rank, line_entries::request_id, line_entries::lapse_reason);
                let columns = (
                    line_entries::entry_id,
                    line_entries::quantity,
                    line_entries::state,
                    line_entries::entered_at,
                    offer,
                );
                let order = (sql::<Bool>("state = 'LEFT'"), line_entries::entry_id.desc());
                Ok(of_buyer.select(columns).order(order).first(conn).await.optional()?)
            })
            .await?;
        let read = |(id, quantity, state, entered_at, (rank, request_id, lapse_reason)): Columns| {
            let (id, state, entered_at_ms) = (entry_id(id)?, entry_state(&state)?, entered_at.into());
            let request_id = request_id.map(read_request_id).transpose()?;
            Ok(Entry { id, quantity, state, entered_at_ms, rank, request_id, lapse_reason })
        };
        found.map(read).transpose()
    }

    /// How many entries of a waiting list wait in front of a rank; 10,000 at most.
    pub(crate) async fn waiting_before(&self, sale: &SaleId, rank: u32) -> Result<u32, DbError> {
        let query = format!(
            "SELECT COUNT(*) AS n FROM (SELECT 1 FROM line_entries WHERE sale_id = ? AND state = 'WAITING' \
             AND request_id IS NULL AND entry_rank < ? LIMIT {BEFORE_MAX}) front"
        );
        let Before { n } = self
            .db
            .run("line_before", async |conn| {
                let front = diesel::sql_query(&query).bind::<Binary, _>(sale.as_str().as_bytes());
                Ok(front.bind::<Unsigned<Integer>, _>(rank).get_result(conn).await?)
            })
            .await?;
        Ok(u32::try_from(n).unwrap_or(BEFORE_MAX))
    }
}
