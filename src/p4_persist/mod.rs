//! P4 consume & persist: order queue → one idempotent MySQL transaction → ack.
//!
//! Input: messages of the order queues, any of them any number of times. Output: for each an order or a recorded refusal
//! in the database, or the message in a retry queue or the MQ DLQ.
//!
//! A crash leaves: *before the commit* — nothing, the broker gives the message out again; *after the commit, before the ack*
//! — a redelivery, which finds its outcome (`P4-C1`); *after a retry was published, before the ack* — two copies, the same;
//! *after the ack, before the ledger was marked* — a status that says QUEUED until P5 corrects it.
//!
//! A message whose landing failed because the database is away stays in hand, unacknowledged and uncounted, and is tried
//! again when the breaker lets it; with the connection (or the process) it goes back to its queue.
//!
//! While one group is landed the one before is told, acknowledged and marked: at most two groups of a writer are between
//! commit and ack. A process has a few writers ([`Persist::writers`]); each writes the stock row last, so that one's inserts
//! go on while another's commit is synced.

mod back;
mod breaker;
mod conclude;
mod events;
mod intake;
mod teller;

use crate::config;
use crate::domain::fault::{Disposition, Fault, Progress};
use crate::domain::message;
use crate::domain::outcome::Verdict;
use crate::domain::request::Accepted;
use crate::domain::states::P4Persist;
use crate::faults::{crash_point, left_out};
use crate::runtime::{Worker, now_ms};
use crate::store::mysql::codes::Source;
use crate::store::mysql::{Db, DbError, landing, outcomes};
use crate::store::rabbit::{Consumer, Delivery, DeliveryId, RabbitConfig, RabbitError, Sender};
use crate::store::redis::RedisStore;
use crate::telemetry::traces;
use back::Why;
use breaker::Breaker;
use conclude::{Landed, settled};
use intake::{Missing, held_gauge};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub use teller::Teller;

/// Longest wait for the first message of a group; a stop is noticed within it.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// What happens to one delivery.
struct HandledDelivery {
    delivery: Delivery,
    disposition: Disposition,
    state: P4Persist,
    why: Option<Why>,
}

/// One writer of a process: a consumer of all order queues with a transaction at a time.
pub struct Persist {
    db: Db,
    redis: RedisStore,
    rabbit: RabbitConfig,
    settings: config::P4Persist,
    consumer: Option<Consumer>,
    /// Whether, and since when, an order queue is missing that this writer had consumed.
    missing: Missing,
    /// Deliveries of this consumer that wait for the database, oldest first. At most its prefetch, and gone with it.
    held: VecDeque<Delivery>,
    /// Until then the broker is not offered events: it took none a moment ago.
    mute_until: Instant,
    /// Sends messages back and events out; a connection of its own, because a broker that blocks publishers would block acks too.
    sender: Sender,
    /// Shared by the writers of a process: a database that is away is away for all of them.
    breaker: Arc<Mutex<Breaker>>,
    /// Decided and committed, not told and acknowledged yet. Gone with the consumer: it comes again then.
    landed: Option<Landed>,
    /// To be sent back, not acknowledged (unless early) until the broker has the copies. Gone with the consumer, too.
    back: Vec<(HandledDelivery, bool)>,
    /// When that is tried next.
    back_at: Instant,
}

impl Persist {
    /// The writers of one process, as many as the settings say.
    #[must_use]
    pub fn writers(db: &Db, redis: &RedisStore, rabbit: &RabbitConfig, settings: &config::P4Persist) -> Vec<Self> {
        let breaker = Breaker::new(settings.breaker_failures, Duration::from_millis(settings.breaker_open_ms));
        let breaker = Arc::new(Mutex::new(breaker));
        held_gauge().set(0.0);
        landing::refused_from_zero();
        let writer = || Self {
            db: db.clone(),
            redis: redis.clone(),
            rabbit: rabbit.clone(),
            settings: settings.clone(),
            consumer: None,
            missing: Missing::default(),
            held: VecDeque::new(),
            mute_until: Instant::now(),
            sender: Sender::new(rabbit),
            breaker: breaker.clone(),
            landed: None,
            back: Vec::new(),
            back_at: Instant::now(),
        };
        (0..settings.writers_count.max(1)).map(|_| writer()).collect()
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        // A panic elsewhere leaves it whole: every change is one assignment.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lands the next group while the one before is told and acknowledged.
    async fn work(&mut self) -> Result<Progress, RabbitError> {
        let before = self.landed.take();
        let group_max = self.breaker().admits(Instant::now(), self.settings.group_max);
        let group = match group_max {
            // What is decided is told at once; only an idle consumer waits for messages.
            Some(group_max) => {
                let wait = if before.is_some() { Duration::ZERO } else { FIRST_WAIT };
                self.group(group_max, wait).await?
            }
            None => Vec::new(),
        };
        let size = group.len();
        if group.is_empty() {
            let Some(before) = before else {
                self.send_back().await?;
                return Ok(Progress::Idle);
            };
            self.conclude(before).await?;
            // Nothing new, but not idle.
            return Ok(Progress::Moved(0));
        }
        crash_point!(AfterDelivery);
        metrics::histogram!("seckill_p4_persist_group_count").record(size as f64);
        self.process(group, before).await?;
        Ok(Progress::Moved(size))
    }

    async fn process(&mut self, group: Vec<Delivery>, before: Option<Landed>) -> Result<(), RabbitError> {
        let acked_early = left_out!(AckAfterCommit);
        if acked_early {
            let ids: Vec<DeliveryId> = group.iter().map(|delivery| delivery.id).collect();
            self.ack_early(&ids).await?;
        }
        let mut outcomes = Vec::with_capacity(group.len());
        let (mut deliveries, mut items) = (Vec::with_capacity(group.len()), Vec::with_capacity(group.len()));
        for delivery in group {
            match message::decode(&delivery.body) {
                Ok(accepted) => {
                    deliveries.push(delivery);
                    items.push(accepted);
                }
                Err(error) => outcomes.push(back::unread(delivery, &error, self.settings.attempts_max)),
            }
        }
        let db = self.db.clone();
        let begun = traces::clock();
        let landing = async {
            let begun = Instant::now();
            let verdicts = landing::land(&db, &items, Source::Relay).await;
            metrics::histogram!("seckill_p4_persist_seconds").record(begun.elapsed());
            verdicts
        };
        let (verdicts, concluded) = match before {
            Some(before) => tokio::join!(landing, self.conclude(before)),
            None => (landing.await, Ok(())),
        };
        self.breaker().saw(Instant::now(), &verdicts);
        if verdicts.contains(&Ok(Verdict::Ordered)) {
            crash_point!(AfterCommit);
        }
        if verdicts.iter().any(|verdict| matches!(verdict, Ok(Verdict::Refused(_)))) {
            crash_point!(AfterFailedCommit);
        }
        conclude::time_landing(&items, &verdicts, now_ms());
        let settled = settled(&items, &verdicts);
        let told = events::of(&items, &verdicts);
        let away = self.is_away(&items, &verdicts).await;
        for ((delivery, accepted), verdict) in deliveries.into_iter().zip(&items).zip(verdicts) {
            if away && verdict.as_ref().is_err_and(DbError::is_outage) {
                held_gauge().increment(1.0);
                self.held.push_back(delivery);
            } else {
                let outcome = self.handle(delivery, accepted, verdict);
                if let Some(begun) = begun {
                    outcome.trace(accepted.purchase.request_id, begun);
                }
                outcomes.push(outcome);
            }
        }
        // If the one before could not be acknowledged, neither can this one: it comes again and finds its outcome.
        concluded?;
        self.landed = Some(Landed { told, outcomes, settled, acked_early });
        Ok(())
    }

    /// Whether it was the database and not the requests: then no attempt is counted (D6). An outage that a read of the
    /// outcomes does not share may be the work of one of these requests, and the attempts end it.
    async fn is_away(&self, items: &[Accepted], verdicts: &[Result<Verdict, DbError>]) -> bool {
        let failed = items.iter().zip(verdicts).find_map(|(accepted, verdict)| match verdict {
            Err(error) if error.is_outage() => Some((accepted.purchase.request_id, error)),
            Ok(_) | Err(_) => None,
        });
        match failed {
            None => false,
            // A read says nothing about it.
            Some((_, DbError::ReadOnly)) => true,
            // This read would notice a connection that is out of step.
            Some(_) if left_out!(Discard) => true,
            Some((request_id, _)) => outcomes::outcome_of(&self.db, request_id).await.is_err(),
        }
    }

    /// One exhaustive map from what the database said to what happens to the message.
    fn handle(&self, delivery: Delivery, accepted: &Accepted, verdict: Result<Verdict, DbError>) -> HandledDelivery {
        let id = accepted.purchase.request_id;
        let done = |delivery, state| HandledDelivery { delivery, disposition: Disposition::Done, state, why: None };
        match verdict {
            Ok(Verdict::Ordered) => {
                tracing::debug!(phase = "p4_persist", request_id = %id, number = accepted.number, "ordered");
                done(delivery, P4Persist::DbOk)
            }
            Ok(Verdict::Already(outcome)) => {
                tracing::debug!(phase = "p4_persist", request_id = %id, ?outcome, "outcome was there");
                done(delivery, P4Persist::Idempotent)
            }
            Ok(Verdict::Refused(reason)) => {
                tracing::warn!(phase = "p4_persist", request_id = %id, reason = reason.code(), "refused and recorded");
                done(delivery, P4Persist::BizErrorAck)
            }
            Ok(Verdict::Conflict) => {
                tracing::error!(phase = "p4_persist", request_id = %id, "the request id has another outcome, parked");
                parked(delivery, Why::new("CONFLICT", &"the request id or its acceptance number has another outcome"))
            }
            Err(error @ DbError::UnknownSale(_)) if delivery.attempts + 1 >= self.settings.attempts_max => {
                tracing::error!(phase = "p4_persist", request_id = %id, %error, "accepted, and its sale is unknown: parked");
                parked(delivery, Why::new("UNKNOWN_SALE", &error))
            }
            Err(error) if delivery.attempts + 1 >= self.settings.attempts_max => {
                tracing::error!(phase = "p4_persist", request_id = %id, %error, attempts = delivery.attempts + 1, "attempts spent, parked");
                parked(delivery, Why::new("ATTEMPTS_SPENT", &error))
            }
            Err(error) => {
                tracing::warn!(phase = "p4_persist", request_id = %id, %error, attempts = delivery.attempts + 1, "will be redelivered");
                let why = Some(Why::new("SYSTEM_ERROR", &error));
                HandledDelivery { delivery, disposition: Disposition::Retry, state: P4Persist::SysErrorRetry, why }
            }
        }
    }
}

fn parked(delivery: Delivery, why: Why) -> HandledDelivery {
    HandledDelivery { delivery, disposition: Disposition::Park, state: P4Persist::MqDlq, why: Some(why) }
}

impl Worker for Persist {
    fn name(&self) -> &'static str {
        "p4_persist"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        self.work().await.map_err(|error| {
            // Whatever was held comes again on the next connection.
            self.let_go();
            self.landed = None;
            Fault::back_off(error)
        })
    }

    async fn drain(&mut self) {
        if let Some(landed) = self.landed.take()
            && let Err(error) = self.conclude(landed).await
        {
            tracing::warn!(phase = "p4_persist", %error, "what was landed last is not acknowledged, it comes again");
        }
        self.let_go();
        self.sender = Sender::new(&self.rabbit);
    }
}
