//! Entries of a line, added in groups.
//!
//! Input: entries that their api process has judged. Output: rows that are committed when the answer is there. A crash leaves a whole group or
//! nothing of it; who has no answer enters again and finds the entry of before. One line takes one group at a time: its row is held, so the
//! bound is exact and no two groups meet in an index.

use super::LineRows;
use super::own::{entry_id, entry_state};
use super::schema::line_entries;
use crate::domain::buyer::limit_key;
use crate::domain::ids::{EntryId, SaleId, UserId};
use crate::domain::line::{EntryEvent, EntryState, EntryTransition, LineState};
use crate::faults::crash_point;
use crate::store::mysql::codes::{read_user_id, unix_ms};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Datetime, Integer, Text, Unsigned};
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// How often a group is tried that the database undid because of contention.
const TRIES: u32 = 3;

/// An entry that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct NewEntry {
    pub(crate) id: EntryId,
    pub(crate) sale_id: SaleId,
    pub(crate) user: UserId,
    /// Where the sale limits by person.
    pub(crate) person: Option<UserId>,
    /// Units, within the limit of the sale.
    pub(crate) quantity: u32,
}

impl NewEntry {
    /// Who may be in the line once.
    fn limit_key(&self) -> &[u8] {
        limit_key(&self.user, self.person.as_ref()).as_str().as_bytes()
    }
}

/// What became of an entry that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It is committed; at this time, Unix milliseconds by the database's clock. With its rank, of a waiting list.
    Now(i64, Option<u32>),
    /// Its buyer, or another account of the same person, is in the line.
    Before(EntryId, UserId),
    /// The line does not take entries any more.
    Closed,
    /// It is a waiting list of a sale that is not sold out.
    Awaited,
    /// It has as many as it may have.
    Full,
    /// The sale has no line.
    NoLine,
}

#[derive(QueryableByName)]
struct HeldLine {
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Bool)]
    takes: bool,
    #[diesel(sql_type = Unsigned<BigInt>)]
    entries_count: u64,
    #[diesel(sql_type = Bool)]
    by_arrival: bool,
    #[diesel(sql_type = Unsigned<Integer>)]
    last_rank: u32,
    #[diesel(sql_type = Datetime)]
    now: NaiveDateTime,
}

impl HeldLine {
    /// The next rank; none in a raffle.
    fn next_rank(&mut self) -> Option<u32> {
        self.last_rank = self.last_rank.saturating_add(u32::from(self.by_arrival));
        self.by_arrival.then_some(self.last_rank)
    }
}

#[derive(Insertable)]
#[diesel(table_name = line_entries)]
struct EntryRow<'a> {
    sale_id: &'a [u8],
    entry_id: u64,
    user_id: &'a [u8],
    person: Option<&'a [u8]>,
    limit_key: &'a [u8],
    quantity: u32,
    entry_rank: Option<u32>,
    state: &'static str,
    listed: bool,
    entered_at: NaiveDateTime,
    state_at: NaiveDateTime,
}

impl<'a> EntryRow<'a> {
    fn of(entry: &'a NewEntry, now: NaiveDateTime, rank: Option<u32>) -> Self {
        Self {
            sale_id: entry.sale_id.as_str().as_bytes(),
            entry_id: entry.id.get(),
            user_id: entry.user.as_str().as_bytes(),
            person: entry.person.as_ref().map(|person| person.as_str().as_bytes()),
            limit_key: entry.limit_key(),
            quantity: entry.quantity,
            entry_rank: rank,
            state: EntryState::Waiting.code(),
            listed: true,
            entered_at: now,
            state_at: now,
        }
    }
}

/// Who is in the line under a key: the entry, its buyer, its state.
type There = (u64, Vec<u8>, String);

impl LineRows {
    /// Adds a group of entries of one sale: committed when this returns, all that can be, in the order given. `entries_max`: of the line.
    pub(crate) async fn enter(
        &self,
        sale: &SaleId,
        group: &[NewEntry],
        entries_max: u64,
    ) -> Result<Vec<Entered>, DbError> {
        let mut tries = 1;
        loop {
            let entered = self
                .db
                .run("line_enter", async |conn| {
                    transaction(conn, async |conn| enter_held(conn, sale, group, entries_max).await).await
                })
                .await;
            match entered {
                Err(DbError::Deadlock) if tries < TRIES => tries += 1,
                entered => return entered,
            }
        }
    }
}

async fn enter_held(
    conn: &mut Conn,
    sale: &SaleId,
    group: &[NewEntry],
    entries_max: u64,
) -> Result<Vec<Entered>, DbError> {
    let all = |outcome: Entered| Ok(vec![outcome; group.len()]);
    let Some(mut line) = hold(conn, sale).await? else { return all(Entered::NoLine) };
    let state = LineState::from_code(&line.state);
    if state == Some(LineState::Awaited) {
        return all(Entered::Awaited);
    }
    if state != Some(LineState::Open) || !line.takes {
        return all(Entered::Closed);
    }
    let mut there = there(conn, sale, group).await?;
    let (mut outcomes, mut rows, mut again) = (Vec::with_capacity(group.len()), Vec::new(), Vec::new());
    let mut room = entries_max.saturating_sub(line.entries_count);
    for entry in group {
        let before = there.get(entry.limit_key());
        let state = before.map(|(_, _, state)| entry_state(state)).transpose()?;
        let outcome = match (before, state.map(|state| state.after(EntryEvent::Entered))) {
            (Some((old, ..)), Some(EntryTransition::To(_))) => {
                let rank = line.next_rank();
                again.push((*old, EntryRow::of(entry, line.now, rank)));
                Entered::Now(unix_ms(line.now), rank)
            }
            (Some((old, user, _)), _) => Entered::Before(entry_id(*old)?, read_user_id(user)?),
            (None, _) if room == 0 => Entered::Full,
            (None, _) => {
                room -= 1;
                let rank = line.next_rank();
                rows.push(EntryRow::of(entry, line.now, rank));
                Entered::Now(unix_ms(line.now), rank)
            }
        };
        if matches!(outcome, Entered::Now(..)) {
            let user = entry.user.as_str().as_bytes().to_vec();
            let is_there = (entry.id.get(), user, EntryState::Waiting.code().to_owned());
            there.insert(entry.limit_key().to_vec(), is_there);
        }
        outcomes.push(outcome);
    }
    write(conn, (sale, line.last_rank), &rows, &again).await?;
    crash_point!(EntriesWritten);
    Ok(outcomes)
}

/// Holds the line's row to the end of the transaction.
async fn hold(conn: &mut Conn, sale: &SaleId) -> Result<Option<HeldLine>, DbError> {
    // The clock of the statement: who waited for the row came in time all the same, unless the line was closed meanwhile.
    let query = "SELECT state, entries_count, kind = 'waitlist' AS by_arrival, last_rank, NOW(3) AS now, \
         kind = 'waitlist' OR (opens_at <= NOW(3) AND closes_at > NOW(3)) AS takes FROM sale_lines WHERE sale_id = ? FOR UPDATE";
    Ok(diesel::sql_query(query).bind::<Binary, _>(sale.as_str().as_bytes()).get_result(conn).await.optional()?)
}

async fn there(conn: &mut Conn, sale: &SaleId, group: &[NewEntry]) -> Result<HashMap<Vec<u8>, There>, DbError> {
    let keys = group.iter().map(NewEntry::limit_key);
    let found = line_entries::table
        .filter(line_entries::sale_id.eq(sale.as_str().as_bytes()))
        .filter(line_entries::limit_key.eq_any(keys))
        .select((line_entries::limit_key, (line_entries::entry_id, line_entries::user_id, line_entries::state)));
    let found: Vec<(Vec<u8>, There)> = found.load(conn).await?;
    Ok(found.into_iter().collect())
}

/// Writes what is new, and over what had left before.
async fn write(
    conn: &mut Conn,
    (sale, last_rank): (&SaleId, u32),
    rows: &[EntryRow<'_>],
    again: &[(u64, EntryRow<'_>)],
) -> Result<(), DbError> {
    for (old, row) in again {
        let set = (
            line_entries::entry_id.eq(row.entry_id),
            line_entries::user_id.eq(row.user_id),
            line_entries::quantity.eq(row.quantity),
            line_entries::entry_rank.eq(row.entry_rank),
            line_entries::state.eq(row.state),
            line_entries::listed.eq(true),
            line_entries::entered_at.eq(row.entered_at),
            line_entries::state_at.eq(row.state_at),
        );
        diesel::update(line_entries::table.find((row.sale_id, *old))).set(set).execute(conn).await?;
    }
    if rows.is_empty() && again.is_empty() {
        return Ok(());
    }
    if !rows.is_empty() {
        diesel::insert_into(line_entries::table).values(rows).execute(conn).await?;
    }
    let count = "UPDATE sale_lines SET entries_count = entries_count + ?, last_rank = ? WHERE sale_id = ?";
    diesel::sql_query(count)
        .bind::<Unsigned<BigInt>, _>(rows.len() as u64)
        .bind::<Unsigned<Integer>, _>(last_rank)
        .bind::<Binary, _>(sale.as_str().as_bytes())
        .execute(conn)
        .await?;
    Ok(())
}
