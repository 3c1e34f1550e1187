//! One request alone: every obstacle gets its name, the domain says what it means, and a failure is recorded.

use crate::domain::message::{self, OrderMessage};
use crate::domain::outcome::{FailReason, NextStep, Obstacle, Outcome, Verdict, after_obstacle};
use crate::events::published::PublishedEvent;
use crate::events::rows::outcome as events;
use crate::events::webhooks::rows as webhooks;
use crate::faults::left_out;
use crate::orders::persist::Persister;
use crate::orders::persist::numbers;
use crate::orders::persist::plan::{NewOutcomeRow, WritePlan};
use crate::orders::persist::seen;
use crate::orders::persist::write::{self, Blocked};
use crate::store::mysql::codes::{PersistSource, Reporter, cut};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Db;
use crate::store::mysql::schema::{failed_request, orders, request_outcome, sales};
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// How often a lost race is repeated before the caller has to try later.
const TRIES: u32 = 5;
/// `failed_request.detail`, in characters.
pub(crate) const DETAIL_CHARS_MAX: usize = 1000;

impl Persister {
    /// Persists one request. A refusal is committed before it is returned.
    ///
    /// # Errors
    /// [`DbError`]; the outcome is then undecided or unknown, and repeating the call is safe. [`DbError::UnknownSale`] lasts until
    /// the sale has its row again.
    pub async fn persist_one(&self, accepted: &OrderMessage, source: PersistSource) -> Result<Verdict, DbError> {
        for _ in 0..TRIES {
            let stopped = match self.attempt(accepted, source).await {
                Ok(None) => return Ok(Verdict::Ordered),
                Ok(Some(stopped)) => stopped,
                Err(DbError::Deadlock) => continue,
                Err(error) => return Err(error),
            };
            if stopped.is_duplicate_key() && left_out!(OwnOutcome) {
                return Ok(Verdict::Already(Outcome::Ordered));
            }
            // In a new transaction, after the rollback: a re-read inside the old one could see nothing (window 73).
            let Some(obstacle) = self.identify(accepted, stopped).await? else {
                continue;
            };
            #[cfg(feature = "faults")]
            if matches!(obstacle, Obstacle::SameOutcome(Outcome::Failed(_))) && left_out!(FailedIsFinal) {
                self.requests.forget_outcome(accepted.purchase.request_id).await?;
                continue;
            }
            match after_obstacle(obstacle) {
                NextStep::Decided(verdict) => return Ok(verdict),
                NextStep::Park => return Err(DbError::UnknownSale(accepted.purchase.sale_id.clone())),
                NextStep::RecordFailure(reason) if left_out!(RecordedRefusal) => {
                    return Ok(Verdict::Refused(reason));
                }
                NextStep::RecordFailure(reason) => {
                    let failure =
                        FinalFailure { reason, reporter: source.reporter(), detail: describe(obstacle), by: "landing" };
                    match self.record_failure(accepted, failure).await {
                        Ok(true) => {
                            crate::orders::persist::refused::count(reason, 1);
                            return Ok(Verdict::Refused(reason));
                        }
                        // Another process decided meanwhile, or contention: read again.
                        Ok(false) | Err(DbError::Deadlock) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Err(DbError::Deadlock)
    }
}

/// What stopped one attempt; nothing of it remains.
enum Stopped {
    /// An obstacle that `domain::outcome` knows.
    Obstacle(Obstacle),
    /// The request id or its acceptance number has an outcome; a lookup decides which.
    Taken,
    /// What was known of the sale was old; it is read again.
    OldFacts,
}

impl Stopped {
    /// Whether the server's word was 1062.
    const fn is_duplicate_key(&self) -> bool {
        match self {
            Self::Taken => true,
            Self::OldFacts => false,
            Self::Obstacle(obstacle) => matches!(obstacle, Obstacle::BuyerHasOrder),
        }
    }
}

impl Persister {
    async fn attempt(&self, accepted: &OrderMessage, source: PersistSource) -> Result<Option<Stopped>, DbError> {
        let facts = self.facts_of(&[&accepted.purchase.sale_id]).await?;
        let plan = match WritePlan::of(&[accepted], &facts, source, &self.subscriptions.wanted().await?)? {
            Ok(plan) => plan,
            Err(obstacle) => return Ok(Some(Stopped::Obstacle(obstacle))),
        };
        let blocked = write::transact(&self.db, "land_one", &plan).await?;
        blocked.iter().for_each(|blocked| self.learn_from(*blocked, [&accepted.purchase.sale_id]));
        Ok(blocked.map(|blocked| match blocked {
            Blocked::Outcome => Stopped::Taken,
            Blocked::Closed => Stopped::OldFacts,
            Blocked::Buyer => Stopped::Obstacle(Obstacle::BuyerHasOrder),
            Blocked::Limit => Stopped::Obstacle(Obstacle::LimitPassed),
            Blocked::Stock => Stopped::Obstacle(Obstacle::StockShort),
        }))
    }
}

impl Persister {
    /// Names the obstacle; `None` when what was in the way is gone again, so that another attempt decides.
    async fn identify(&self, accepted: &OrderMessage, stopped: Stopped) -> Result<Option<Obstacle>, DbError> {
        let request_id = accepted.purchase.request_id;
        if let Some(decided) = self.requests.outcomes_of(&[request_id]).await?.get(&request_id) {
            return Ok(Some(seen(accepted, decided)));
        }
        match stopped {
            Stopped::Obstacle(Obstacle::StockShort) if !sale_exists(&self.db, accepted).await? => {
                Ok(Some(Obstacle::NoSuchSale))
            }
            Stopped::Obstacle(obstacle) => Ok(Some(obstacle)),
            Stopped::Taken if numbers::is_anothers(&self.db, accepted).await? => Ok(Some(Obstacle::OtherOutcome)),
            // Both tables have the request id as their key, and an order is never written without its outcome.
            Stopped::Taken if order_exists(&self.db, accepted).await? => {
                Err(DbError::Other(format!("request {request_id} has an order and no outcome")))
            }
            Stopped::Taken | Stopped::OldFacts => Ok(None),
        }
    }
}

async fn sale_exists(db: &Db, accepted: &OrderMessage) -> Result<bool, DbError> {
    let sale_id = accepted.purchase.sale_id.as_str().as_bytes();
    db.run("sale_exists", async |conn| {
        let found: i64 = sales::table.filter(sales::sale_id.eq(sale_id)).count().get_result(conn).await?;
        Ok(found > 0)
    })
    .await
}

async fn order_exists(db: &Db, accepted: &OrderMessage) -> Result<bool, DbError> {
    let request_id = accepted.purchase.request_id.get();
    db.run("order_exists", async |conn| {
        let found: i64 = orders::table.filter(orders::request_id.eq(request_id)).count().get_result(conn).await?;
        Ok(found > 0)
    })
    .await
}

/// What the register says about an obstacle.
const fn describe(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::SameOutcome(_) | Obstacle::OtherOutcome => "the request was decided before",
        Obstacle::BuyerHasOrder => {
            "the buyer, or the person, has an order in this one-per-user sale under another request id"
        }
        Obstacle::LimitPassed => "the order would pass the buyer's limit",
        Obstacle::StockShort => "the database has too little stock left",
        Obstacle::NumberClosed => "its acceptance number was closed, and the unit may be for sale again",
        Obstacle::NoSuchSale => "the database does not know the sale",
    }
}

/// A final failure as it is to be recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinalFailure<'a> {
    pub reason: FailReason,
    /// Who met it.
    pub reporter: Reporter,
    /// For a person; cut to 1,000 characters.
    pub detail: &'a str,
    /// Who decided it, at most 64 characters are kept.
    pub by: &'a str,
}

impl Persister {
    /// Gives a request its outcome whose acceptance number another request has, or was closed: FAILED without a number. `None`: that is
    /// not so, and nothing was written. Repeating is safe.
    pub async fn fail_reused(
        &self,
        accepted: &OrderMessage,
        reporter: Reporter,
        by: &str,
    ) -> Result<Option<Verdict>, DbError> {
        let id = accepted.purchase.request_id;
        let (number, epoch) = (accepted.number, accepted.epoch);
        let detail = if self.requests.outcomes_of(&[id]).await?.contains_key(&id) {
            return Ok(None);
        } else if numbers::is_anothers(&self.db, accepted).await? {
            format!("redis went back; another request has number {number} of epoch {epoch}")
        } else if numbers::is_closed(&self.db, accepted).await? {
            format!("number {number} of epoch {epoch} was closed")
        } else {
            return Ok(None);
        };
        let reason = FailReason::NumberReused;
        let written = self.record_failure(accepted, FinalFailure { reason, reporter, detail: &detail, by }).await?;
        Ok(written.then_some(Verdict::Refused(reason)))
    }

    /// Writes the FAILED outcome and its register row in one transaction. `false`: the request has an outcome already (or its
    /// acceptance number has, or was closed), and nothing was written. Repeating is safe.
    pub(crate) async fn record_failure(
        &self,
        accepted: &OrderMessage,
        failure: FinalFailure<'_>,
    ) -> Result<bool, DbError> {
        let outcome = Outcome::Failed(failure.reason);
        let row = NewOutcomeRow::of(accepted, outcome);
        let event = PublishedEvent::of_outcome(accepted, outcome, None).encoded();
        let event = std::slice::from_ref(&event);
        let is_published_later = !failure.reporter.has_message();
        let webhooks = self.subscriptions.wanted().await?;
        let written = self
            .db
            .run("record_failure", async |conn| {
                transaction(conn, async |conn| {
                    if row.number.is_some() && numbers::is_closed_for_good(conn, accepted).await? {
                        return Err(DbError::Duplicate("closed_findings".to_owned()));
                    }
                    diesel::insert_into(request_outcome::table).values(&row).execute(conn).await?;
                    if is_published_later {
                        events::write(conn, event).await?;
                    }
                    webhooks::write(conn, &webhooks, event).await?;
                    write_register(conn, accepted, failure).await
                })
                .await
            })
            .await;
        match written {
            Ok(()) => Ok(true),
            Err(DbError::Duplicate(_)) => {
                self.learn_from(Blocked::Closed, [&accepted.purchase.sale_id]);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// An operator gives a request up: FAILED outcome and final register row in one transaction. When something else was
    /// decided before, that is the verdict and nothing is written. Repeating is safe.
    pub async fn give_up(&self, accepted: &OrderMessage, detail: &str, by: &str) -> Result<Verdict, DbError> {
        let reason = FailReason::GivenUp;
        let failure = FinalFailure { reason, reporter: Reporter::Audit, detail, by };
        if self.record_failure(accepted, failure).await? {
            return Ok(Verdict::Refused(reason));
        }
        let Some(decided) = self.requests.outcome_of(accepted.purchase.request_id).await? else {
            // Its number belongs to another request, or was closed.
            return self.fail_reused(accepted, Reporter::Audit, by).await?.ok_or(DbError::Deadlock);
        };
        match after_obstacle(seen(accepted, &decided)) {
            NextStep::Decided(verdict) => Ok(verdict),
            NextStep::RecordFailure(_) | NextStep::Park => Err(DbError::Deadlock),
        }
    }
}

/// An open row of the same request becomes final; its first report time stays.
async fn write_register(
    conn: &mut crate::store::mysql::pool::Conn,
    accepted: &OrderMessage,
    failure: FinalFailure<'_>,
) -> Result<(), DbError> {
    let purchase = &accepted.purchase;
    let payload = message::encode(accepted);
    let closing = (
        failed_request::source.eq(failure.reporter.code()),
        failed_request::reason.eq(failure.reason.code()),
        failed_request::detail.eq(cut(failure.detail, DETAIL_CHARS_MAX)),
        failed_request::status.eq("failed_final"),
        failed_request::resolved_at.eq(diesel::dsl::sql("NOW(3)")),
        failed_request::resolved_by.eq(cut(failure.by, 64)),
    );
    diesel::insert_into(failed_request::table)
        .values((
            failed_request::request_id.eq(purchase.request_id.get()),
            failed_request::sale_id.eq(purchase.sale_id.as_str().as_bytes()),
            failed_request::user_id.eq(purchase.user_id.as_str().as_bytes()),
            failed_request::person.eq(purchase.person.as_ref().map(|person| person.as_str().as_bytes())),
            failed_request::quantity.eq(purchase.quantity.get()),
            failed_request::payload.eq(payload.as_bytes()),
            closing.clone(),
        ))
        .on_conflict(diesel::dsl::DuplicatedKeys)
        .do_update()
        .set(closing)
        .execute(conn)
        .await?;
    Ok(())
}
