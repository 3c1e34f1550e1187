//! What buyers do after their order is confirmed, in sales with a payment step: they pay through the shop's backend, cancel, pay
//! late, pay twice, pay the wrong amount, or forget.
//!
//! | share | what it does |
//! |---|---|
//! | 45 % | pays |
//! | 10 % | pays twice, with two payments |
//! | 8 % | pays a wrong amount, then the right one |
//! | 12 % | pays when the deadline has passed |
//! | 12 % | cancels; a third of them pays at the same moment |
//! | 13 % | forgets |
//!
//! A payment is reported until there is an answer: the backend's own books depend on it.

use super::buyer::{Said, ask_once};
use super::clock::patience;
use super::http::{ClientAnswer, Outcome};
use super::{Crowd, Open};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How often an order is asked for until it is confirmed.
const ASKS_MAX: u32 = 60;
const ASK_EVERY_MS: u64 = 500;
/// How often a payment is reported after the crowd was stopped, until there is an answer. Until then a slow machine takes as long as
/// it takes.
const REPORTS_MAX: u32 = 240;
const REPORT_EVERY_MS: u64 = 500;
/// Price of one unit in the crowd's sales.
pub const PRICE: i64 = 100;

/// An order that may be paid.
pub struct Payer {
    crowd: Arc<Crowd>,
    who: Open,
    rid: String,
    random: StdRng,
    pay_within_ms: u64,
}

impl Payer {
    /// What becomes of an accepted request; `None` where its sale has no payment step.
    pub(super) fn of(crowd: &Arc<Crowd>, rid: &str, who: &Open) -> Option<Self> {
        crowd.load.backend.as_ref()?;
        let pay_within_s = crowd.load.sales.get(who.sale).expect("a sale").pay_within_s?;
        let id: u64 = rid.parse().expect("a request id");
        let random = StdRng::seed_from_u64(crowd.load.seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let pay_within_ms = u64::from(pay_within_s) * 1_000;
        Some(Self { crowd: crowd.clone(), who: who.clone(), rid: rid.to_owned(), random, pay_within_ms })
    }

    /// Waits for the order and goes on with it.
    pub async fn fulfil(mut self) {
        for _ in 0..ASKS_MAX {
            let answer = ask_once(&self.crowd, &self.rid, &self.who).await;
            if answer == Outcome::Confirmed {
                return self.decide().await;
            }
            if answer == Outcome::Failed {
                return;
            }
            patience(ASK_EVERY_MS).await;
        }
    }

    async fn decide(&mut self) {
        let amount = PRICE * i64::from(self.who.quantity);
        match self.random.random_range(0..100) {
            0..45 => self.pay("a", amount).await,
            45..55 => {
                let (first, second) = (self.pay("a", amount), self.pay("b", amount));
                tokio::join!(first, second);
            }
            55..63 => {
                self.pay("wrong", amount - 1).await;
                self.pay("a", amount).await;
            }
            63..75 => {
                let late_ms = self.random.random_range(0..self.pay_within_ms);
                patience(self.pay_within_ms + late_ms).await;
                self.pay("late", amount).await;
            }
            75..83 => self.cancel().await,
            83..87 => {
                tokio::join!(self.cancel(), self.pay("a", amount));
            }
            _ => {}
        }
    }

    /// Reports a payment until there is an answer.
    async fn pay(&self, name: &str, amount: i64) {
        let payment = format!("{}-{name}", self.rid);
        let mut left = REPORTS_MAX;
        while left > 0 {
            let begun = self.crowd.begin();
            let answer = self.crowd.door.pay(&self.rid, &payment, amount).await;
            self.write(begun, "pay", Some(&payment), &answer);
            self.crowd.counters.payments.fetch_add(1, Relaxed);
            if !(answer.outcome == Outcome::Unknown || answer.outcome.is_later()) {
                return;
            }
            left -= u32::from(self.crowd.stopping());
            patience(REPORT_EVERY_MS).await;
        }
    }

    /// Cancels; who gets no answer may give up.
    async fn cancel(&self) {
        for _ in 0..3 {
            let begun = self.crowd.begin();
            let answer = self.crowd.door.cancel(&self.who.user, &self.rid).await;
            self.write(begun, "cancel", None, &answer);
            if !(answer.outcome == Outcome::Unknown || answer.outcome.is_later()) || self.crowd.stopping() {
                return;
            }
            patience(REPORT_EVERY_MS).await;
        }
    }

    fn write(&self, begun: super::buyer::Begun, kind: &'static str, payment: Option<&str>, answer: &ClientAnswer) {
        let said = Said { kind, rid: Some(&self.rid), token: false, payment };
        self.crowd.write(begun, &self.who, said, answer);
    }
}
