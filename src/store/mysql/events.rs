//! Events that an outcome owes to downstream systems and no message will tell (D10).
//!
//! Landing writes them in the transaction that decides, for compensation, replay and give-up; a consumer writes those that
//! the broker does not take. A consumer publishes them and forgets them after the confirm. A crash in between leaves the row: the event is told again, by whoever looks next.

use super::codes::read_request_id;
use super::fault::DbError;
use super::pool::Db;
use super::schema::outcome_event;
use crate::domain::ids::RequestId;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// Most events of one look.
pub const PAGE: u16 = 500;

/// An event nobody has told yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    /// The request whose outcome it tells.
    pub request_id: RequestId,
    /// Routing key.
    pub key: String,
    /// What is published.
    pub body: Vec<u8>,
}

/// The first events to tell, at most [`PAGE`]. Several processes may get the same ones.
///
/// # Errors
/// [`DbError`].
pub async fn untold(db: &Db) -> Result<Vec<Untold>, DbError> {
    let rows: Vec<(u64, String, Vec<u8>)> = db
        .run("untold_events", async |conn| {
            let columns = (outcome_event::request_id, outcome_event::event_key, outcome_event::body);
            let page = outcome_event::table.order(outcome_event::request_id).limit(PAGE.into());
            Ok(page.select(columns).load(conn).await?)
        })
        .await?;
    rows.into_iter().map(|(id, key, body)| Ok(Untold { request_id: read_request_id(id)?, key, body })).collect()
}

/// How many events wait.
///
/// # Errors
/// [`DbError`].
pub async fn untold_count(db: &Db) -> Result<i64, DbError> {
    db.run("untold_events_count", async |conn| Ok(outcome_event::table.count().get_result(conn).await?)).await
}

/// Writes down events that could not be told: (request, routing key, body). Those that wait already stay as they are.
///
/// # Errors
/// [`DbError`]; none may be written then.
pub async fn owe(db: &Db, events: &[(RequestId, String, Vec<u8>)]) -> Result<(), DbError> {
    let rows: Vec<_> = events
        .iter()
        .map(|(id, key, body)| {
            (
                outcome_event::request_id.eq(id.get()),
                outcome_event::event_key.eq(key.as_str()),
                outcome_event::body.eq(body.as_slice()),
            )
        })
        .collect();
    db.run("owe_events", async |conn| {
        diesel::insert_or_ignore_into(outcome_event::table).values(&rows).execute(conn).await?;
        Ok(())
    })
    .await
}

/// Forgets events that were told.
///
/// # Errors
/// [`DbError`]; they are told again then.
pub async fn told(db: &Db, ids: &[RequestId]) -> Result<(), DbError> {
    let ids: Vec<u64> = ids.iter().map(|id| id.get()).collect();
    db.run("told_events", async |conn| {
        let told = outcome_event::table.filter(outcome_event::request_id.eq_any(&ids));
        diesel::delete(told).execute(conn).await?;
        Ok(())
    })
    .await
}
