//! P4 consume & persist: order queue → one idempotent MySQL transaction → ack.
//!
//! Input: messages of the order queues, any of them any number of times. Output: for each message an order or a recorded
//! refusal in the database, or the message in a retry queue or the MQ DLQ.
//!
//! A crash leaves: *before the commit* — nothing, the broker delivers the message again; *after the commit, before the ack* — a
//! redelivery, which finds its outcome (`P4-C1`); *after a retry was published, before the ack* — two copies, the same; *after
//! the ack, before the ledger was marked* — a status that says QUEUED until P5 corrects it.
//!
//! A message whose transaction failed because the database is unavailable is held: it stays unacknowledged, its attempts are
//! not counted, and it is tried again when the breaker admits it. With the connection or the process it returns to its queue.
//!
//! While one group is written, the group before it gets its events, acks and ledger marks: at most two groups of a writer are
//! between commit and ack. A process has a few writers ([`Persist::writers`]), which take turns ([`turn`]) unless their groups are
//! full. Each updates the stock row last, so the inserts of one writer go on while the commit of another is synced.

mod after_commit;
mod breaker;
mod context;
mod decoded_group;
mod events;
mod handled;
mod intake;
mod ledger_marks;
mod queue_intake;
mod redis_watch;
mod send_back;
mod turn;

use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::domain::message::{OrderMessage, UnitPrice};
use crate::domain::outcome::{Outcome, Verdict};
use crate::events::published::WaitingEvents;
use crate::events::rows::OutcomeEventRows;
use crate::faults::{crash_point, left_out};
use crate::orders::persist::{self, Persister};
use crate::orders::rows::RequestRows;
use crate::runtime::{Worker, now_ms};
use crate::store::mysql::DbError;
use crate::store::mysql::codes::PersistSource;
use crate::store::rabbit::{Delivery, DeliveryId, RabbitConfig, RabbitError, Sender};
use crate::store::redis::RequestLedger;
use crate::telemetry::traces;
use after_commit::CommittedGroup;
use breaker::DatabaseBreaker;
pub use context::PersistRows;
use decoded_group::DecodedGroup;
use handled::HandledDelivery;
use intake::{Intake, held_gauge};
use ledger_marks::LedgerMarker;
pub(crate) use redis_watch::RedisWatch;
use send_back::UnsentCopy;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use turn::{Turn, WriteTurn};

/// Longest wait for the first message of a group; a stop is noticed within it.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// One writer of a process: it consumes all order queues and has one transaction at a time.
pub struct Persist {
    requests: RequestRows,
    outcome_events: OutcomeEventRows,
    persister: Persister,
    marker: LedgerMarker,
    rabbit: RabbitConfig,
    settings: config::P4Persist,
    intake: Intake,
    /// Deliveries that wait for the database, oldest first. At most the prefetch of each queue; dropped with their consumer.
    held: VecDeque<Delivery>,
    /// The broker took no events a moment ago and is offered none before.
    events_paused_until: Instant,
    /// Sends copies and events. It has a connection of its own, because a broker that blocks publishers would block acks, too.
    sender: Sender,
    /// Shared by the writers of a process: they use the same database.
    breaker: Arc<Mutex<DatabaseBreaker>>,
    /// Shared as well.
    turn: WriteTurn,
    /// Committed and not acknowledged yet. Dropped with the consumers: the messages come again.
    committed: Option<CommittedGroup>,
    /// Their events, not published yet; of two groups at most. They outlive the consumers: a purged queue gives no message again.
    unpublished: Vec<WaitingEvents>,
    /// Sent back, not acknowledged (unless early) until the broker has the copies. Dropped with their consumer, too.
    unsent_copies: Vec<UnsentCopy>,
    /// When the unsent copies are tried next.
    send_back_at: Instant,
}

impl Persist {
    /// The writers of one process, as many as the settings say.
    #[must_use]
    pub fn writers(
        rows: &PersistRows,
        ledger: &RequestLedger,
        rabbit: &RabbitConfig,
        settings: &config::P4Persist,
    ) -> Vec<Self> {
        let breaker = DatabaseBreaker::new(settings.breaker_failures, Duration::from_millis(settings.breaker_open_ms));
        let (breaker, turn) = (Arc::new(Mutex::new(breaker)), WriteTurn::default());
        held_gauge().set(0.0);
        persist::refused_from_zero();
        let writer = || Self {
            requests: rows.requests.clone(),
            outcome_events: rows.outcome_events.clone(),
            persister: rows.persister.clone(),
            marker: LedgerMarker::new(ledger),
            rabbit: rabbit.clone(),
            settings: settings.clone(),
            intake: Intake::new(rabbit, settings.prefetch),
            held: VecDeque::new(),
            events_paused_until: Instant::now(),
            sender: Sender::new(rabbit),
            breaker: breaker.clone(),
            turn: turn.clone(),
            committed: None,
            unpublished: Vec::new(),
            unsent_copies: Vec::new(),
            send_back_at: Instant::now(),
        };
        (0..settings.writers_count.max(1)).map(|_| writer()).collect()
    }

    fn breaker(&self) -> MutexGuard<'_, DatabaseBreaker> {
        // A panic elsewhere leaves it whole: every change is one assignment.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the next group while the group before it is acknowledged.
    async fn work(&mut self) -> Result<Progress, RabbitError> {
        if self.committed.is_none() {
            self.publish_or_store().await?;
        }
        let mut before = self.committed.take();
        let group_max = self.breaker().admits(Instant::now(), self.settings.group_max);
        let mut group = match group_max {
            // A committed group is acknowledged at once; only an idle writer waits for messages.
            Some(group_max) => {
                let wait = if before.is_some() { Duration::ZERO } else { FIRST_WAIT };
                self.group(group_max, wait).await?
            }
            None => Vec::new(),
        };
        if group.is_empty() {
            let Some(before) = before else {
                self.send_back().await?;
                self.marker.mark_waiting().await;
                return Ok(Progress::Idle);
            };
            self.after_commit(before).await?;
            // Nothing new, but not idle.
            return Ok(Progress::Moved(0));
        }
        let turn = match group_max {
            Some(group_max) if self.held.is_empty() => self.take_turn(&mut group, group_max, &mut before).await?,
            Some(_) | None => None,
        };
        let size = group.len();
        crash_point!(AfterDelivery);
        metrics::histogram!("seckill_p4_persist_group_count").record(size as f64);
        self.process(group, before, turn).await?;
        Ok(Progress::Moved(size))
    }

    async fn process(
        &mut self,
        group: Vec<Delivery>,
        before: Option<CommittedGroup>,
        turn: Turn,
    ) -> Result<(), RabbitError> {
        let acked_early = left_out!(AckAfterCommit);
        if acked_early {
            let ids: Vec<DeliveryId> = group.iter().map(|delivery| delivery.id).collect();
            self.ack_early(&ids).await?;
        }
        let DecodedGroup { deliveries, items, unreadable } = DecodedGroup::new(group, self.settings.attempts_max);
        handled::trace_deliveries(&deliveries, &items);
        unreadable.iter().for_each(HandledDelivery::trace_unreadable);
        if left_out!(CommitBeforeEvent) {
            self.publish_undecided(&items).await?;
        }
        let (persister, begun) = (self.persister.clone(), traces::now());
        let transaction = async {
            let verdicts = transact(&persister, &items).await;
            drop(turn);
            verdicts
        };
        let (verdicts, acknowledged) = match before {
            Some(before) => tokio::join!(transaction, self.after_commit(before)),
            None => (transaction.await, Ok(())),
        };
        self.breaker().observe(Instant::now(), &verdicts);
        if verdicts.contains(&Ok(Verdict::Ordered)) {
            crash_point!(AfterCommit);
        }
        if verdicts.iter().any(|verdict| matches!(verdict, Ok(Verdict::Refused(_)))) {
            crash_point!(AfterFailedCommit);
        }
        after_commit::record_delay(&items, &verdicts, now_ms());
        let unavailable = self.database_is_unavailable(&items, &verdicts).await;
        let prices = self.prices(&items, &verdicts).await?;
        self.unpublished.extend(self.events_of(&items, &verdicts, &prices));
        let mut committed = CommittedGroup::new(&items, &verdicts, acked_early);
        committed.handled = unreadable;
        for ((mut delivery, accepted), verdict) in deliveries.into_iter().zip(&items).zip(verdicts) {
            if unavailable && verdict.as_ref().is_err_and(DbError::is_outage) {
                held_gauge().increment(1.0);
                delivery.put_back(accepted);
                self.held.push_back(delivery);
                continue;
            }
            let handled = HandledDelivery::decided(delivery, accepted, verdict, self.settings.attempts_max);
            handled.trace(accepted);
            if let Some(begun) = begun {
                after_commit::trace(&handled, accepted.purchase.request_id, begun);
            }
            committed.handled.push(handled);
        }
        handled::log_retried(&committed.handled);
        // If the group before could not be acknowledged, neither can this one: it comes again and finds its outcomes.
        acknowledged?;
        self.committed = Some(committed);
        Ok(())
    }

    /// What the events of orders say of prices. Without them nothing may be acknowledged: the group comes again and finds its outcomes.
    async fn prices(
        &self,
        items: &[OrderMessage],
        verdicts: &[Result<Verdict, DbError>],
    ) -> Result<HashMap<SaleId, UnitPrice>, RabbitError> {
        let is_order = |verdict: &Result<Verdict, DbError>| {
            verdict.as_ref().is_ok_and(|verdict| verdict.outcome() == Some(Outcome::Ordered))
        };
        let orders = items.iter().zip(verdicts).filter(|(_, verdict)| is_order(verdict));
        let mut sale_ids: Vec<&SaleId> = orders.map(|(accepted, _)| &accepted.purchase.sale_id).collect();
        // Most neighbours are of one sale.
        sale_ids.dedup();
        if !self.settings.events || sale_ids.is_empty() {
            return Ok(HashMap::new());
        }
        let read = self.persister.unit_prices(&sale_ids).await;
        read.map_err(|error| RabbitError::Closed(format!("given up, because prices could not be read: {error}")))
    }

    /// Whether the database failed and not the requests; then no attempt is counted (D6). If a read of an outcome succeeds, the
    /// failure may be caused by one of these requests, and counting attempts ends it.
    async fn database_is_unavailable(&self, items: &[OrderMessage], verdicts: &[Result<Verdict, DbError>]) -> bool {
        let failed = items.iter().zip(verdicts).find_map(|(accepted, verdict)| match verdict {
            Err(error) if error.is_outage() => Some((accepted.purchase.request_id, error)),
            Ok(_) | Err(_) => None,
        });
        match failed {
            None => false,
            // A read says nothing about a database that takes no writes.
            Some((_, DbError::WrongNode(_))) => true,
            // This read would notice a connection that is out of step.
            Some(_) if left_out!(Discard) => true,
            Some((request_id, _)) => self.requests.outcome_of(request_id).await.is_err(),
        }
    }
}

/// Writes a group; each request gets its own verdict.
async fn transact(persister: &Persister, items: &[OrderMessage]) -> Vec<Result<Verdict, DbError>> {
    let begun = Instant::now();
    let verdicts = persister.persist_all(items, PersistSource::Relay).await;
    metrics::histogram!("seckill_p4_persist_seconds").record(begun.elapsed());
    verdicts
}

impl Worker for Persist {
    fn name(&self) -> &'static str {
        "p4_persist"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        self.work().await.map_err(|error| {
            // What was held comes again on the next connections.
            self.release();
            Fault::back_off(error)
        })
    }

    async fn drain(&mut self) {
        let done = match self.committed.take() {
            Some(committed) => self.after_commit(committed).await,
            None => self.publish_or_store().await,
        };
        if let Err(error) = done {
            tracing::warn!(phase = "p4_persist", %error, "the last committed group is not acknowledged, it comes again");
        }
        self.release();
        self.sender = Sender::new(&self.rabbit);
    }
}
