//! The end of a crowd: every request without a final answer is asked for until it has one.
//!
//! In rounds over all of them, the unknown first. Done with one: it is final, or not found twice, [`APART_MS`] apart.

use super::buyer::ask_once;
use super::clock::{now_ms, patience};
use super::http::Outcome;
use super::{Crowd, Open};
use futures::StreamExt;
use std::sync::atomic::Ordering::Relaxed;

/// How long it is asked at most, when nothing else is said.
pub const SETTLE_MAX_MS: u64 = 60_000;
const APART_MS: u64 = 3_000;
const AT_ONCE: usize = 48;
const BETWEEN_ROUNDS_MS: u64 = 500;

/// A request that is asked for.
struct Question {
    rid: String,
    who: Open,
    not_found_ms: Option<u64>,
}

/// Asks until all is final, or time is up.
pub(super) async fn settle(crowd: &Crowd) {
    let deadline_ms = now_ms() + crowd.load.settle_max_ms;
    let open = std::mem::take(&mut *crowd.open.lock().unwrap());
    let mut questions: Vec<Question> =
        open.into_iter().map(|((_, rid), who)| Question { rid, who, not_found_ms: None }).collect();
    while !questions.is_empty() && now_ms() < deadline_ms {
        let asked = futures::stream::iter(questions)
            .map(async |question| if now_ms() >= deadline_ms { Some(question) } else { ask(crowd, question).await });
        let left: Vec<Option<Question>> = asked.buffered(AT_ONCE).collect().await;
        questions = left.into_iter().flatten().collect();
        if !questions.is_empty() {
            patience(BETWEEN_ROUNDS_MS).await;
        }
    }
    crowd.counters.unsettled.store(questions.len() as u64, Relaxed);
}

/// Asks once; gives the question back when it stays open.
async fn ask(crowd: &Crowd, mut question: Question) -> Option<Question> {
    let outcome = ask_once(crowd, &question.rid, &question.who).await;
    if outcome != Outcome::NotFound {
        question.not_found_ms = None;
        return (!outcome.is_final()).then_some(question);
    }
    let first_ms = *question.not_found_ms.get_or_insert_with(now_ms);
    (now_ms() < first_ms + APART_MS).then_some(question)
}
