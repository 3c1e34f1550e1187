//! Whether the units of a sale go to its line: `sales.by_line`, and the state of the line with it.
//!
//! Input: what the leader saw. Output: rows, each statement or transaction conditional on what is so. `by_line` stands before the first entry
//! of a waiting list, and goes only while the line's row is held and no entry waits; the door in Redis follows. A crash between the two leaves
//! a door that lets in less than the rows say, never more: the next step aligns it.

use super::{LineRows, line_kind, line_state};
use crate::domain::ids::SaleId;
use crate::domain::line::{EntryState, LineKind, LineState};
use crate::domain::sale::Sale;
use crate::faults::left_out;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{Binary, Bool, Integer, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// Lines of one page.
pub(crate) const SERVED_MAX: usize = 64;

/// A line whose units have to be given out, or whose door may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedLine {
    pub(crate) sale_id: SaleId,
    pub(crate) kind: LineKind,
    pub(crate) state: LineState,
    /// Whether the units go to the line.
    pub(crate) by_line: bool,
    /// Whether the window of its sale has begun, by the database's clock.
    pub(crate) has_begun: bool,
    /// Whether the sale is over: its window, or it is closed.
    pub(crate) is_over: bool,
}

#[derive(QueryableByName)]
struct ServedRow {
    #[diesel(sql_type = Binary)]
    sale_id: SaleId,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Bool)]
    by_line: bool,
    #[diesel(sql_type = Bool)]
    has_begun: bool,
    #[diesel(sql_type = Bool)]
    is_over: bool,
}

#[derive(QueryableByName)]
struct Holds {
    #[diesel(sql_type = Bool)]
    holds: bool,
}

impl LineRows {
    /// Waiting lists and drawn raffles that are not done, of sales that were warmed, behind `after` in the order of sales; [`SERVED_MAX`] at
    /// most.
    pub(crate) async fn served_lines(&self, after: Option<&SaleId>) -> Result<Vec<ServedLine>, DbError> {
        let query = format!(
            "SELECT l.sale_id, l.kind, l.state, s.by_line, s.starts_at <= NOW(3) AS has_begun, \
             (s.status = 'closed' OR s.ends_at <= NOW(3)) AS is_over FROM sale_lines l JOIN sales s ON s.sale_id = l.sale_id \
             WHERE l.sale_id > ? AND s.status <> 'draft' \
             AND (l.state = 'DRAWN' OR (l.kind = 'waitlist' AND l.state IN ('AWAITED', 'OPEN'))) \
             ORDER BY l.sale_id LIMIT {SERVED_MAX}"
        );
        let after = after.map_or(&[][..], |id| id.as_str().as_bytes());
        let rows: Vec<ServedRow> = self
            .db
            .run("line_served", async |conn| Ok(diesel::sql_query(&query).bind::<Binary, _>(after).load(conn).await?))
            .await?;
        let read = |row: ServedRow| {
            let ServedRow { sale_id, by_line, has_begun, is_over, .. } = row;
            let (kind, state) = (line_kind(&row.kind)?, line_state(&row.state)?);
            Ok(ServedLine { sale_id, kind, state, by_line, has_begun, is_over })
        };
        rows.into_iter().map(read).collect()
    }

    /// Says that the units of a sale go to its waiting list, which takes no entries yet. Whether it says so now for the first time.
    pub(crate) async fn give_to_line(&self, sale: &SaleId) -> Result<bool, DbError> {
        let query = "UPDATE sales s JOIN sale_lines l ON l.sale_id = s.sale_id SET s.by_line = 1, s.version = s.version + 1 \
             WHERE s.sale_id = ? AND s.by_line = 0 AND s.status = 'warmed' AND l.kind = 'waitlist' AND l.state = 'AWAITED'";
        self.changed("line_given", query, sale).await
    }

    /// Opens the waiting list of a sale whose door is its line's by now, as the sale was read: nothing of it has changed since, `by_line` did
    /// not go and come back.
    pub(crate) async fn open_waitlist(&self, sale: &Sale) -> Result<bool, DbError> {
        let is_so = if left_out!(LineOfVersion) { "s.version >= ?" } else { "s.version = ?" };
        let query = format!(
            "UPDATE sale_lines l JOIN sales s ON s.sale_id = l.sale_id SET l.state = 'OPEN', l.opens_at = NOW(3) \
             WHERE l.sale_id = ? AND l.kind = 'waitlist' AND l.state = 'AWAITED' AND s.by_line = 1 AND {is_so}"
        );
        let changed = self
            .db
            .run("line_open", async |conn| {
                let opened = diesel::sql_query(&query).bind::<Binary, _>(sale.sale_id.as_str().as_bytes());
                Ok(opened.bind::<Unsigned<Integer>, _>(sale.version).execute(conn).await?)
            })
            .await?;
        Ok(changed > 0)
    }

    /// Gives the units of a sale to clicks again, if no entry waits in its line. The line's row is held meanwhile: no entry comes in between.
    pub(crate) async fn give_to_clicks(&self, sale: &SaleId) -> Result<bool, DbError> {
        let key = sale.as_str().as_bytes();
        self.db
            .run("line_to_clicks", async |conn| {
                transaction(conn, async |conn| {
                    // A leader that slept comes when the line awaits entries again, and its door is being shut.
                    let held = "SELECT state IN ('OPEN', 'DRAWN') AS holds FROM sale_lines WHERE sale_id = ? FOR UPDATE";
                    let held = diesel::sql_query(held).bind::<Binary, _>(key).get_result(conn).await.optional()?;
                    if !held.is_some_and(|Holds { holds }| holds) && !left_out!(NoEntryWaits) {
                        return Ok(false);
                    }
                    let offered = if left_out!(ForgottenWaits) { "none" } else { EntryState::Offered.code() };
                    let waits = "SELECT EXISTS (SELECT 1 FROM line_entries e WHERE e.sale_id = ? AND (e.state = 'WAITING' OR (e.state = ? \
                         AND NOT EXISTS (SELECT 1 FROM request_outcome o WHERE o.request_id = e.request_id)))) AS holds";
                    let waits = diesel::sql_query(waits).bind::<Binary, _>(key).bind::<Text, _>(offered);
                    let Holds { holds: waits } = waits.get_result(conn).await?;
                    if waits && !left_out!(NoEntryWaits) {
                        return Ok(false);
                    }
                    let line = "UPDATE sale_lines SET state = 'AWAITED' WHERE sale_id = ? AND kind = 'waitlist' AND state = 'OPEN'";
                    diesel::sql_query(line).bind::<Binary, _>(key).execute(conn).await?;
                    let door = "UPDATE sales SET by_line = 0, version = version + 1 WHERE sale_id = ? AND by_line = 1";
                    let changed = diesel::sql_query(door).bind::<Binary, _>(key).execute(conn).await?;
                    Ok::<_, DbError>(changed > 0)
                })
                .await
            })
            .await
    }

    /// Ends a line: each offer is decided, and none is made any more.
    pub(crate) async fn end_line(&self, sale: &SaleId) -> Result<bool, DbError> {
        let query = "UPDATE sale_lines l SET l.state = 'DONE' WHERE l.sale_id = ? AND l.state IN ('AWAITED', 'OPEN', 'DRAWN') \
             AND NOT EXISTS (SELECT 1 FROM line_entries e WHERE e.sale_id = l.sale_id AND e.state = 'OFFERED')";
        self.changed("line_end", query, sale).await
    }
}
