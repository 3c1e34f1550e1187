//! Outcome events that no message carries (D10). They wait in the database until a consumer publishes them.
//!
//! Compensation, replay and give-up write them in the transaction that decides; a consumer writes the events that the broker
//! does not take. A consumer publishes waiting events and deletes them after the confirm. A crash in between leaves the row,
//! and the event is published again. Here are also the figures of what waits, with the events of orders.

use crate::events::published::WaitingEvents;
use crate::events::rows::waiting_page::{WaitingPage, check_event};
use crate::faults::left_out;
use crate::store::mysql::codes::read_request_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::outcome_event;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;

mysql_handle! {
    /// Events of outcomes that wait for the broker.
    OutcomeEventRows
}

/// Most events that one call of [`OutcomeEventRows::waiting`] returns.
pub(crate) const WAITING_MAX: u16 = 500;

type NewRow<'a> = (
    diesel::dsl::Eq<outcome_event::request_id, u64>,
    diesel::dsl::Eq<outcome_event::event_key, &'a str>,
    diesel::dsl::Eq<outcome_event::body, &'a [u8]>,
);

fn row(event: &WaitingEvents) -> NewRow<'_> {
    (
        outcome_event::request_id.eq(event.request_id.get()),
        outcome_event::event_key.eq(event.key.as_ref()),
        outcome_event::body.eq(event.bodies.as_slice()),
    )
}

/// Writes events in the caller's transaction.
pub(crate) async fn write(conn: &mut Conn, events: &[WaitingEvents]) -> Result<(), DbError> {
    if left_out!(OutcomeEventRow) {
        return Ok(());
    }
    let rows: Vec<_> = events.iter().map(row).collect();
    diesel::insert_into(outcome_event::table).values(&rows).execute(conn).await?;
    Ok(())
}

impl OutcomeEventRows {
    /// The first waiting events behind a row, at most [`WAITING_MAX`]; 0 is before the first. Several processes may get the same ones.
    pub(crate) async fn waiting(&self, after: u64) -> Result<WaitingPage<WaitingEvents>, DbError> {
        let rows: Vec<(u64, String, Vec<u8>)> = self
            .db
            .run("untold_events", async |conn| {
                let columns = (outcome_event::request_id, outcome_event::event_key, outcome_event::body);
                let behind = outcome_event::table.filter(outcome_event::request_id.gt(after));
                let page = behind.order(outcome_event::request_id).limit(WAITING_MAX.into());
                Ok(page.select(columns).load(conn).await?)
            })
            .await?;
        let read = |(id, key, body): (u64, String, Vec<u8>)| {
            check_event("outcome_event", &body)?;
            Ok(WaitingEvents { request_id: read_request_id(id)?, key: key.into(), count: 1, bodies: body })
        };
        Ok(WaitingPage::of(rows, WAITING_MAX, |(id, ..)| *id, read))
    }
}

/// Events that wait in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub(crate) struct UnpublishedEvents {
    /// How many.
    #[diesel(sql_type = BigInt)]
    pub events_count: i64,
    /// Age of the oldest, milliseconds; 0 when none waits.
    #[diesel(sql_type = BigInt)]
    pub oldest_ms: i64,
}

/// What waits in the two tables of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnpublishedFigures {
    /// In `outcome_event`.
    pub outcomes: UnpublishedEvents,
    /// In `order_events`.
    pub orders: UnpublishedEvents,
}

/// Rows of each table that are counted for the figures. Millions may wait after an outage of the broker.
const ROWS_COUNTED_MAX: u32 = 100_000;

impl OutcomeEventRows {
    /// How many events wait, and since when, by the first [`ROWS_COUNTED_MAX`] rows: keys grow with time.
    pub(crate) async fn unpublished_figures(&self) -> Result<UnpublishedFigures, DbError> {
        let figures = |table: &str, key: &str, columns: &str, events: &str| {
            format!(
                "/* events::unpublished_figures */ SELECT CAST(COALESCE({events}, 0) AS SIGNED) AS events_count, \
             CAST(COALESCE(GREATEST(0, TIMESTAMPDIFF(MICROSECOND, MIN(created_at), NOW(3)) DIV 1000), 0) AS SIGNED) AS oldest_ms \
             FROM (SELECT {columns} FROM {table} ORDER BY {key} LIMIT {ROWS_COUNTED_MAX}) AS counted"
            )
        };
        let outcomes = figures("outcome_event", "request_id", "created_at", "COUNT(*)");
        let orders = figures("order_events", "event_id", "created_at, events_count", "SUM(events_count)");
        self.db
            .run("untold_events_figures", async |conn| {
                Ok(UnpublishedFigures {
                    outcomes: diesel::sql_query(&outcomes).get_result(conn).await?,
                    orders: diesel::sql_query(&orders).get_result(conn).await?,
                })
            })
            .await
    }

    /// Stores events that could not be published. Events that wait already stay as they are.
    /// After an error none of them may be stored.
    pub(crate) async fn store(&self, events: &[WaitingEvents]) -> Result<(), DbError> {
        let rows: Vec<_> = events.iter().map(row).collect();
        self.db
            .run("owe_events", async |conn| {
                diesel::insert_or_ignore_into(outcome_event::table).values(&rows).execute(conn).await?;
                Ok(())
            })
            .await
    }

    /// Deletes events that were published. After an error they are published again.
    pub(crate) async fn delete(&self, ids: &[u64]) -> Result<(), DbError> {
        self.db
            .run("told_events", async |conn| {
                if left_out!(OwnEventRows) {
                    diesel::delete(outcome_event::table).execute(conn).await?;
                    return Ok(());
                }
                let published = outcome_event::table.filter(outcome_event::request_id.eq_any(ids));
                diesel::delete(published).execute(conn).await?;
                Ok(())
            })
            .await
    }
}
