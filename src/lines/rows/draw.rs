//! The close of a line, the seal of its list, and its draw: one statement each, that does nothing unless the line is where it has to be.
//!
//! Input: lines that are due by the database's clock. Output: their states, with count and digest. A crash between two of them leaves the
//! state before, and the same list: nothing is added to it, and nothing leaves it, once the line is closed.

use super::{LINE, LineRow, LineRows, line_state};
use crate::domain::draw::Bytes32;
use crate::domain::ids::SaleId;
use crate::domain::line::LineState;
use crate::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::line::DrawnLine;
use crate::events::rows::single;
use crate::sales::rows::acts;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text, Unsigned};
use diesel_async::RunQueryDsl;
use serde_json::json;

/// Ids that are read at a time: 400 kilobytes.
pub(crate) const ID_PAGE: usize = 50_000;

/// A line that the system has to do something about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DueLine {
    pub(crate) sale_id: SaleId,
    pub(crate) state: LineState,
    /// By the database's clock; 0 or less: it is due.
    pub(crate) due_in_ms: i64,
}

#[derive(QueryableByName)]
struct DueRow {
    #[diesel(sql_type = Binary)]
    sale_id: SaleId,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = BigInt)]
    due_in_ms: i64,
}

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    entry_id: u64,
}

/// What became of a text from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BeaconGiven {
    /// The line is drawn with it, now.
    Drawn,
    /// It was drawn before with the same text.
    Before,
    /// It was drawn before, with this text or, null, without one.
    OtherBeacon(Option<String>),
    /// It is drawn by itself.
    NotAwaited,
    /// Its list is not sealed yet.
    NotSealed(LineState),
    /// The sale has no line.
    NoLine,
}

impl LineRows {
    /// Lines that are open, closed and not sealed, or sealed and drawn by themselves: those that are due, then those that come.
    pub(crate) async fn due_lines(&self, limit: usize) -> Result<Vec<DueLine>, DbError> {
        let query = format!(
            "SELECT sale_id, state, CAST(IF(state = 'OPEN', TIMESTAMPDIFF(MICROSECOND, NOW(3), closes_at) DIV 1000, 0) AS SIGNED) \
             AS due_in_ms FROM sale_lines WHERE kind = 'raffle' \
             AND (state IN ('OPEN', 'CLOSED') OR (state = 'SEALED' AND needs_beacon = 0)) \
             ORDER BY due_in_ms, sale_id LIMIT {limit}"
        );
        let rows: Vec<DueRow> =
            self.db.run("line_due", async |conn| Ok(diesel::sql_query(&query).load(conn).await?)).await?;
        let read = |row: DueRow| {
            Ok(DueLine { sale_id: row.sale_id, state: line_state(&row.state)?, due_in_ms: row.due_in_ms })
        };
        rows.into_iter().map(read).collect()
    }

    /// Closes a line whose time is over. It waits for the group of entries that is being written.
    pub(crate) async fn close_line(&self, sale: &SaleId) -> Result<bool, DbError> {
        let query = "UPDATE sale_lines SET state = 'CLOSED', closed_at = NOW(3) \
             WHERE sale_id = ? AND kind = 'raffle' AND state = 'OPEN' AND closes_at <= NOW(3)";
        self.changed("line_close", query, sale).await
    }

    /// The ids of the list behind `after`, ascending, [`ID_PAGE`] at most. Of a line that is not closed they may still change.
    pub(crate) async fn listed_ids(&self, sale: &SaleId, after: u64) -> Result<Vec<u64>, DbError> {
        let query = format!(
            "SELECT entry_id FROM line_entries WHERE sale_id = ? AND entry_id > ? AND listed = 1 ORDER BY entry_id LIMIT {ID_PAGE}"
        );
        let rows: Vec<IdRow> = self
            .db
            .run("line_ids", async |conn| {
                let page = diesel::sql_query(&query).bind::<Binary, _>(sale.as_str().as_bytes());
                Ok(page.bind::<Unsigned<BigInt>, _>(after).load(conn).await?)
            })
            .await?;
        Ok(rows.into_iter().map(|row| row.entry_id).collect())
    }

    /// Seals the list of a closed line.
    pub(crate) async fn seal(&self, sale: &SaleId, entries: u64, digest: &Bytes32) -> Result<bool, DbError> {
        let query = "UPDATE sale_lines SET state = 'SEALED', sealed_at = NOW(3), entries_count = ?, digest = ? \
             WHERE sale_id = ? AND state = 'CLOSED'";
        let changed = self
            .db
            .run("line_seal", async |conn| {
                let sealed = diesel::sql_query(query)
                    .bind::<Unsigned<BigInt>, _>(entries)
                    .bind::<Binary, _>(&digest[..])
                    .bind::<Binary, _>(sale.as_str().as_bytes());
                Ok(sealed.execute(conn).await?)
            })
            .await?;
        Ok(changed > 0)
    }

    /// Settles the ranks of a sealed line that waits for no text from outside.
    pub(crate) async fn draw(&self, sale: &SaleId) -> Result<bool, DbError> {
        let query = "UPDATE sale_lines SET state = 'DRAWN', drawn_at = NOW(3) \
             WHERE sale_id = ? AND state = 'SEALED' AND needs_beacon = 0";
        let webhooks = self.subscriptions.wanted().await?;
        self.db
            .run("line_draw", async |conn| {
                transaction(conn, async |conn| {
                    let key = sale.as_str().as_bytes();
                    let drawn = diesel::sql_query(query).bind::<Binary, _>(key).execute(conn).await? > 0;
                    if drawn {
                        publish_draw(conn, sale, &webhooks).await?;
                    }
                    Ok::<_, DbError>(drawn)
                })
                .await
            })
            .await
    }

    /// Settles the ranks of a sealed line with a text from outside, on record. Repeating is safe.
    pub(crate) async fn draw_with(&self, actor: &Actor, sale: &SaleId, beacon: &str) -> Result<BeaconGiven, DbError> {
        let (query, key) = (format!("{LINE} WHERE sale_id = ? FOR UPDATE"), sale.as_str().as_bytes());
        let webhooks = self.subscriptions.wanted().await?;
        self.db
            .run("line_beacon", async |conn| {
                transaction(conn, async |conn| {
                    let line = diesel::sql_query(&query).bind::<Binary, _>(key).get_result(conn).await.optional()?;
                    let Some(line) = line.map(LineRow::read).transpose()? else { return Ok(BeaconGiven::NoLine) };
                    match line.state {
                        LineState::Awaited | LineState::Open | LineState::Closed => {
                            return Ok(BeaconGiven::NotSealed(line.state));
                        }
                        LineState::Drawn | LineState::Done if line.beacon.as_deref() == Some(beacon) => {
                            return Ok(BeaconGiven::Before);
                        }
                        LineState::Drawn | LineState::Done => return Ok(BeaconGiven::OtherBeacon(line.beacon)),
                        LineState::Sealed if !line.needs_beacon => return Ok(BeaconGiven::NotAwaited),
                        LineState::Sealed => {}
                    }
                    let drawn =
                        "UPDATE sale_lines SET state = 'DRAWN', drawn_at = NOW(3), beacon = ? WHERE sale_id = ?";
                    diesel::sql_query(drawn).bind::<Text, _>(beacon).bind::<Binary, _>(key).execute(conn).await?;
                    let mut act = OperatorAct::new(actor, Operation::LineDraw, ActTarget::Sale(sale.clone()));
                    act.after = Some(json!({ "beacon": beacon }));
                    acts::insert(conn, &act).await?;
                    publish_draw(conn, sale, &webhooks).await?;
                    Ok::<_, DbError>(BeaconGiven::Drawn)
                })
                .await
            })
            .await
    }

    pub(super) async fn changed(&self, name: &'static str, query: &str, sale: &SaleId) -> Result<bool, DbError> {
        let key = sale.as_str().as_bytes();
        let changed = self
            .db
            .run(name, async |conn| Ok(diesel::sql_query(query).bind::<Binary, _>(key).execute(conn).await?))
            .await?;
        Ok(changed > 0)
    }
}

/// The event of a draw, in the transaction that draws.
async fn publish_draw(conn: &mut Conn, sale: &SaleId, webhooks: &WebhookSubscriptions) -> Result<(), DbError> {
    let query = format!("{LINE} WHERE sale_id = ?");
    let line: LineRow = diesel::sql_query(query).bind::<Binary, _>(sale.as_str().as_bytes()).get_result(conn).await?;
    let line = line.read()?;
    let (Some(sealed), Some(at)) = (&line.sealed, line.drawn_at_ms) else { return Ok(()) };
    let drawn = DrawnLine {
        sale,
        entries: sealed.entries,
        digest: &sealed.digest,
        seed: &sealed.seed,
        beacon: line.beacon.as_deref(),
    };
    single::write(conn, &[drawn.event(at)], webhooks).await
}
