//! Entries that wait: who is next, who is in hand, and the request of each offer.
//!
//! Input: a line. Output: entries in the order of ranks, with what decides whether they may have an offer. The request id of an entry is
//! written once, before its purchase, and never changes: a leader that goes on with the entry, after a crash or beside a slow one, repeats
//! the same request. A crash leaves an entry with a request id that waits: the next step asks P2 for the same request again.

use super::LineRows;
use super::own::entry_id;
use crate::domain::ids::{EntryId, RequestId, SaleId, UserId};
use crate::domain::line::EntryState;
use crate::domain::policy::Quantity;
use crate::faults::{crash_point, left_out};
use crate::store::mysql::codes::{read_request_id, read_user_id, unreadable};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// Entries of one question, and of one transaction.
pub(crate) const OFFERS_MAX: usize = 256;

/// An entry that waits, with what decides whether it may have an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) id: EntryId,
    pub(crate) user: UserId,
    pub(crate) person: Option<UserId>,
    pub(crate) quantity: Quantity,
    /// Of a waiting list from the beginning, of a raffle with its request.
    pub(crate) rank: Option<u32>,
    /// Once its offer is under way: it is in hand.
    pub(crate) request_id: Option<RequestId>,
    /// Whether that request has an outcome.
    pub(crate) is_decided: bool,
    /// Whether its buyer or person is blocked.
    pub(crate) is_blocked: bool,
}

#[derive(QueryableByName)]
struct WaiterRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    entry_id: u64,
    #[diesel(sql_type = Binary)]
    user_id: Vec<u8>,
    #[diesel(sql_type = Nullable<Binary>)]
    person: Option<Vec<u8>>,
    #[diesel(sql_type = Unsigned<Integer>)]
    quantity: u32,
    #[diesel(sql_type = Nullable<Unsigned<Integer>>)]
    entry_rank: Option<u32>,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    request_id: Option<u64>,
    #[diesel(sql_type = Bool)]
    is_decided: bool,
    #[diesel(sql_type = Bool)]
    is_blocked: bool,
}

impl WaiterRow {
    fn read(self) -> Result<Waiter, DbError> {
        Ok(Waiter {
            id: entry_id(self.entry_id)?,
            user: read_user_id(&self.user_id)?,
            person: self.person.as_deref().map(read_user_id).transpose()?,
            quantity: Quantity::new(self.quantity).ok_or_else(|| unreadable("line_entries.quantity", "0"))?,
            rank: self.entry_rank,
            request_id: self.request_id.map(read_request_id).transpose()?,
            is_decided: self.is_decided,
            is_blocked: self.is_blocked,
        })
    }
}

const WAITERS: &str = "SELECT e.entry_id, e.user_id, e.person, e.quantity, e.entry_rank, e.request_id, \
    EXISTS (SELECT 1 FROM request_outcome o WHERE o.request_id = e.request_id) AS is_decided, \
    EXISTS (SELECT 1 FROM blocked_buyers b WHERE b.user_id IN (e.user_id, e.limit_key) AND b.lifted_at IS NULL \
    AND (b.ends_at IS NULL OR b.ends_at > NOW(3))) AS is_blocked \
    FROM line_entries e WHERE e.sale_id = ?";

impl LineRows {
    /// Entries that wait and are in hand: P2 has to be asked about them, whatever units there are; [`OFFERS_MAX`] at most.
    pub(crate) async fn in_hand(&self, sale: &SaleId) -> Result<Vec<Waiter>, DbError> {
        let query = format!(
            "{WAITERS} AND e.state = 'WAITING' AND e.request_id IS NOT NULL ORDER BY e.request_id LIMIT {OFFERS_MAX}"
        );
        let key = sale.as_str().as_bytes();
        let rows: Vec<WaiterRow> = self
            .db
            .run("line_in_hand", async |conn| Ok(diesel::sql_query(&query).bind::<Binary, _>(key).load(conn).await?))
            .await?;
        rows.into_iter().map(WaiterRow::read).collect()
    }

    /// Entries of a waiting list that wait and are not in hand, behind rank `after`, in the order of ranks; [`OFFERS_MAX`] at most.
    pub(crate) async fn next_by_arrival(&self, sale: &SaleId, after: u32) -> Result<Vec<Waiter>, DbError> {
        let query = format!(
            "{WAITERS} AND e.state = 'WAITING' AND e.request_id IS NULL AND e.entry_rank > ? ORDER BY e.entry_rank LIMIT {OFFERS_MAX}"
        );
        let rows: Vec<WaiterRow> = self
            .db
            .run("line_waiters", async |conn| {
                let page = diesel::sql_query(&query).bind::<Binary, _>(sale.as_str().as_bytes());
                Ok(page.bind::<Unsigned<Integer>, _>(after).load(conn).await?)
            })
            .await?;
        rows.into_iter().map(WaiterRow::read).collect()
    }

    /// Those of these entries that wait, in no order; [`OFFERS_MAX`] at most.
    pub(crate) async fn waiters_of(&self, sale: &SaleId, ids: &[u64]) -> Result<Vec<Waiter>, DbError> {
        self.entries_in(sale, ids, EntryState::Waiting).await
    }

    /// Those of these entries that have an offer, in no order; [`OFFERS_MAX`] at most.
    pub(crate) async fn offered_of(&self, sale: &SaleId, ids: &[EntryId]) -> Result<Vec<Waiter>, DbError> {
        let ids: Vec<u64> = ids.iter().map(|id| id.get()).collect();
        self.entries_in(sale, &ids, EntryState::Offered).await
    }

    async fn entries_in(&self, sale: &SaleId, ids: &[u64], state: EntryState) -> Result<Vec<Waiter>, DbError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let or_left = if left_out!(LeftNotOffered) { EntryState::Left } else { state };
        let query = format!("{WAITERS} AND e.state IN (?, ?) AND e.entry_id IN ({})", places(ids.len()));
        let rows: Vec<WaiterRow> = self
            .db
            .run("line_waiters_of", async |conn| {
                let mut page = diesel::sql_query(&query)
                    .into_boxed()
                    .bind::<Binary, _>(sale.as_str().as_bytes())
                    .bind::<Text, _>(state.code())
                    .bind::<Text, _>(or_left.code());
                for id in ids {
                    page = page.bind::<Unsigned<BigInt>, _>(*id);
                }
                Ok(page.load(conn).await?)
            })
            .await?;
        rows.into_iter().map(WaiterRow::read).collect()
    }

    /// Writes the request of each offer, and its rank, where none is written and the entry waits. Returns the requests that these entries
    /// have now, by entry: what another leader wrote before stays, and an entry that left has none.
    pub(crate) async fn choose_requests(
        &self,
        sale: &SaleId,
        chosen: &[(EntryId, u32, RequestId)],
    ) -> Result<HashMap<EntryId, RequestId>, DbError> {
        if chosen.is_empty() {
            return Ok(HashMap::new());
        }
        self.db
            .run("line_choose", async |conn| {
                transaction(conn, async |conn| {
                    let or_left = if left_out!(LeftNotOffered) { EntryState::Left } else { EntryState::Waiting };
                    let write = "UPDATE line_entries SET request_id = ?, entry_rank = ? \
                         WHERE sale_id = ? AND entry_id = ? AND state IN ('WAITING', ?) AND request_id IS NULL";
                    for (entry, rank, request_id) in chosen {
                        diesel::sql_query(write)
                            .bind::<Unsigned<BigInt>, _>(request_id.get())
                            .bind::<Unsigned<Integer>, _>(*rank)
                            .bind::<Binary, _>(sale.as_str().as_bytes())
                            .bind::<Unsigned<BigInt>, _>(entry.get())
                            .bind::<Text, _>(or_left.code())
                            .execute(conn)
                            .await?;
                    }
                    let reached = chosen.iter().map(|(_, rank, _)| *rank).max().unwrap_or_default();
                    let turn = "UPDATE sale_lines SET reached_rank = GREATEST(reached_rank, ?) WHERE sale_id = ?";
                    let turn = diesel::sql_query(turn).bind::<Unsigned<Integer>, _>(reached);
                    turn.bind::<Binary, _>(sale.as_str().as_bytes()).execute(conn).await?;
                    crash_point!(OfferRequestWritten);
                    Ok::<_, DbError>(())
                })
                .await
            })
            .await?;
        crash_point!(OfferRequestCommitted);
        let ids: Vec<u64> = chosen.iter().map(|(entry, ..)| entry.get()).collect();
        let waiters = self.waiters_of(sale, &ids).await?;
        Ok(waiters.into_iter().filter_map(|waiter| Some((waiter.id, waiter.request_id?))).collect())
    }
}

#[cfg(feature = "faults")]
impl LineRows {
    /// Without `OfferRequestKept`: these entries have no request any more.
    pub(crate) async fn clear_requests(&self, sale: &SaleId, ids: &[EntryId]) -> Result<(), DbError> {
        let query =
            "UPDATE line_entries SET request_id = NULL WHERE sale_id = ? AND entry_id = ? AND state = 'WAITING'";
        for id in ids {
            self.db
                .run("line_clear", async |conn| {
                    let cleared = diesel::sql_query(query).bind::<Binary, _>(sale.as_str().as_bytes());
                    Ok(cleared.bind::<Unsigned<BigInt>, _>(id.get()).execute(conn).await?)
                })
                .await?;
        }
        Ok(())
    }
}

/// As many placeholders, with commas.
pub(super) fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}
