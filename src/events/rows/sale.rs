//! What of sales was announced last (`sale_announcements`), and the next events of a sale, in one transaction.
//!
//! Input: what is so of a sale. Output: the row, and its events in `order_events` and for webhooks, like those of orders. The row's version
//! decides: of two processes that announce the same, one does. A crash before COMMIT leaves nothing, and the next check announces it; after
//! it the events wait for the broker. The row goes with `sale.closed`: nothing follows it.

use self::schema::sale_announcements;
use crate::domain::announcement::{AnnouncedState, SaleEvent, SaleMoment};
use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::announced::AnnouncedEvent;
use crate::events::published::WaitingEvents;
use crate::events::rows::single;
use crate::events::webhooks::rows::Subscriptions;
use crate::faults::{crash_point, left_out};
use crate::store::mysql::codes::{read_sale_id, unix_ms, unreadable};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::{Conn, Db};
use crate::store::mysql::schema::sales;
use crate::store::mysql::transaction::{commit_half, transaction};
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Integer, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;

#[allow(missing_docs, reason = "the migration says what each column is")]
mod schema {
    diesel::table! {
        sale_announcements (sale_id) {
            sale_id -> Binary,
            version -> Unsigned<Integer>,
            state -> Varchar,
            announced_at -> Datetime,
        }
    }
}

/// Sales of one page.
pub(crate) const PAGE_MAX: usize = 500;

/// What was announced of a sale last, and what the database knows of it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnnouncedSale {
    /// The sale.
    pub(crate) sale_id: SaleId,
    drop_id: Option<String>,
    /// Version and state of its row; `None`: it has none yet.
    known: Option<(u32, AnnouncedState)>,
    /// How long ago that was announced, milliseconds.
    announced_ago_ms: i64,
    /// By the database's clock, Unix milliseconds.
    now_ms: i64,
    /// What is so, but for the units.
    pub(crate) moment: SaleMoment,
}

#[derive(QueryableByName)]
struct SaleRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
    #[diesel(sql_type = Nullable<Binary>)]
    drop_id: Option<Vec<u8>>,
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Nullable<Unsigned<Integer>>)]
    version: Option<u32>,
    #[diesel(sql_type = Nullable<Text>)]
    state: Option<String>,
    #[diesel(sql_type = BigInt)]
    announced_ago_ms: i64,
    #[diesel(sql_type = BigInt)]
    starts_in_ms: i64,
    #[diesel(sql_type = BigInt)]
    ends_in_ms: i64,
    #[diesel(sql_type = Datetime)]
    now: NaiveDateTime,
}

impl SaleRow {
    fn read(self) -> Result<AnnouncedSale, DbError> {
        let status = SaleStatus::from_code(&self.status).ok_or_else(|| unreadable("sales.status", &self.status))?;
        let state = self
            .state
            .map(|code| AnnouncedState::from_code(&code).ok_or_else(|| unreadable("sale_announcements.state", &code)));
        let (starts_in_ms, ends_in_ms) = (self.starts_in_ms, self.ends_in_ms);
        Ok(AnnouncedSale {
            sale_id: read_sale_id(&self.sale_id)?,
            drop_id: self.drop_id.map(|id| String::from_utf8_lossy(&id).into_owned()),
            known: self.version.zip(state.transpose()?),
            announced_ago_ms: self.announced_ago_ms,
            now_ms: unix_ms(self.now),
            moment: SaleMoment { status, starts_in_ms, ends_in_ms, units: None },
        })
    }
}

/// The columns of both questions. Of a sale that was removed meanwhile nothing is left but its row here: it was closed.
const COLUMNS: &str = "CAST(TIMESTAMPDIFF(MICROSECOND, COALESCE(a.announced_at, NOW(3)), NOW(3)) DIV 1000 AS SIGNED) AS announced_ago_ms, \
    CAST(TIMESTAMPDIFF(MICROSECOND, NOW(3), COALESCE(s.starts_at, NOW(3))) DIV 1000 AS SIGNED) AS starts_in_ms, \
    CAST(TIMESTAMPDIFF(MICROSECOND, NOW(3), COALESCE(s.ends_at, NOW(3))) DIV 1000 AS SIGNED) AS ends_in_ms, \
    s.drop_id, a.version, a.state, NOW(3) AS now";

impl AnnouncedSale {
    /// The state that is to be announced; `None`: nothing has changed, or it is too early, or it cannot be said.
    fn next(&self) -> Option<(AnnouncedState, Vec<SaleEvent>)> {
        let to = self.moment.state()?;
        match self.known {
            None => Some((to, AnnouncedState::Upcoming.events_to(to).to_vec())),
            Some((_, from)) if from == to || from.is_too_early(to, self.announced_ago_ms) => None,
            Some((_, from)) => Some((to, from.events_to(to).to_vec())),
        }
    }

    /// Milliseconds until its state may change by the clock, if that is to come.
    pub(crate) fn next_in_ms(&self) -> Option<u64> {
        let moment = &self.moment;
        [moment.starts_in_ms, moment.ends_in_ms].into_iter().filter_map(|ms| u64::try_from(ms).ok()).find(|ms| *ms > 0)
    }

    /// These events as they are published.
    fn encoded(&self, events: &[SaleEvent]) -> Vec<WaitingEvents> {
        let first = self.known.map_or(0, |(version, _)| version).saturating_add(1);
        let of_sale = (&self.sale_id, self.drop_id.as_deref());
        let one = |(version, event): (u32, &SaleEvent)| {
            AnnouncedEvent::new(of_sale, (*event, version), self.now_ms, self.moment.units).encoded()
        };
        (first..).zip(events).map(one).collect()
    }
}

/// The announcements of sales.
#[derive(Clone)]
pub struct AnnouncementRows {
    db: Db,
    subscriptions: Subscriptions,
}

impl AnnouncementRows {
    /// On this database, for the webhooks of these subscriptions.
    #[must_use]
    pub(crate) const fn new(db: Db, subscriptions: Subscriptions) -> Self {
        Self { db, subscriptions }
    }

    /// One page of the sales that are warmed or paused, behind `after` in the order of ids; none whose end was announced and lasts.
    pub(crate) async fn selling(&self, after: Option<&SaleId>) -> Result<Vec<AnnouncedSale>, DbError> {
        let query = format!(
            "/* announcements::selling */ SELECT s.sale_id, s.status, {COLUMNS} \
             FROM sales s LEFT JOIN sale_announcements a ON a.sale_id = s.sale_id \
             WHERE s.status IN ('{}', '{}') AND s.sale_id > ? AND (a.state IS NULL OR a.state <> '{}' OR s.ends_at > NOW(3)) \
             ORDER BY s.sale_id LIMIT {PAGE_MAX}",
            SaleStatus::Warmed.code(),
            SaleStatus::Paused.code(),
            AnnouncedState::Ended.code()
        );
        let after = after.map_or(&[][..], |id| id.as_str().as_bytes());
        let rows: Vec<SaleRow> = self
            .db
            .run("announcements_selling", async |conn| {
                Ok(diesel::sql_query(&query).bind::<Binary, _>(after).load(conn).await?)
            })
            .await?;
        rows.into_iter().map(SaleRow::read).collect()
    }

    /// Sales that were closed, or removed, since they were announced last; [`PAGE_MAX`] at most.
    pub(crate) async fn closed(&self) -> Result<Vec<AnnouncedSale>, DbError> {
        let closed = SaleStatus::Closed.code();
        let query = format!(
            "/* announcements::closed */ SELECT a.sale_id, '{closed}' AS status, {COLUMNS} \
             FROM sale_announcements a LEFT JOIN sales s ON s.sale_id = a.sale_id \
             WHERE s.sale_id IS NULL OR s.status = '{closed}' ORDER BY a.sale_id LIMIT {PAGE_MAX}"
        );
        let rows: Vec<SaleRow> =
            self.db.run("announcements_closed", async |conn| Ok(diesel::sql_query(&query).load(conn).await?)).await?;
        rows.into_iter().map(SaleRow::read).collect()
    }

    /// Announces what is so of a sale; how many events were written. 0: nothing was to be announced, or another process did it.
    pub(crate) async fn announce(&self, sale: &AnnouncedSale) -> Result<usize, DbError> {
        let Some((to, events)) = sale.next() else { return Ok(0) };
        let events = sale.encoded(&events);
        // Not while a connection is held.
        let webhooks =
            if events.is_empty() { WebhookSubscriptions::default() } else { self.subscriptions.wanted().await? };
        let written = self
            .db
            .run("announcements_write", async |conn| {
                transaction(conn, async |conn| {
                    if !move_row(conn, sale, to, events.len()).await? {
                        return Ok::<_, DbError>(0);
                    }
                    if left_out!(AnnouncedWithItsEvents) {
                        commit_half(conn).await?;
                        crash_point!(AnnouncementWritten);
                    }
                    single::write(conn, &events, &webhooks).await?;
                    crash_point!(AnnouncementWritten);
                    Ok(events.len())
                })
                .await
            })
            .await?;
        if written > 0 {
            crash_point!(AnnouncementCommitted);
        }
        Ok(written)
    }
}

/// Makes the row say `to`, if it still says what was read; whether it did.
async fn move_row(conn: &mut Conn, sale: &AnnouncedSale, to: AnnouncedState, events: usize) -> Result<bool, DbError> {
    let id = sale.sale_id.as_str().as_bytes();
    let events = u32::try_from(events).unwrap_or(u32::MAX);
    let Some((version, _)) = sale.known else { return insert_row(conn, id, (events, to)).await };
    let as_read = sale_announcements::table.find(id).filter(sale_announcements::version.eq(version));
    let moved = if to == AnnouncedState::Closed {
        diesel::delete(as_read).execute(conn).await?
    } else {
        let next = (
            sale_announcements::version.eq(version.saturating_add(events)),
            sale_announcements::state.eq(to.code()),
            sale_announcements::announced_at.eq(diesel::dsl::sql("NOW(3)")),
        );
        diesel::update(as_read).set(next).execute(conn).await?
    };
    Ok(moved > 0)
}

/// The first row of a sale that is not closed. The sale's row is locked meanwhile: a process that read it long ago makes no row again
/// that went with the sale's last event.
async fn insert_row(conn: &mut Conn, id: &[u8], (version, state): (u32, AnnouncedState)) -> Result<bool, DbError> {
    let selling = sales::table.find(id).filter(sales::status.ne(SaleStatus::Closed.code()));
    let is_there: Option<Vec<u8>> = selling.select(sales::sale_id).for_update().first(conn).await.optional()?;
    if is_there.is_none() {
        return Ok(false);
    }
    let row = (
        sale_announcements::sale_id.eq(id),
        sale_announcements::version.eq(version),
        sale_announcements::state.eq(state.code()),
    );
    Ok(diesel::insert_or_ignore_into(sale_announcements::table).values(row).execute(conn).await? > 0)
}
