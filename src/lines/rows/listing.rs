//! Entries of a line as operators see them: page by page, and how many there are in each state. Reads only.
//!
//! Input: a sale. Output: rows as they are at that moment; entries come and go between two pages. A crash leaves nothing.

use super::LineRows;
use super::own::{entry_id, entry_state};
use super::schema::line_entries;
use crate::domain::ids::{EntryId, RequestId, SaleId, UserId};
use crate::domain::line::EntryState;
use crate::store::mysql::codes::{read_request_id, read_user_id};
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// Entries of one page, at most.
pub(crate) const PAGE_MAX: u16 = 200;

/// Which entries of a line are listed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EntriesQuery {
    /// Only in this state.
    pub(crate) state: Option<EntryState>,
    /// Only behind this one.
    pub(crate) after: Option<EntryId>,
    /// Rows, 1 to [`PAGE_MAX`].
    pub(crate) limit: u16,
}

/// An entry with its buyer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedEntry {
    pub(crate) id: EntryId,
    pub(crate) user: UserId,
    /// Where the sale limits by person.
    pub(crate) person: Option<UserId>,
    pub(crate) quantity: u32,
    pub(crate) state: EntryState,
    pub(crate) listed: bool,
    /// As it is written, which that of a raffle is with its offer.
    pub(crate) rank: Option<u32>,
    /// The request of its offer.
    pub(crate) request_id: Option<RequestId>,
    /// Why its offer lapsed.
    pub(crate) lapse_reason: Option<String>,
    /// Unix milliseconds, as `state_at_ms`.
    pub(crate) entered_at_ms: i64,
    pub(crate) state_at_ms: i64,
}

/// Entries of a line, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EntryTally {
    /// How many are in each state; a state of no entry is not among them.
    pub(crate) by_state: Vec<(EntryState, u64)>,
    /// Those that wait and have a request all the same: it is asked again until there are units for it.
    pub(crate) in_hand: u64,
    /// The highest rank that has had an offer.
    pub(crate) offered_to_rank: Option<u32>,
}

type Columns =
    (u64, Vec<u8>, Option<Vec<u8>>, u32, String, bool, Option<u32>, Option<u64>, UnixMs, (UnixMs, Option<String>));

#[derive(QueryableByName)]
struct StateRow {
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = BigInt)]
    entries: i64,
    #[diesel(sql_type = BigInt)]
    with_request: i64,
}

#[derive(QueryableByName)]
struct RankRow {
    #[diesel(sql_type = Nullable<Unsigned<Integer>>)]
    last: Option<u32>,
}

impl LineRows {
    /// A page of entries, in the order of their ids.
    pub(crate) async fn entries(&self, sale: &SaleId, query: EntriesQuery) -> Result<Vec<ListedEntry>, DbError> {
        let rows: Vec<Columns> = self
            .db
            .patient()
            .run("line_entries", async |conn| {
                let mut page = line_entries::table
                    .filter(line_entries::sale_id.eq(sale.as_str().as_bytes()))
                    .filter(line_entries::entry_id.gt(query.after.map_or(0, EntryId::get)))
                    .order(line_entries::entry_id)
                    .limit(query.limit.min(PAGE_MAX).into())
                    .select((
                        line_entries::entry_id,
                        line_entries::user_id,
                        line_entries::person,
                        line_entries::quantity,
                        line_entries::state,
                        line_entries::listed,
                        line_entries::entry_rank,
                        line_entries::request_id,
                        line_entries::entered_at,
                        (line_entries::state_at, line_entries::lapse_reason),
                    ))
                    .into_boxed();
                if let Some(state) = query.state {
                    page = page.filter(line_entries::state.eq(state.code()));
                }
                Ok(page.load(conn).await?)
            })
            .await?;
        rows.into_iter().map(read).collect()
    }

    /// Counts the entries of a line: a walk over all of them, some seconds for some millions.
    pub(crate) async fn tally(&self, sale: &SaleId) -> Result<EntryTally, DbError> {
        let key = sale.as_str().as_bytes();
        let by_state = "SELECT state, COUNT(*) AS entries, COUNT(request_id) AS with_request FROM line_entries \
             WHERE sale_id = ? GROUP BY state";
        // Few rows, however long the line is: no more than units.
        let last = "SELECT MAX(entry_rank) AS last FROM line_entries \
             WHERE sale_id = ? AND state IN ('OFFERED', 'TAKEN', 'LAPSED') AND request_id IS NOT NULL";
        let (rows, rank): (Vec<StateRow>, RankRow) = self
            .db
            .patient()
            .run("line_tally", async |conn| {
                let rows = diesel::sql_query(by_state).bind::<Binary, _>(key).load(conn).await?;
                Ok((rows, diesel::sql_query(last).bind::<Binary, _>(key).get_result(conn).await?))
            })
            .await?;
        let mut tally = EntryTally { offered_to_rank: rank.last, ..EntryTally::default() };
        for row in rows {
            let state = entry_state(&row.state)?;
            if state == EntryState::Waiting {
                tally.in_hand = row.with_request.unsigned_abs();
            }
            tally.by_state.push((state, row.entries.unsigned_abs()));
        }
        Ok(tally)
    }
}

fn read(columns: Columns) -> Result<ListedEntry, DbError> {
    let (id, user, person, quantity, state, listed, rank, request_id, entered_at, (state_at, lapse_reason)) = columns;
    Ok(ListedEntry {
        id: entry_id(id)?,
        user: read_user_id(&user)?,
        person: person.as_deref().map(read_user_id).transpose()?,
        quantity,
        state: entry_state(&state)?,
        listed,
        rank,
        request_id: request_id.map(read_request_id).transpose()?,
        entered_at_ms: entered_at.into(),
        state_at_ms: state_at.into(),
        lapse_reason,
    })
}
