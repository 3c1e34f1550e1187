//! Which webhooks want which events (`webhook_subscriptions`): written by the leader of the webhooks from its configuration, read by
//! each process that changes an order. So what is delivered does not depend on who changes the order: the command line, or a process with
//! an older configuration, writes for the same webhooks.
//!
//! Input: the leader's configuration. Output: rows; here, what a process read last, at most a second old. Within this second a process
//! may not know a new webhook that its own configuration does not have. A crash leaves the rows as they are. During an upgrade, and
//! before the first leader, a process writes for the webhooks of its own configuration, too: union, so that nothing is lost.

use crate::domain::webhook::{WebhookSubscription, WebhookSubscriptions};
use crate::events::webhooks::rows::WebhookRows;
use crate::faults::left_out;
use crate::store::mysql::columns::{ByteText, MaybeUnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::{Conn, Db};
use crate::store::mysql::rights::DENIED;
use crate::store::mysql::schema::webhook_subscriptions;
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{Binary, Text};
use diesel_async::RunQueryDsl;
use moka::future::Cache;
use std::time::Duration;

/// How old the subscriptions are at most that a process writes by.
const FRESH: Duration = Duration::from_secs(1);
/// Rows read at most: 8 webhooks, and some that were removed.
const ROWS_MAX: i64 = 100;

/// Who gets a row for each event that a process writes. Clones share what was read last.
#[derive(Clone)]
pub struct Subscriptions {
    rows: WebhookRows,
    own: WebhookSubscriptions,
    read: Cache<(), WebhookSubscriptions>,
}

impl Subscriptions {
    /// For a process that has these webhooks in its configuration.
    #[must_use]
    pub fn new(db: Db, own: WebhookSubscriptions) -> Self {
        Self { rows: WebhookRows::new(db), own, read: Cache::builder().max_capacity(1).time_to_live(FRESH).build() }
    }

    /// The webhooks of the leader, and those of this process's configuration. Not to be called while a connection is held.
    pub(crate) async fn wanted(&self) -> Result<WebhookSubscriptions, DbError> {
        let read = async {
            match self.rows.stored().await {
                // The table is newer than the database or its account: each process writes by its own configuration, as before.
                Err(error) if is_of_before(&error) => Ok(WebhookSubscriptions::default()),
                rows => rows.map(|rows| WebhookSubscriptions::new(rows.iter().map(of_row).collect())),
            }
        };
        let stored = self.read.try_get_with((), read).await.map_err(|error| DbError::clone(&error))?;
        Ok(stored.joined(&self.own))
    }
}

/// A row of `webhook_subscriptions`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = webhook_subscriptions)]
pub struct StoredSubscription {
    /// Name of the webhook.
    #[diesel(deserialize_as = ByteText)]
    pub webhook: String,
    /// The events that it wants, with spaces between them; empty: it was removed.
    pub events: String,
    /// Since when its receiver answers 410, Unix milliseconds by the database's clock.
    #[diesel(column_name = disabled_at, deserialize_as = MaybeUnixMs)]
    pub disabled_at_ms: Option<i64>,
}

/// Whether the database, or the rights of the account, are of before the table.
#[must_use]
pub(crate) fn is_of_before(error: &DbError) -> bool {
    let text = error.to_string();
    text.contains(DENIED) || text.contains("webhook_subscriptions' doesn't exist")
}

fn of_row(row: &StoredSubscription) -> WebhookSubscription {
    let events = row.events.split_whitespace().map(str::to_owned).collect();
    WebhookSubscription { name: row.webhook.clone(), events }
}

impl WebhookRows {
    /// The rows, in the order of names.
    pub async fn stored(&self) -> Result<Vec<StoredSubscription>, DbError> {
        self.db
            .run("webhook_subscriptions", async |conn| {
                let all = webhook_subscriptions::table.order(webhook_subscriptions::webhook).limit(ROWS_MAX);
                Ok(all.select(StoredSubscription::as_select()).load(conn).await?)
            })
            .await
    }

    /// Makes the rows those of this configuration, all of them open: a receiver that answered 410 to another leader is tried again.
    pub async fn subscribe(&self, wanted: &WebhookSubscriptions) -> Result<(), DbError> {
        let rows: Vec<(&str, String)> = wanted.all().iter().map(|of| (of.name.as_str(), of.events.join(" "))).collect();
        let there = self.stored().await?;
        let is_as_wanted = |row: &StoredSubscription| {
            let events = rows.iter().find(|(name, _)| *name == row.webhook).map_or("", |(_, events)| events);
            row.events == events && row.disabled_at_ms.is_none()
        };
        if rows.iter().all(|(name, _)| there.iter().any(|row| row.webhook == *name)) && there.iter().all(is_as_wanted) {
            return Ok(());
        }
        let removed: Vec<&str> = there.iter().map(|row| row.webhook.as_str()).collect();
        let removed: Vec<&[u8]> = removed
            .into_iter()
            .filter(|name| rows.iter().all(|(wanted, _)| wanted != name))
            .map(str::as_bytes)
            .collect();
        self.db
            .run("webhooks_subscribe", async |conn| {
                transaction(conn, async |conn| {
                    for (name, events) in &rows {
                        diesel::sql_query(SUBSCRIBE)
                            .bind::<Binary, _>(name.as_bytes())
                            .bind::<Text, _>(events)
                            .execute(conn)
                            .await?;
                    }
                    let gone = webhook_subscriptions::table.filter(webhook_subscriptions::webhook.eq_any(&removed));
                    let nothing = (
                        webhook_subscriptions::events.eq(""),
                        webhook_subscriptions::disabled_at.eq(None::<chrono::NaiveDateTime>),
                    );
                    diesel::update(gone).set(nothing).execute(conn).await?;
                    Ok(())
                })
                .await
            })
            .await
    }
}

const SUBSCRIBE: &str = "/* webhooks::subscribe */ INSERT INTO webhook_subscriptions (webhook, events) VALUES (?, ?) \
    ON DUPLICATE KEY UPDATE events = VALUES(events), disabled_at = NULL";

impl WebhookRows {
    /// Notes that a receiver answers 410: nothing is sent to it until a replay or another leader opens it again.
    pub(crate) async fn disable(&self, webhook: &str) -> Result<(), DbError> {
        self.db
            .run("webhook_disable", async |conn| {
                let open = webhook_subscriptions::table
                    .find(webhook.as_bytes())
                    .filter(webhook_subscriptions::disabled_at.is_null());
                diesel::update(open)
                    .set(webhook_subscriptions::disabled_at.eq(diesel::dsl::sql("NOW(3)")))
                    .execute(conn)
                    .await?;
                Ok(())
            })
            .await
    }
}

/// Opens receivers that answered 410 again, of these webhooks or of all, in the caller's transaction; their names.
pub(crate) async fn open_again(conn: &mut Conn, webhooks: Option<&[String]>) -> Result<Vec<String>, DbError> {
    if left_out!(ReplayOpens) {
        return Ok(Vec::new());
    }
    let mut closed = webhook_subscriptions::table.into_boxed().filter(webhook_subscriptions::disabled_at.is_not_null());
    if let Some(webhooks) = webhooks {
        let names: Vec<Vec<u8>> = webhooks.iter().map(|name| name.as_bytes().to_vec()).collect();
        closed = closed.filter(webhook_subscriptions::webhook.eq_any(names));
    }
    let names: Vec<ByteText> = closed.select(webhook_subscriptions::webhook).load(conn).await?;
    let names: Vec<String> = names.into_iter().map(Into::into).collect();
    for name in &names {
        let one = webhook_subscriptions::table.find(name.as_bytes());
        let open = webhook_subscriptions::disabled_at.eq(None::<chrono::NaiveDateTime>);
        diesel::update(one).set(open).execute(conn).await?;
    }
    Ok(names)
}
