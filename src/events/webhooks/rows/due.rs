//! What the leader sends: deliveries that are due, and figures for operators.
//!
//! Input: the clock of the database. Output: rows along `ix_webhook_due`, each webhook by itself, so that one with many rows hides no
//! other. A crash after a receiver took a delivery and before its result is recorded leaves it due, and it is sent again.

use crate::domain::ids::RequestId;
use crate::domain::webhook::DeliveryState;
use crate::events::webhooks::rows::WebhookRows;
use crate::faults::left_out;
use crate::store::mysql::columns::{ByteText, UnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::webhook_deliveries;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text};
use diesel_async::RunQueryDsl;

/// Most webhooks whose delivered rows are searched: those that are configured, and former ones.
const NAMES_MAX: usize = 100;
/// Most rows that one call deletes.
const DELETED_MAX: i64 = 1000;

/// A delivery that has to be sent now.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = webhook_deliveries)]
pub struct DueDelivery {
    /// Order of writing.
    pub delivery_id: u64,
    /// The order.
    pub request_id: RequestId,
    /// The event.
    pub event_key: String,
    /// The event as it is published, JSON.
    pub body: Vec<u8>,
    /// Tries so far.
    pub attempts: u16,
    /// When the event happened, Unix milliseconds by the database's clock.
    #[diesel(column_name = created_at, deserialize_as = UnixMs)]
    pub created_at_ms: i64,
}

impl WebhookRows {
    /// Due deliveries of a webhook, at most `limit`: by turns one that is due for longest and one that became due last. So an event that
    /// just happened does not wait behind a million that are replayed, and none waits for ever behind those that happen.
    pub async fn due(&self, webhook: &str, limit: u16) -> Result<Vec<DueDelivery>, DbError> {
        self.db
            .run("webhooks_due", async |conn| {
                let due = || {
                    webhook_deliveries::table
                        .filter(webhook_deliveries::state.eq(DeliveryState::Waiting.code()))
                        .filter(webhook_deliveries::webhook.eq(webhook.as_bytes().to_vec()))
                        .filter(
                            webhook_deliveries::next_at.le(diesel::dsl::sql::<diesel::sql_types::Datetime>("NOW(3)")),
                        )
                        .select(DueDelivery::as_select())
                };
                let oldest: Vec<DueDelivery> =
                    due().order(webhook_deliveries::next_at).limit(limit.into()).load(conn).await?;
                if left_out!(ChosenAgain) {
                    // What one process has read is due to no other one any more.
                    let ids: Vec<u64> = oldest.iter().map(|due| due.delivery_id).collect();
                    let chosen = webhook_deliveries::table.filter(webhook_deliveries::delivery_id.eq_any(ids));
                    let later = webhook_deliveries::next_at.eq(diesel::dsl::sql("NOW(3) + INTERVAL 1 DAY"));
                    diesel::update(chosen).set(later).execute(conn).await?;
                }
                if oldest.len() < usize::from(limit) {
                    return Ok(oldest);
                }
                let newest = due().order(webhook_deliveries::next_at.desc()).limit(i64::from(limit) / 2);
                let newest: Vec<DueDelivery> = newest.load(conn).await?;
                Ok(by_turns(oldest, newest, limit.into()))
            })
            .await
    }
}

/// One of each, as many as `limit`, none twice.
fn by_turns(oldest: Vec<DueDelivery>, newest: Vec<DueDelivery>, limit: usize) -> Vec<DueDelivery> {
    let (mut oldest, mut newest) = (oldest.into_iter(), newest.into_iter());
    let mut known = std::collections::BTreeSet::new();
    let mut all = Vec::with_capacity(limit);
    while all.len() < limit {
        let pair = [newest.next(), oldest.next()];
        if pair.iter().all(Option::is_none) {
            break;
        }
        all.extend(pair.into_iter().flatten().filter(|due| known.insert(due.delivery_id)));
    }
    all.truncate(limit);
    all
}

impl WebhookRows {
    /// Deletes rows of a webhook that were delivered long enough ago, some at a time; returns how many.
    pub async fn delete_old(&self, webhook: &str) -> Result<usize, DbError> {
        self.db
            .run("webhooks_delete_old", async |conn| {
                let old = webhook_deliveries::table
                    .filter(webhook_deliveries::state.eq(DeliveryState::Delivered.code()))
                    .filter(webhook_deliveries::webhook.eq(webhook.as_bytes()))
                    .filter(webhook_deliveries::next_at.le(diesel::dsl::sql("NOW(3)")))
                    .limit(DELETED_MAX);
                let ids: Vec<u64> = old.select(webhook_deliveries::delivery_id).load(conn).await?;
                if ids.is_empty() {
                    return Ok(0);
                }
                // By the primary key: a range would lock the gap that new rows go into. A row that was replayed meanwhile stays.
                let same = webhook_deliveries::table.filter(webhook_deliveries::delivery_id.eq_any(ids));
                if left_out!(DeletesDeliveredOnly) {
                    return Ok(diesel::delete(same).execute(conn).await?);
                }
                let same = same.filter(webhook_deliveries::state.eq(DeliveryState::Delivered.code()));
                Ok(diesel::delete(same).execute(conn).await?)
            })
            .await
    }
}

/// How much of a webhook is in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFigures {
    /// Its name.
    pub webhook: String,
    /// Rows that wait.
    pub waiting: i64,
    /// Age of the oldest event that waits, milliseconds; 0 when none does.
    pub oldest_ms: i64,
    /// Rows that are dead.
    pub dead: i64,
}

#[derive(QueryableByName)]
struct FiguresRow {
    #[diesel(sql_type = Binary)]
    webhook: Vec<u8>,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = BigInt)]
    rows_count: i64,
    #[diesel(sql_type = BigInt)]
    oldest_ms: i64,
}

impl WebhookRows {
    /// What waits and what is dead, by webhook, in the order of names; a webhook without either is left out. It counts: for
    /// [`Db::patient`].
    pub async fn figures(&self) -> Result<Vec<WebhookFigures>, DbError> {
        // Answered by ix_webhook_due alone; delivered rows are not read.
        let query = "/* webhooks::figures */ SELECT webhook, state, COUNT(*) AS rows_count, \
                 CAST(GREATEST(0, TIMESTAMPDIFF(MICROSECOND, MIN(created_at), NOW(3)) DIV 1000) AS SIGNED) AS oldest_ms \
                 FROM webhook_deliveries WHERE state IN ('DEAD', 'WAITING') GROUP BY state, webhook";
        let rows: Vec<FiguresRow> =
            self.db.run("webhooks_figures", async |conn| Ok(diesel::sql_query(query).load(conn).await?)).await?;
        let mut found: std::collections::BTreeMap<String, WebhookFigures> = std::collections::BTreeMap::new();
        for row in rows {
            let name = String::from_utf8_lossy(&row.webhook).into_owned();
            let of = found.entry(name.clone()).or_insert(WebhookFigures {
                webhook: name,
                waiting: 0,
                oldest_ms: 0,
                dead: 0,
            });
            if row.state == DeliveryState::Dead.code() {
                of.dead = row.rows_count;
            } else {
                (of.waiting, of.oldest_ms) = (row.rows_count, row.oldest_ms);
            }
        }
        Ok(found.into_values().collect())
    }

    /// The webhooks that have delivered rows, at most [`NAMES_MAX`]. From one name to the next along the index: a week of delivered rows
    /// is not read for it.
    pub async fn webhooks_with_rows(&self) -> Result<Vec<String>, DbError> {
        self.db
            .run("webhooks_named", async |conn| {
                let mut names: Vec<String> = Vec::new();
                while names.len() < NAMES_MAX {
                    let last = names.last().map(String::as_str).unwrap_or_default();
                    let next: Option<ByteText> = webhook_deliveries::table
                        .filter(webhook_deliveries::state.eq(DeliveryState::Delivered.code()))
                        .filter(webhook_deliveries::webhook.gt(last.as_bytes()))
                        .order(webhook_deliveries::webhook)
                        .select(webhook_deliveries::webhook)
                        .first(conn)
                        .await
                        .optional()?;
                    match next {
                        Some(name) => names.push(name.into()),
                        None => break,
                    }
                }
                Ok(names)
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_and_the_oldest_take_turns_and_none_comes_twice() {
        let of = |id: u64| DueDelivery {
            delivery_id: id,
            request_id: RequestId::LOWEST,
            event_key: String::new(),
            body: Vec::new(),
            attempts: 0,
            created_at_ms: 0,
        };
        let ids = |oldest: &[u64], newest: &[u64], limit| -> Vec<u64> {
            let rows = |ids: &[u64]| ids.iter().copied().map(of).collect();
            by_turns(rows(oldest), rows(newest), limit).iter().map(|due| due.delivery_id).collect()
        };
        assert_eq!(ids(&[1, 2, 3, 4], &[99, 98], 4), [99, 1, 98, 2]);
        assert_eq!(ids(&[1, 2, 3, 4], &[4, 3], 4), [4, 1, 3, 2]);
        assert_eq!(ids(&[1, 2, 3], &[3], 3), [3, 1, 2]);
    }
}
