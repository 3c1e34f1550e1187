//! Outcome events that no message carries (D10). They wait in the database until a consumer publishes them.
//!
//! Compensation, replay and give-up write them in the transaction that decides; a consumer writes the events that the broker
//! does not take. A consumer publishes waiting events and deletes them after the confirm. A crash in between leaves the row,
//! and the event is published again.

use super::codes::read_request_id;
use super::fault::DbError;
use super::pool::Db;
use super::schema::outcome_event;
use crate::domain::ids::RequestId;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::borrow::Cow;

/// Most events that one call of [`waiting`] returns.
pub(crate) const WAITING_MAX: u16 = 500;

/// The event of one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutcomeEvent {
    /// The request that has this outcome.
    pub request_id: RequestId,
    /// Routing key at the broker.
    pub key: Cow<'static, str>,
    /// The body of the message, JSON.
    pub body: Vec<u8>,
}

/// The first waiting events, at most [`WAITING_MAX`]. Several processes may get the same ones.
pub(crate) async fn waiting(db: &Db) -> Result<Vec<OutcomeEvent>, DbError> {
    let rows: Vec<(u64, String, Vec<u8>)> = db
        .run("untold_events", async |conn| {
            let columns = (outcome_event::request_id, outcome_event::event_key, outcome_event::body);
            let page = outcome_event::table.order(outcome_event::request_id).limit(WAITING_MAX.into());
            Ok(page.select(columns).load(conn).await?)
        })
        .await?;
    rows.into_iter()
        .map(|(id, key, body)| Ok(OutcomeEvent { request_id: read_request_id(id)?, key: key.into(), body }))
        .collect()
}

/// How many events wait.
pub(crate) async fn waiting_count(db: &Db) -> Result<i64, DbError> {
    db.run("untold_events_count", async |conn| Ok(outcome_event::table.count().get_result(conn).await?)).await
}

/// Stores events that could not be published. Events that wait already stay as they are.
/// After an error none of them may be stored.
pub(crate) async fn store(db: &Db, events: &[OutcomeEvent]) -> Result<(), DbError> {
    let rows: Vec<_> = events
        .iter()
        .map(|event| {
            (
                outcome_event::request_id.eq(event.request_id.get()),
                outcome_event::event_key.eq(event.key.as_ref()),
                outcome_event::body.eq(event.body.as_slice()),
            )
        })
        .collect();
    db.run("owe_events", async |conn| {
        diesel::insert_or_ignore_into(outcome_event::table).values(&rows).execute(conn).await?;
        Ok(())
    })
    .await
}

/// Deletes events that were published. After an error they are published again.
pub(crate) async fn delete(db: &Db, ids: &[RequestId]) -> Result<(), DbError> {
    let ids: Vec<u64> = ids.iter().map(|id| id.get()).collect();
    db.run("told_events", async |conn| {
        let published = outcome_event::table.filter(outcome_event::request_id.eq_any(&ids));
        diesel::delete(published).execute(conn).await?;
        Ok(())
    })
    .await
}
