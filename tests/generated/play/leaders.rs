//! P5, one step at a time: an audit and the repair that follows it, a leader's rebuild, a trimmed record.

use super::stage::Stage;
use seckill::domain::ids::RequestId;
use seckill::domain::outcome::Verdict;
use seckill::faults::{Stepped, Stepwise};
use seckill::p5_reconcile::{compensate, single_steps};
use seckill::store::mysql::codes::{PersistSource, Reporter};

/// A leader, and the rebuild that it is in.
#[derive(Default)]
pub struct LeaderHand {
    attempt: Option<Stepwise<Result<bool, String>>>,
}

impl LeaderHand {
    /// It dies where it is.
    pub fn dies(&mut self) {
        self.attempt = None;
    }

    /// Whether it is in a rebuild.
    pub const fn is_at_work(&self) -> bool {
        self.attempt.is_some()
    }
}

/// The next step. That the terms of the sale are read again is one of the model of lines only.
async fn next<T>(attempt: &mut Stepwise<T>) -> Stepped<T> {
    loop {
        let stepped = attempt.step().await;
        if !matches!(stepped, Stepped::At("rebuild: terms read")) {
            return stepped;
        }
    }
}

/// An attempt whose sale is another attempt's by now ends so; its next one begins again.
fn ended_by(error: &str) -> Result<(), String> {
    if error.contains("run it again") { Ok(()) } else { Err(format!("rebuild: {error}")) }
}

impl Stage {
    /// The next step of a leader's rebuild. Where Redis is ahead of the database, an attempt ends with the database's epoch
    /// moved to Redis' one, and the next one begins at once.
    pub async fn leader_goes_on(&mut self, leader: usize) -> Result<(), String> {
        for _ in 0..2 {
            if self.leaders[leader].attempt.is_none() {
                let (context, sale, watch) = (self.context.clone(), self.sale().await, self.watch.clone());
                let backlog_max = self.world.settings.p1_entry.backlog_max;
                let attempt = async move {
                    let done = single_steps::attempt_rebuild(&context, &sale, backlog_max, &watch).await;
                    done.map_err(|error| error.to_string())
                };
                let mut attempt = Stepwise::new(attempt);
                match next(&mut attempt).await {
                    Stepped::At(_) => {
                        self.leaders[leader].attempt = Some(attempt);
                        return Ok(());
                    }
                    Stepped::Ended(Ok(_)) => continue,
                    Stepped::Ended(Err(error)) => return ended_by(&error),
                }
            }
            let attempt = self.leaders[leader].attempt.as_mut().expect("it is at work");
            if let Stepped::Ended(ended) = next(attempt).await {
                self.leaders[leader].attempt = None;
                return ended.map_or_else(|error| ended_by(&error), |_| Ok(()));
            }
            return Ok(());
        }
        Ok(())
    }

    /// P5 freezes an open sale of another epoch than the database's.
    pub async fn freezes(&mut self) {
        let sale = self.sale().await;
        single_steps::freeze_broken(&self.context, &sale).await.expect("frozen");
    }

    /// The audit of one request. `false`: it found nothing to repair.
    pub async fn audits(&mut self, at: usize) -> bool {
        let (sale, id) = (self.sale().await, self.scene.request_id(at));
        let audit = single_steps::audit_of_request(&self.context, &sale, id).await.expect("an audit");
        if audit.is_none() {
            self.scene.replays[at] = self.dead_letter_of(at).await;
        }
        self.scene.audits[at] = audit;
        self.scene.audits[at].is_some() || self.scene.replays[at].is_some()
    }

    /// The repair after it. Of what only the MQ DLQ has, a person replays the message.
    pub async fn compensates(&mut self, at: usize) -> Result<(), String> {
        if let Some(audit) = self.scene.audits[at].take() {
            compensate(&self.context, &audit).await.expect("a repair");
            return Ok(());
        }
        let Some(order) = self.scene.replays[at].take() else { return Err("no dead letter of it".to_owned()) };
        let persister = &self.world.servers.rows.persister;
        let verdict = persister.persist_one(&order, PersistSource::Replay).await.expect("a replay");
        if verdict == Verdict::Conflict {
            persister.fail_reused(&order, Reporter::Audit, "a person").await.expect("failed for good");
        }
        Ok(())
    }

    /// Trims the record of a request.
    pub async fn trims(&mut self, id: RequestId) {
        let sale = self.sale().await;
        single_steps::trim_request(&self.context, &sale, id).await.expect("trimmed");
    }
}
