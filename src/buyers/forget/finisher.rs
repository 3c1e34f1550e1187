//! Ends what a process that died has left of forgetting a buyer. Beside P5's leader.
//!
//! Input: rows of `forgotten_buyers` that no process has touched for half a minute. Output: buyers who are forgotten, or who may buy again
//! where nothing was decided and something is on its way; where the account of this process may not change the rows, a warning. A crash leaves the row for the next one. The log names pseudonyms only.

use super::{BuyerForget, ForgetError};
use crate::domain::fault::{Fault, Progress};
use crate::domain::operator::{Actor, ActorKind, AuthMethod};
use crate::runtime::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two questions for work that was left.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// The same where this process' account may not do the work.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(300);

/// The worker of one process.
pub(crate) struct Finisher {
    forget: BuyerForget,
    /// Whether this process leads P5: of several processes one is enough.
    leads: Arc<AtomicBool>,
    next_at: Instant,
}

impl Finisher {
    /// A worker that acts while `leads` is set.
    pub(crate) fn new(forget: BuyerForget, leads: Arc<AtomicBool>) -> Self {
        Self { forget, leads, next_at: Instant::now() }
    }
}

/// Who goes on with it, for the record; the row has who wanted it.
fn system() -> Actor {
    Actor {
        kind: ActorKind::Service,
        id: "p5_reconcile".to_owned(),
        name: "forget".to_owned(),
        roles: "operate".to_owned(),
        auth_method: AuthMethod::Shell,
        ip: None,
        call_id: None,
    }
}

impl Worker for Finisher {
    fn name(&self) -> &'static str {
        "p5_forget"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.leads.load(Ordering::Relaxed) || Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        self.next_at = Instant::now() + ASK_EVERY;
        let (mut done, left) = (0, self.forget.rows.left().await.map_err(Fault::back_off)?);
        if !left.is_empty() {
            let missing = self.forget.rows.missing_rights().await.map_err(Fault::back_off)?;
            if !missing.is_empty() {
                self.next_at = Instant::now() + LEFT_TO_OTHERS;
                let why = ForgetError::Rights(missing);
                tracing::warn!(phase = "p5_forget", %why, "a buyer is half forgotten; repeat the command");
                return Ok(Progress::Idle);
            }
        }
        for of in left {
            let pseudonym = of.pseudonym.as_str();
            match Box::pin(self.forget.go_on(&system(), &of)).await {
                Ok(_) => {
                    tracing::info!(phase = "p5_forget", pseudonym, "a buyer is forgotten");
                    done += 1;
                }
                Err(why @ (ForgetError::OnItsWay(_) | ForgetError::Unfinished(_))) => {
                    tracing::warn!(phase = "p5_forget", pseudonym, %why, "a buyer is not forgotten");
                }
                Err(error) => return Err(Fault::back_off(error)),
            }
        }
        Ok(if done > 0 { Progress::Moved(done) } else { Progress::Idle })
    }
}
