//! What can happen next to deliveries. Every step is one transaction, one HTTP call or its answer.

use super::setup::{Omitted, SenderFault, WebhooksSetup};
use super::state::{Answer, DELIVERIES, Deliveries, Row, SENDERS, Sender, TRIES, Try};
use seckill::domain::webhook::DeliveryState;

/// A step; the numbers are a sender, then a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SenderStep {
    Elected(usize),
    StopsLeading(usize),
    Loads(usize, usize),
    Begins(usize, usize),
    Answers(usize, usize, Answer),
    Records(usize),
    WritesGone(usize),
    /// The leader reads that its receiver is open again.
    ReadsOpen(usize),
    FindsOld(usize),
    DeletesOld(usize),
    Replays(usize),
    /// Costs one of the faults that are left.
    Fault(SenderFault, usize),
}

/// Whether nothing happens any more unless a person or a fault does something.
pub fn is_quiet(setup: &WebhooksSetup, deliveries: &Deliveries) -> bool {
    let mut out = Vec::new();
    by_itself(setup, deliveries, &mut out);
    out.is_empty()
}

pub fn by_itself(setup: &WebhooksSetup, deliveries: &Deliveries, out: &mut Vec<SenderStep>) {
    for at in 0..SENDERS {
        let sender = &deliveries.senders[at];
        if deliveries.lock.is_none() && !sender.leads {
            out.push(SenderStep::Elected(at));
        }
        if !sender.leads {
            continue;
        }
        if deliveries.lock != Some(at) {
            out.push(SenderStep::StopsLeading(at));
        }
        if sender.gone && !setup.lacks(Omitted::GoneIsWritten) {
            out.push(SenderStep::WritesGone(at));
        } else if sender.closed && !deliveries.closed {
            out.push(SenderStep::ReadsOpen(at));
        }
        if sender.tries.iter().any(|one| matches!(one, Try::Ended(..))) {
            out.push(SenderStep::Records(at));
        }
        for delivery in 0..DELIVERIES {
            tries(setup, deliveries, (at, delivery), out);
        }
        if sender.old > 0 {
            out.push(SenderStep::DeletesOld(at));
        }
    }
}

fn tries(setup: &WebhooksSetup, deliveries: &Deliveries, (at, delivery): (usize, usize), out: &mut Vec<SenderStep>) {
    let sender = &deliveries.senders[at];
    let waits = |row: &Row| row.state == DeliveryState::Waiting;
    // Mutation: a row that was chosen once is its chooser's.
    let chosen_before = setup.lacks(Omitted::ChosenAgain) && deliveries.rows[delivery].is_some_and(|row| row.sent);
    match sender.tries[delivery] {
        Try::None if !sender.closed && deliveries.rows[delivery].is_some_and(|row| waits(&row)) && !chosen_before => {
            out.push(SenderStep::Loads(at, delivery));
        }
        Try::Loaded(_) if !sender.closed || setup.lacks(Omitted::StopsWhenGone) => {
            out.push(SenderStep::Begins(at, delivery));
        }
        Try::UnderWay(_) => {
            let answers = [Answer::Taken, Answer::Refused, Answer::Lost, Answer::Gone];
            out.extend(answers.map(|answer| SenderStep::Answers(at, delivery, answer)));
        }
        Try::None | Try::Loaded(_) | Try::Ended(..) => {}
    }
}

/// A person's replay, and rows that have become old.
pub fn by_chance(deliveries: &Deliveries, out: &mut Vec<SenderStep>) {
    for delivery in 0..DELIVERIES {
        if deliveries.replays_left > 0 && deliveries.rows[delivery].is_some() {
            out.push(SenderStep::Replays(delivery));
        }
    }
    for at in 0..SENDERS {
        if deliveries.senders[at].leads && deliveries.senders[at].old == 0 && delivered(deliveries) > 0 {
            out.push(SenderStep::FindsOld(at));
        }
    }
}

fn delivered(deliveries: &Deliveries) -> u8 {
    let is_delivered = |at: &usize| deliveries.rows[*at].is_some_and(|row| row.state == DeliveryState::Delivered);
    (0..DELIVERIES).filter(is_delivered).map(|at| 1 << at).sum()
}

pub fn faults(setup: &WebhooksSetup, deliveries: &Deliveries, out: &mut Vec<SenderStep>) {
    let mut fault = |happens: bool, kind, at| {
        if happens && deliveries.faults_left > 0 && setup.kinds.contains(&kind) {
            out.push(SenderStep::Fault(kind, at));
        }
    };
    for (at, sender) in deliveries.senders.iter().enumerate() {
        fault(sender.leads, SenderFault::LeaderDies, at);
        let ended = sender.tries.iter().any(|one| matches!(one, Try::Ended(..)));
        fault(ended, SenderFault::RecordUnanswered, at);
        fault(deliveries.lock == Some(at) && !deliveries.senders[1 - at].leads, SenderFault::LeaseLost, at);
    }
}

pub fn apply(setup: &WebhooksSetup, deliveries: &mut Deliveries, step: SenderStep) {
    match step {
        SenderStep::Elected(at) => elect(deliveries, at),
        SenderStep::StopsLeading(at) => stop_leading(deliveries, at),
        SenderStep::Loads(at, delivery) => {
            let attempts = deliveries.rows[delivery].map_or(0, |row| row.attempts);
            deliveries.senders[at].tries[delivery] = Try::Loaded(attempts);
        }
        SenderStep::Begins(at, delivery) => begin(setup, deliveries, at, delivery),
        SenderStep::Answers(at, delivery, answer) => answered(setup, deliveries, (at, delivery), answer),
        SenderStep::Records(at) => {
            record(setup, deliveries, at);
            for one in &mut deliveries.senders[at].tries {
                if matches!(one, Try::Ended(..)) {
                    *one = Try::None;
                }
            }
        }
        SenderStep::WritesGone(at) => {
            deliveries.senders[at].gone = false;
            deliveries.closed = true;
        }
        SenderStep::ReadsOpen(at) => deliveries.senders[at].closed = false,
        SenderStep::FindsOld(at) => deliveries.senders[at].old = delivered(deliveries),
        SenderStep::DeletesOld(at) => delete_old(setup, deliveries, at),
        SenderStep::Replays(delivery) => replay(setup, deliveries, delivery),
        SenderStep::Fault(kind, at) => {
            deliveries.faults_left -= 1;
            match kind {
                SenderFault::LeaderDies => {
                    stop_leading(deliveries, at);
                    deliveries.senders[at] = Sender::default();
                    deliveries.lock = deliveries.lock.filter(|holder| *holder != at);
                }
                SenderFault::LeaseLost => elect(deliveries, 1 - at),
                SenderFault::RecordUnanswered => record(setup, deliveries, at),
            }
        }
    }
}

/// A new leader writes the subscriptions: all receivers are open.
fn elect(deliveries: &mut Deliveries, at: usize) {
    deliveries.lock = Some(at);
    (deliveries.senders[at].leads, deliveries.senders[at].closed) = (true, false);
    open(deliveries);
}

fn open(deliveries: &mut Deliveries) {
    deliveries.closed = false;
    deliveries.senders.iter_mut().for_each(|sender| sender.forbidden = false);
}

/// What it has in memory is forgotten.
fn stop_leading(deliveries: &mut Deliveries, at: usize) {
    let Sender { closed, forbidden, .. } = deliveries.senders[at];
    deliveries.senders[at] = Sender { closed, forbidden, ..Sender::default() };
}

fn begin(setup: &WebhooksSetup, deliveries: &mut Deliveries, at: usize, delivery: usize) {
    let sender = &mut deliveries.senders[at];
    let Try::Loaded(attempts) = sender.tries[delivery] else { return };
    deliveries.sent_after_gone |= sender.forbidden;
    sender.tries[delivery] = Try::UnderWay(attempts);
    if let Some(row) = &mut deliveries.rows[delivery] {
        row.sent = true;
        if setup.lacks(Omitted::AnswerFirst) {
            row.state = DeliveryState::Delivered;
        }
    }
}

fn answered(setup: &WebhooksSetup, deliveries: &mut Deliveries, (at, delivery): (usize, usize), answer: Answer) {
    let sender = &mut deliveries.senders[at];
    let Try::UnderWay(attempts) = sender.tries[delivery] else { return };
    sender.tries[delivery] = Try::Ended(attempts, answer);
    if answer == Answer::Gone {
        (sender.closed, sender.gone, sender.forbidden) = (true, true, true);
        if !setup.lacks(Omitted::StopsWhenGone) {
            sender.tries.iter_mut().filter(|one| matches!(one, Try::Loaded(_))).for_each(|one| *one = Try::None);
        }
        deliveries.rows.iter_mut().flatten().for_each(|row| row.sent = true);
    }
    if let Some(row) = &mut deliveries.rows[delivery] {
        row.taken |= matches!(answer, Answer::Taken | Answer::Lost);
        row.failed = TRIES.min(row.failed + u8::from(answer != Answer::Taken));
    }
}

/// `record_tries`: one UPDATE each, with its condition.
fn record(setup: &WebhooksSetup, deliveries: &mut Deliveries, at: usize) {
    for delivery in 0..DELIVERIES {
        let Try::Ended(attempts, answer) = deliveries.senders[at].tries[delivery] else { continue };
        let Some(row) = &mut deliveries.rows[delivery] else { continue };
        if answer == Answer::Taken {
            row.recorded = true;
            let late = row.state == DeliveryState::Dead && setup.lacks(Omitted::LateSuccess);
            if !late {
                row.state = DeliveryState::Delivered;
            }
            continue;
        }
        let waits = row.state == DeliveryState::Waiting || setup.lacks(Omitted::FailureOfWaitingRow);
        let counts = row.attempts == attempts
            || setup.lacks(Omitted::TryCountsOnce)
            || setup.lacks(Omitted::FailureOfWaitingRow);
        if !waits || !counts {
            continue;
        }
        deliveries.undone |= row.state == DeliveryState::Delivered;
        let is_last = attempts.max(row.attempts) + 1 >= TRIES;
        row.attempts = TRIES.min(row.attempts + 1);
        row.state = if is_last { DeliveryState::Dead } else { DeliveryState::Waiting };
    }
}

fn delete_old(setup: &WebhooksSetup, deliveries: &mut Deliveries, at: usize) {
    let old = std::mem::take(&mut deliveries.senders[at].old);
    for delivery in (0..DELIVERIES).filter(|delivery| old & (1 << delivery) > 0) {
        let Some(row) = deliveries.rows[delivery] else { continue };
        let same = row.state == DeliveryState::Delivered;
        if same || setup.lacks(Omitted::DeletesDeliveredOnly) {
            deliveries.lost |= !same;
            deliveries.rows[delivery] = None;
            for sender in &mut deliveries.senders {
                // Whatever it comes to is recorded nowhere.
                sender.old &= !(1 << delivery);
            }
        }
    }
}

/// One transaction: it waits as if it were new, and its receiver is open again.
fn replay(setup: &WebhooksSetup, deliveries: &mut Deliveries, delivery: usize) {
    deliveries.replays_left -= 1;
    let of =
        |which: fn(&Try) -> bool| deliveries.senders.iter().filter(|sender| which(&sender.tries[delivery])).count();
    // A 410 that is about to be written down closes the receiver again, and a call that is not recorded yet counts.
    let is_called = of(|one| matches!(one, Try::UnderWay(_) | Try::Ended(..))) > 0;
    let sent = is_called || deliveries.senders.iter().any(|sender| sender.gone);
    let failed = of(|one| matches!(one, Try::Ended(_, answer) if *answer != Answer::Taken));
    if let Some(row) = &mut deliveries.rows[delivery] {
        row.state = DeliveryState::Waiting;
        if !setup.lacks(Omitted::ReplayResetsTries) {
            row.attempts = 0;
        }
        (row.failed, row.recorded, row.sent) = (u8::try_from(failed).unwrap_or(TRIES), false, sent);
    }
    if !setup.lacks(Omitted::ReplayOpens) {
        open(deliveries);
    }
}
