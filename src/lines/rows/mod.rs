//! Lines as the database knows them (`sale_lines`), and their entries (`line_entries`).
//!
//! Adding an entry holds the line's row meanwhile, and closing the line takes it: so none is added behind the close, however
//! slow its transaction is. The seed of a line whose list is not sealed is never read.

mod compared;
mod doors;
mod draw;
mod entries;
mod listing;
mod offers;
mod own;
mod schema;
mod waiters;

pub(crate) use compared::DifferingEntry;
pub(crate) use doors::{SERVED_MAX, ServedLine};
pub(crate) use draw::{BeaconGiven, DueLine, ID_PAGE};
pub(crate) use entries::{Entered, NewEntry};
pub(crate) use listing::{EntriesQuery, EntryTally, ListedEntry, PAGE_MAX};
pub(crate) use offers::{EntryStep, LOST};
pub(crate) use own::{Entry, LeftLine};
pub(crate) use waiters::{OFFERS_MAX, Waiter};

use crate::domain::draw::Bytes32;
use crate::domain::ids::SaleId;
use crate::domain::line::{LineKind, LineState};
use crate::events::webhooks::rows::Subscriptions;
use crate::store::mysql::codes::{read_sale_id, unix_ms, unreadable};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Db;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Datetime, Integer, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// Lines of sales and their entries.
#[derive(Clone)]
pub struct LineRows {
    db: Db,
    subscriptions: Subscriptions,
}

impl LineRows {
    /// On this database, for the webhooks of these subscriptions.
    #[must_use]
    pub(crate) const fn new(db: Db, subscriptions: Subscriptions) -> Self {
        Self { db, subscriptions }
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) sale_id: SaleId,
    pub(crate) kind: LineKind,
    pub(crate) state: LineState,
    pub(crate) opens_at_ms: i64,
    pub(crate) closes_at_ms: i64,
    /// Whether it is drawn only with a text from outside.
    pub(crate) needs_beacon: bool,
    pub(crate) commitment: Bytes32,
    /// Rows of the line; once sealed, entries of the list.
    pub(crate) entries: u64,
    /// The highest rank whose turn has come.
    pub(crate) reached_rank: u32,
    /// Once the list is sealed.
    pub(crate) sealed: Option<SealedList>,
    /// Once it is drawn with one.
    pub(crate) beacon: Option<String>,
    pub(crate) drawn_at_ms: Option<i64>,
}

/// The sealed list of a line, and its seed, which is public now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedList {
    pub(crate) entries: u64,
    pub(crate) digest: Bytes32,
    pub(crate) seed: Bytes32,
    pub(crate) at_ms: i64,
}

#[derive(QueryableByName)]
struct LineRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Datetime)]
    opens_at: NaiveDateTime,
    #[diesel(sql_type = Datetime)]
    closes_at: NaiveDateTime,
    #[diesel(sql_type = Bool)]
    needs_beacon: bool,
    #[diesel(sql_type = Binary)]
    commitment: Vec<u8>,
    #[diesel(sql_type = Unsigned<BigInt>)]
    entries_count: u64,
    #[diesel(sql_type = Unsigned<Integer>)]
    reached_rank: u32,
    #[diesel(sql_type = Nullable<Binary>)]
    digest: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Binary>)]
    public_seed: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Text>)]
    beacon: Option<String>,
    #[diesel(sql_type = Nullable<Datetime>)]
    sealed_at: Option<NaiveDateTime>,
    #[diesel(sql_type = Nullable<Datetime>)]
    drawn_at: Option<NaiveDateTime>,
}

/// All of a line that may be read.
const LINE: &str = "SELECT sale_id, kind, state, opens_at, closes_at, needs_beacon, commitment, entries_count, reached_rank, digest, \
    IF(digest IS NOT NULL, seed, NULL) AS public_seed, beacon, sealed_at, drawn_at FROM sale_lines";

fn line_kind(code: &str) -> Result<LineKind, DbError> {
    LineKind::from_code(code).ok_or_else(|| unreadable("sale_lines.kind", code))
}

fn line_state(code: &str) -> Result<LineState, DbError> {
    LineState::from_code(code).ok_or_else(|| unreadable("sale_lines.state", code))
}

fn bytes(column: &str, bytes: &[u8]) -> Result<Bytes32, DbError> {
    bytes.try_into().map_err(|_ignored| unreadable(column, "not 32 bytes"))
}

impl LineRow {
    fn read(self) -> Result<Line, DbError> {
        let state = line_state(&self.state)?;
        let sealed = match (self.digest, self.public_seed, self.sealed_at) {
            (Some(digest), Some(seed), Some(at)) => Some(SealedList {
                entries: self.entries_count,
                digest: bytes("sale_lines.digest", &digest)?,
                seed: bytes("sale_lines.seed", &seed)?,
                at_ms: unix_ms(at),
            }),
            _ => None,
        };
        let kind = line_kind(&self.kind)?;
        if kind == LineKind::Raffle && sealed.is_some() != state.is_sealed() {
            return Err(unreadable("sale_lines.digest", state.code()));
        }
        Ok(Line {
            sale_id: read_sale_id(&self.sale_id)?,
            kind,
            state,
            opens_at_ms: unix_ms(self.opens_at),
            closes_at_ms: unix_ms(self.closes_at),
            needs_beacon: self.needs_beacon,
            commitment: bytes("sale_lines.commitment", &self.commitment)?,
            entries: self.entries_count,
            reached_rank: self.reached_rank,
            sealed,
            beacon: self.beacon,
            drawn_at_ms: self.drawn_at.map(unix_ms),
        })
    }
}

impl LineRows {
    /// The line of a sale; `None`: it has none.
    pub(crate) async fn line(&self, sale: &SaleId) -> Result<Option<Line>, DbError> {
        let query = format!("{LINE} WHERE sale_id = ?");
        let found: Option<LineRow> = self
            .db
            .run("line_get", async |conn| {
                let line = diesel::sql_query(&query).bind::<Binary, _>(sale.as_str().as_bytes());
                Ok(line.get_result(conn).await.optional()?)
            })
            .await?;
        found.map(LineRow::read).transpose()
    }
}
