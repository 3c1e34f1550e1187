//! What became of offers: the steps of entries, with their events, and offers against the orders of their requests.
//!
//! Input: what P2 decided, and what became of orders. Output: rows and their events, in one transaction each. A crash leaves both or neither,
//! and the next step takes the same step.

use super::LineRows;
use super::own::{entry_id, entry_state};
use super::waiters::{OFFERS_MAX, places};
use crate::domain::ids::{EntryId, SaleId};
use crate::domain::line::{EntryEvent, EntryState, EntryTransition, LineEvent};
use crate::domain::order_life::OrderState;
use crate::events::line::ReachedEntry;
use crate::events::published::WaitingEvents;
use crate::events::rows::single;
use crate::faults::{crash_point, left_out};
use crate::store::mysql::codes::{read_request_id, read_user_id, unix_ms, unreadable};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Datetime, Integer, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// Why an offer lapses that P2 accepted once, does not know any more, and will not accept again.
pub(crate) const LOST: &str = "LOST";

/// An offer that P2 accepted and that has no outcome for so long is asked for again. Seconds.
const UNDECIDED_AFTER_S: u32 = 5;

/// What follows for an entry, and why it lapsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryStep {
    pub(crate) id: EntryId,
    pub(crate) event: EntryEvent,
    pub(crate) reason: Option<String>,
}

#[derive(QueryableByName)]
struct FollowedRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    entry_id: u64,
    #[diesel(sql_type = Unsigned<BigInt>)]
    request_id: u64,
    #[diesel(sql_type = Nullable<Text>)]
    kind: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    reason: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    state: Option<String>,
    #[diesel(sql_type = Bool)]
    is_cancelled: bool,
    /// Whether it is offered for longer than an outcome takes.
    #[diesel(sql_type = Bool)]
    is_long_ago: bool,
}

impl FollowedRow {
    /// What its outcome and its order say of the offer; `None`: it is not decided.
    fn step(&self) -> Result<Option<EntryStep>, DbError> {
        let state = self.state.as_deref();
        let state = state.map(|code| OrderState::from_code(code).ok_or_else(|| unreadable("orders.state", code)));
        // An order without a payment step has no state.
        let ended = if self.is_cancelled { Some(OrderState::Cancelled) } else { None };
        let (event, reason) = match (self.kind.as_deref(), state.transpose()?.or(ended)) {
            (None, _) | (Some("ORDER"), Some(OrderState::Unpaid)) => return Ok(None),
            (Some("ORDER"), Some(OrderState::Paid) | None) => (EntryEvent::OfferTaken, None),
            (Some("ORDER"), Some(ended)) => (EntryEvent::OfferLapsed, Some(ended.code().to_owned())),
            (Some(_failed), _) => {
                (EntryEvent::OfferLapsed, Some(self.reason.clone().unwrap_or_else(|| "FAILED".to_owned())))
            }
        };
        Ok(Some(EntryStep { id: entry_id(self.entry_id)?, event, reason }))
    }
}

/// A page of entries with offers: what follows for those that are decided, and the request to go on behind; 0: there are no more.
#[derive(Debug)]
pub(crate) struct FollowedOffers {
    pub(crate) steps: Vec<EntryStep>,
    /// Those without an outcome for [`UNDECIDED_AFTER_S`]: Redis may have lost what it accepted.
    pub(crate) undecided: Vec<EntryId>,
    pub(crate) next_after: u64,
}

impl LineRows {
    /// Takes these steps, each as the table of transitions allows it, with their events. Returns how many entries got which state. Repeating
    /// is safe.
    pub(crate) async fn take_steps(
        &self,
        sale: &SaleId,
        steps: &[EntryStep],
    ) -> Result<Vec<(EntryState, usize)>, DbError> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        // Not while a connection is held.
        let webhooks = self.subscriptions.wanted().await?;
        let changed = self
            .db
            .run("line_steps", async |conn| {
                transaction(conn, async |conn| {
                    let (changed, events) = take_held(conn, sale, steps).await?;
                    single::write(conn, &events, &webhooks).await?;
                    crash_point!(OfferStepWritten);
                    Ok::<_, DbError>(changed)
                })
                .await
            })
            .await?;
        crash_point!(OfferStepCommitted);
        Ok(changed)
    }

    /// Offers whose requests are behind one, in the order of requests: what their outcomes and orders say of them.
    pub(crate) async fn followed_offers(&self, sale: &SaleId, after: u64) -> Result<FollowedOffers, DbError> {
        let query = format!(
            "SELECT e.entry_id, e.request_id, r.kind, r.reason, o.state, o.cancelled_at IS NOT NULL AS is_cancelled, \
             e.state_at < NOW(3) - INTERVAL {UNDECIDED_AFTER_S} SECOND AS is_long_ago FROM line_entries e \
             LEFT JOIN request_outcome r ON r.request_id = e.request_id LEFT JOIN orders o ON o.request_id = e.request_id \
             WHERE e.sale_id = ? AND e.state = 'OFFERED' AND e.request_id > ? ORDER BY e.request_id LIMIT {OFFERS_MAX}"
        );
        let rows: Vec<FollowedRow> = self
            .db
            .run("line_followed", async |conn| {
                let page = diesel::sql_query(&query).bind::<Binary, _>(sale.as_str().as_bytes());
                Ok(page.bind::<Unsigned<BigInt>, _>(after).load(conn).await?)
            })
            .await?;
        let next_after = if rows.len() < OFFERS_MAX { 0 } else { rows.last().map_or(0, |row| row.request_id) };
        let steps: Vec<EntryStep> = rows.iter().filter_map(|row| row.step().transpose()).collect::<Result<_, _>>()?;
        let undecided =
            rows.iter().filter(|row| row.kind.is_none() && row.is_long_ago && !left_out!(ForgottenAskedAgain));
        let undecided = undecided.map(|row| entry_id(row.entry_id)).collect::<Result<_, _>>()?;
        Ok(FollowedOffers { steps, undecided, next_after })
    }
}

#[derive(QueryableByName)]
struct HeldEntry {
    #[diesel(sql_type = Unsigned<BigInt>)]
    entry_id: u64,
    #[diesel(sql_type = Binary)]
    user_id: Vec<u8>,
    #[diesel(sql_type = Unsigned<Integer>)]
    quantity: u32,
    #[diesel(sql_type = Nullable<Unsigned<Integer>>)]
    entry_rank: Option<u32>,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    request_id: Option<u64>,
    /// Whether its request has an outcome by now.
    #[diesel(sql_type = Bool)]
    is_decided: bool,
    #[diesel(sql_type = Datetime)]
    now: NaiveDateTime,
}

impl HeldEntry {
    fn event(&self, sale: &SaleId, event: LineEvent, reason: Option<&str>) -> Result<WaitingEvents, DbError> {
        let user = read_user_id(&self.user_id)?;
        let reached = ReachedEntry {
            sale,
            entry: entry_id(self.entry_id)?,
            user: user.as_str(),
            quantity: self.quantity,
            rank: self.entry_rank,
            request_id: self.request_id.map(read_request_id).transpose()?,
        };
        Ok(reached.event(event, reason, unix_ms(self.now)))
    }
}

/// Holds the entries, moves those that can be moved, and says what is to be published.
async fn take_held(
    conn: &mut Conn,
    sale: &SaleId,
    steps: &[EntryStep],
) -> Result<(Vec<(EntryState, usize)>, Vec<WaitingEvents>), DbError> {
    let query = format!(
        "SELECT e.entry_id, e.user_id, e.quantity, e.entry_rank, e.state, e.request_id, NOW(3) AS now, \
         EXISTS (SELECT 1 FROM request_outcome o WHERE o.request_id = e.request_id) AS is_decided FROM line_entries e \
         WHERE e.sale_id = ? AND e.entry_id IN ({}) ORDER BY e.entry_id FOR UPDATE",
        places(steps.len())
    );
    let mut held = diesel::sql_query(query).into_boxed().bind::<Binary, _>(sale.as_str().as_bytes());
    for step in steps {
        held = held.bind::<Unsigned<BigInt>, _>(step.id.get());
    }
    let held: Vec<HeldEntry> = held.load(conn).await?;
    let held: HashMap<u64, &HeldEntry> = held.iter().map(|entry| (entry.entry_id, entry)).collect();
    let (mut events, mut moves) = (Vec::new(), HashMap::<(EntryState, Option<&str>), Vec<u64>>::new());
    for step in steps {
        let Some(entry) = held.get(&step.id.get()) else { continue };
        let EntryTransition::To(to) = entry_state(&entry.state)?.after(step.event) else { continue };
        let reason = step.reason.as_deref();
        // It was not lost: its outcome came since P2 was asked.
        if entry.is_decided && reason == Some(LOST) {
            continue;
        }
        match to {
            EntryState::Offered => events.push(entry.event(sale, LineEvent::Offered, None)?),
            EntryState::Lapsed => events.push(entry.event(sale, LineEvent::Lapsed, reason)?),
            EntryState::Waiting | EntryState::Taken | EntryState::Left => {}
        }
        moves.entry((to, reason)).or_default().push(entry.entry_id);
    }
    let mut changed = Vec::with_capacity(moves.len());
    for ((to, reason), ids) in moves {
        let query = format!(
            "UPDATE line_entries SET state = ?, lapse_reason = ?, state_at = NOW(3) WHERE sale_id = ? AND entry_id IN ({})",
            places(ids.len())
        );
        let mut moved = diesel::sql_query(query)
            .into_boxed()
            .bind::<Text, _>(to.code())
            .bind::<Nullable<Text>, _>(reason)
            .bind::<Binary, _>(sale.as_str().as_bytes());
        for id in ids {
            moved = moved.bind::<Unsigned<BigInt>, _>(id);
        }
        changed.push((to, moved.execute(conn).await?));
    }
    Ok((changed, events))
}
