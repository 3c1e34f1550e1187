//! A sale that is not open: the problem to answer with.
//!
//! Input: the sale as the entry sees it, and the time. Output: a problem, counted by its state.

use crate::domain::ids::SaleId;
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::catalog::SaleView;
use crate::telemetry::count;

/// The sale is paused.
pub(super) fn paused(english: &str, chinese: &str) -> Problem {
    count(State::P1(P1Entry::Paused), 1);
    Kind::Paused.because_both(english, chinese)
}

/// The sale starts in `wait_ms`.
pub(super) fn not_started(wait_ms: u64) -> Problem {
    count(State::P1(P1Entry::NotStarted), 1);
    starts_in(wait_ms)
}

/// The sale is sold with purchase tokens only.
pub(super) fn token_missing(sale: &SaleId) -> Problem {
    let how = format!("get one with POST /v1/sales/{sale}/tokens and send it as Idempotency-Key");
    Kind::TokenRequired.because(how)
}

/// The units of the sale go to its line.
pub(super) fn only_by_line(sale: &SaleId) -> Problem {
    Kind::OnlyByLine.because_both(
        format!("enter the line with POST /v1/sales/{sale}/entries, or wait for your offer"),
        format!("请通过 POST /v1/sales/{sale}/entries 登记，或等待分配"),
    )
}

/// The sale is over.
pub(super) fn ended() -> Problem {
    count(State::P1(P1Entry::Ended), 1);
    Kind::Ended.into()
}

fn starts_in(wait_ms: u64) -> Problem {
    let seconds = wait_ms.div_ceil(1000).max(1);
    let chinese = format!("{seconds} 秒后开始");
    Kind::NotStarted.because_both(format!("starts in {seconds} s"), chinese).retry_after_s(seconds)
}

/// Why a new request may not try right now, if so.
pub(super) fn refusal(view: &SaleView, now: i64) -> Option<Problem> {
    let state = view.sale.entry(now);
    let problem = match state {
        P1Entry::Ready => return None,
        P1Entry::NotStarted => starts_in((view.sale.starts_at_ms - now).max(0).unsigned_abs()),
        P1Entry::Ended => Kind::Ended.into(),
        P1Entry::Paused => Kind::Paused.because_both("stopped by an operator", "已由运营暂停"),
        P1Entry::Loading => Kind::Loading.because_both("the sale is not warmed up yet", "活动尚未就绪"),
        P1Entry::SoldOut => Kind::EntrySoldOut.into(),
        P1Entry::NotFound => Kind::SaleNotFound.into(),
        P1Entry::Overloaded => Kind::Overloaded.into(),
        P1Entry::NotEntitled => Kind::NotEntitled.into(),
        P1Entry::Blocked => Kind::Blocked.into(),
        P1Entry::Challenge => Kind::Challenge.into(),
        P1Entry::RiskRefused => Kind::RiskRefused.into(),
    };
    count(State::P1(state), 1);
    Some(problem)
}
