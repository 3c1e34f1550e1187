//! One buyer's entry: left, and read.
//!
//! Input: a buyer. Output: the row; who leaves holds the line's row meanwhile, so the list of a closed line stays what it is. A crash leaves
//! the entry as it was, or left.

use super::LineRows;
use super::schema::line_entries;
use crate::domain::ids::{EntryId, SaleId, UserId};
use crate::domain::line::{EntryEvent, EntryState, EntryTransition, LineState};
use crate::store::mysql::codes::unreadable;
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::transaction::transaction;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Binary, Bool, Datetime, Text};
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
}

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
                    let state: Option<String> =
                        mine.select(line_entries::state).for_update().first(conn).await.optional()?;
                    let Some(state) = state.as_deref().map(entry_state).transpose()? else {
                        return Ok(LeftLine::Unknown);
                    };
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
        type Columns = (u64, u32, String, UnixMs);
        let found: Option<Columns> = self
            .db
            .run("line_mine", async |conn| {
                let of_buyer = line_entries::table
                    .filter(line_entries::sale_id.eq(sale.as_str().as_bytes()))
                    .filter(line_entries::user_id.eq(user.as_str().as_bytes()));
                let columns =
                    (line_entries::entry_id, line_entries::quantity, line_entries::state, line_entries::entered_at);
                let order = (sql::<Bool>("state = 'LEFT'"), line_entries::entry_id.desc());
                Ok(of_buyer.select(columns).order(order).first(conn).await.optional()?)
            })
            .await?;
        let read = |(id, quantity, state, entered_at): Columns| {
            Ok(Entry { id: entry_id(id)?, quantity, state: entry_state(&state)?, entered_at_ms: entered_at.into() })
        };
        found.map(read).transpose()
    }
}
