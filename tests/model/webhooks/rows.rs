//! Which searches about deliveries are made, and what each is expected to find.

use super::setup::{Omitted, SenderFault, WebhooksSetup};
use crate::search::{Complete, Lacking};

const ONE_LEADER: &[SenderFault] = &[SenderFault::LeaderDies, SenderFault::RecordUnanswered];
const EVERY: &[SenderFault] = &[SenderFault::LeaderDies, SenderFault::LeaseLost, SenderFault::RecordUnanswered];

const fn of(deliveries: usize, replays: u8, faults: u8, kinds: &'static [SenderFault]) -> WebhooksSetup {
    WebhooksSetup { deliveries, replays, faults, kinds, absent: None }
}

/// What every test run searches.
pub fn configurations() -> Vec<Complete<WebhooksSetup>> {
    let row = |name, setup, states_min, breaks| Complete { name, setup, states_min, breaks };
    vec![
        row("one leader at a time", of(2, 1, 1, ONE_LEADER), 1_000, &[]),
        row("a leader that slept goes on beside another one", of(1, 1, 2, EVERY), 1_000, &[]),
    ]
}

pub fn without() -> Vec<Lacking<WebhooksSetup>> {
    let row = |name, absent, setup: WebhooksSetup, breaks| {
        let setup = WebhooksSetup { absent: Some(absent), ..setup };
        Lacking { name, setup, breaks }
    };
    let one = of(1, 0, 1, EVERY);
    let replayed = of(1, 1, 0, ONE_LEADER);
    let two = of(2, 0, 0, ONE_LEADER);
    vec![
        row("DELIVERED is recorded before the answer", Omitted::AnswerFirst, one, &["W1"]),
        row("a failed try is recorded whatever the row says by then", Omitted::FailureOfWaitingRow, one, &["W7"]),
        row("a failed try is counted again", Omitted::TryCountsOnce, one, &["W2"]),
        row("a success is not recorded of a DEAD delivery", Omitted::LateSuccess, one, &["W7"]),
        row("what is loaded is sent after a 410", Omitted::StopsWhenGone, two, &["W5"]),
        row("a 410 is not written down", Omitted::GoneIsWritten, one, &["W5"]),
        row("old rows are deleted by id only", Omitted::DeletesDeliveredOnly, replayed, &["W4"]),
        row("a replay leaves the tries counted", Omitted::ReplayResetsTries, replayed, &["W2"]),
        row("a replay leaves the receiver closed", Omitted::ReplayOpens, replayed, &["W6"]),
        row("a row is left to the process that has chosen it", Omitted::ChosenAgain, one, &["W3"]),
    ]
}
