//! Deliveries as people see them: listed, read one by one, and replayed.
//!
//! Input: a state and perhaps a webhook, or ids. Output: rows along `ix_webhook_due`; replayed ones wait again, with all their tries.
//! The act of a replay is there before its first row or with it. A crash between two batches leaves the rest dead, and a repeat takes it.

use crate::domain::ids::RequestId;
use crate::domain::operator::OperatorAct;
use crate::domain::webhook::DeliveryState;
use crate::events::webhooks::rows::WebhookRows;
use crate::events::webhooks::rows::subscriptions::open_again;
use crate::faults::left_out;
use crate::sales::rows::acts;
use crate::store::mysql::codes::datetime;
use crate::store::mysql::columns::{ByteText, UnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::webhook_deliveries;
use crate::store::mysql::transaction::transaction;
use diesel::dsl::count_star;
use diesel::prelude::*;
use diesel::sql_types::{SmallInt, Unsigned};
use diesel_async::RunQueryDsl;

/// Most deliveries of a listing.
pub const PAGE_MAX: u16 = 500;
/// Most deliveries that a listing counts: of delivered ones there may be millions.
pub const DELIVERIES_COUNTED_MAX: i64 = 10_000;
/// Rows that one statement of a replay changes.
const BATCH_MAX: i64 = 1000;

/// A row of `webhook_deliveries`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = webhook_deliveries)]
pub struct ListedDelivery {
    /// Order of writing.
    pub delivery_id: u64,
    /// Name of the webhook, which may not be configured any more.
    #[diesel(deserialize_as = ByteText)]
    pub webhook: String,
    /// The order.
    pub request_id: RequestId,
    /// The event.
    pub event_key: String,
    /// The event as it is published, JSON.
    pub body: Vec<u8>,
    /// `WAITING`, `DELIVERED` or `DEAD`.
    pub state: String,
    /// Tries so far.
    pub attempts: u16,
    /// The next try, or since when it is dead, or when its row may be deleted; Unix milliseconds by the database's clock.
    #[diesel(column_name = next_at, deserialize_as = UnixMs)]
    pub next_at_ms: i64,
    /// What the last try met.
    pub problem: Option<String>,
    /// When the event happened, Unix milliseconds by the database's clock.
    #[diesel(column_name = created_at, deserialize_as = UnixMs)]
    pub created_at_ms: i64,
}

/// Where a page of [`list`] ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPlace {
    /// The webhook of the page's last delivery.
    pub webhook: String,
    /// Its `next_at`, Unix milliseconds by the database's clock.
    pub next_at_ms: i64,
    /// When its event happened, Unix milliseconds by the database's clock.
    pub created_at_ms: i64,
    /// Its number.
    pub delivery_id: u64,
}

/// Which deliveries are asked for.
#[derive(Debug, Clone)]
pub struct DeliveriesFilter {
    /// In this state.
    pub state: DeliveryState,
    /// Of this webhook only.
    pub webhook: Option<String>,
    /// Those behind this place.
    pub after: Option<DeliveryPlace>,
    /// Most deliveries, 1 to [`PAGE_MAX`].
    pub limit: u16,
}

type Filtered = webhook_deliveries::BoxedQuery<'static, diesel::mysql::Mysql>;

impl DeliveriesFilter {
    fn matching(&self) -> Filtered {
        let all = webhook_deliveries::table.into_boxed().filter(webhook_deliveries::state.eq(self.state.code()));
        match &self.webhook {
            Some(webhook) => all.filter(webhook_deliveries::webhook.eq(webhook.as_bytes().to_vec())),
            None => all,
        }
    }

    /// Those behind the place where the page before ended: from there along `ix_webhook_due`, so a late page reads no more rows.
    fn page(&self) -> Result<Filtered, DbError> {
        let Some(place) = &self.after else { return Ok(self.matching()) };
        let (name, next_at) = (place.webhook.as_bytes().to_vec(), datetime(place.next_at_ms)?);
        let created_at = datetime(place.created_at_ms)?;
        let from_there = webhook_deliveries::webhook
            .eq(name.clone())
            .and(webhook_deliveries::next_at.ge(next_at))
            .or(webhook_deliveries::webhook.gt(name.clone()));
        let same_time = webhook_deliveries::created_at.eq(created_at);
        let behind = webhook_deliveries::webhook
            .gt(name)
            .or(webhook_deliveries::next_at.gt(next_at))
            .or(webhook_deliveries::created_at.gt(created_at))
            .or(same_time.and(webhook_deliveries::delivery_id.gt(place.delivery_id)));
        Ok(self.matching().filter(from_there).filter(behind))
    }
}

/// One page of deliveries by webhook and `next_at`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDeliveries {
    /// At most as many as were asked for.
    pub deliveries: Vec<ListedDelivery>,
    /// How many there are on all pages, counted up to [`DELIVERIES_COUNTED_MAX`].
    pub count: i64,
    /// Whether there are more than were counted.
    pub has_more_than_count: bool,
}

impl WebhookRows {
    /// One page of deliveries by webhook and `next_at`, and how many there are on all pages.
    pub async fn list(&self, wanted: &DeliveriesFilter) -> Result<FoundDeliveries, DbError> {
        let page = wanted.page()?;
        // It counts.
        self.db
            .patient()
            .run("webhooks_list", async move |conn| {
                // Entries of an index, up to the bound: whether there is one behind it, and if not, how many there are.
                let behind = wanted.matching().select(webhook_deliveries::delivery_id).offset(DELIVERIES_COUNTED_MAX);
                let behind: Option<u64> = behind.limit(1).first(conn).await.optional()?;
                let has_more_than_count = behind.is_some();
                let count = match behind {
                    Some(_) => DELIVERIES_COUNTED_MAX,
                    None => wanted.matching().select(count_star()).first(conn).await?,
                };
                let first = page
                    .order((
                        webhook_deliveries::webhook,
                        webhook_deliveries::next_at,
                        webhook_deliveries::created_at,
                        webhook_deliveries::delivery_id,
                    ))
                    .limit(wanted.limit.clamp(1, PAGE_MAX).into());
                let deliveries = first.select(ListedDelivery::as_select()).load(conn).await?;
                Ok(FoundDeliveries { deliveries, count, has_more_than_count })
            })
            .await
    }

    /// One delivery; `None` when there is none (any more).
    pub async fn get(&self, delivery_id: u64) -> Result<Option<ListedDelivery>, DbError> {
        self.db
            .run("webhooks_get", async |conn| {
                let one = webhook_deliveries::table.find(delivery_id).select(ListedDelivery::as_select());
                Ok(one.first(conn).await.optional()?)
            })
            .await
    }
}

/// What was sent again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayedRows {
    /// The ids that were there, in their order.
    pub known: Vec<u64>,
    /// Webhooks whose receivers answered 410 and that are open again.
    pub opened: Vec<String>,
}

impl WebhookRows {
    /// Sends deliveries again, whatever became of them: they wait from now on, with all their tries, and their webhooks are open again. The
    /// act of it, made of the ids that were there, is in the same transaction. Repeating sends them once more. At most [`PAGE_MAX`] ids count.
    pub async fn replay(
        &self,
        delivery_ids: &[u64],
        act: &(dyn Fn(&ReplayedRows) -> OperatorAct + Sync),
    ) -> Result<ReplayedRows, DbError> {
        let ids: Vec<u64> = delivery_ids.iter().copied().take(PAGE_MAX.into()).collect();
        self.db
            .run("webhooks_replay", async |conn| {
                let named = webhook_deliveries::table.filter(webhook_deliveries::delivery_id.eq_any(&ids));
                transaction(conn, async |conn| {
                    let rows = named.clone().select((webhook_deliveries::delivery_id, webhook_deliveries::webhook));
                    let rows: Vec<(u64, ByteText)> = rows.order(webhook_deliveries::delivery_id).load(conn).await?;
                    diesel::update(named.clone()).set(waits_again()).execute(conn).await?;
                    let (known, webhooks): (_, Vec<String>) =
                        rows.into_iter().map(|(id, of)| (id, String::from(of))).unzip();
                    let replayed = ReplayedRows { known, opened: open_again(conn, Some(&webhooks)).await? };
                    acts::insert(conn, &act(&replayed)).await?;
                    Ok(replayed)
                })
                .await
            })
            .await
    }
}

/// The columns of a delivery that waits as if it were new.
type WaitsAgain = (
    diesel::dsl::Eq<webhook_deliveries::state, &'static str>,
    diesel::dsl::Eq<webhook_deliveries::attempts, diesel::expression::SqlLiteral<Unsigned<SmallInt>>>,
    diesel::dsl::Eq<webhook_deliveries::next_at, diesel::expression::SqlLiteral<diesel::sql_types::Datetime>>,
);

fn waits_again() -> WaitsAgain {
    (
        webhook_deliveries::state.eq(DeliveryState::Waiting.code()),
        webhook_deliveries::attempts.eq(diesel::dsl::sql(if left_out!(ReplayResetsTries) { "attempts" } else { "0" })),
        webhook_deliveries::next_at.eq(diesel::dsl::sql("NOW(3)")),
    )
}

impl WebhookRows {
    /// Opens the receivers of one webhook or of all again, with the act of the replay that follows; their names.
    pub(crate) async fn begin_replay(&self, webhook: Option<&str>, act: &OperatorAct) -> Result<Vec<String>, DbError> {
        let webhook = webhook.map(|name| vec![name.to_owned()]);
        self.db
            .run("webhooks_replay_begin", async |conn| {
                transaction(conn, async |conn| {
                    acts::insert(conn, act).await?;
                    open_again(conn, webhook.as_deref()).await
                })
                .await
            })
            .await
    }

    /// Sends every dead delivery again, of one webhook or of all, in batches; `progress` gets how many so far. Returns how many. Those that
    /// die meanwhile stay so.
    pub async fn replay_dead(
        &self,
        webhook: Option<&str>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<usize, DbError> {
        let dead = DeliveriesFilter {
            state: DeliveryState::Dead,
            webhook: webhook.map(str::to_owned),
            after: None,
            limit: PAGE_MAX,
        };
        let count = async |conn: &mut Conn| Ok(dead.matching().select(count_star()).first::<i64>(conn).await?);
        let there = usize::try_from(self.db.patient().run("webhooks_dead_count", count).await?).unwrap_or(0);
        let mut replayed = 0;
        while replayed < there {
            let ids: Vec<u64> = self
                .db
                .run("webhooks_dead", async |conn| {
                    let first = dead.matching().select(webhook_deliveries::delivery_id).limit(BATCH_MAX);
                    Ok(first.load(conn).await?)
                })
                .await?;
            if ids.is_empty() {
                break;
            }
            replayed += self
                .db
                .run("webhooks_replay", async |conn| {
                    let same = webhook_deliveries::table
                        .filter(webhook_deliveries::delivery_id.eq_any(&ids))
                        .filter(webhook_deliveries::state.eq(DeliveryState::Dead.code()));
                    Ok(diesel::update(same).set(waits_again()).execute(conn).await?)
                })
                .await?;
            progress(replayed);
        }
        Ok(replayed)
    }
}
