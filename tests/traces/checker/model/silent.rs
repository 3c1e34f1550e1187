//! Steps of the model without a line: what no process has lived to say, or what no process sees.
//!
//! No process dies here that has more to say: no run would explain the rest.

use super::super::journey::Explained;
use super::player::{Place, Player};
use crate::actions::Action;
use crate::setup::Kind;
use crate::state::{CONSUMERS, Hand, PAIR, Stage};

/// Where the model may go by itself from here.
pub fn steps(player: &Player<'_>, explained: &Explained, place: &Place) -> Vec<Place> {
    let (at, request) = (place.at, place.request());
    let mut actions = Vec::new();
    if request.late {
        actions.push(Action::LateRuns(at));
    }
    if request.waits_for_a_retry() {
        actions.push(Action::Expire(at));
    }
    if place.decides > 0 {
        actions.extend([Action::Audit(at), Action::Compensate(at), Action::Fault(Kind::GiveUp, at, 0)]);
    }
    let mut found = Vec::new();
    for k in 0..PAIR {
        actions.extend(of_relay(player, explained, place, k));
        if request.hand[k] == Hand::Failed {
            found.extend(counted(player, place, k));
        }
    }
    for k in 0..CONSUMERS {
        actions.extend(of_consumer(player, explained, place, k));
    }
    found.extend(actions.into_iter().filter_map(|action| player.take(place, action)));
    found
}

fn of_relay(player: &Player<'_>, explained: &Explained, place: &Place, k: usize) -> Vec<Action> {
    let Some(process) = place.relays[k] else { return Vec::new() };
    match (player.next_of_relay(explained, process), place.request().hand[k]) {
        // Deleted, counted or parked, and the reply was lost.
        (None | Some("read"), Hand::Confirmed | Hand::Failed | Hand::Spent) => {
            vec![Action::Relay(place.at, k), Action::Fault(Kind::RelayCrash, 0, k)]
        }
        (None | Some("read"), _) => vec![Action::Fault(Kind::RelayCrash, 0, k)],
        (Some(_), _) => Vec::new(),
    }
}

fn of_consumer(player: &Player<'_>, explained: &Explained, place: &Place, k: usize) -> Vec<Action> {
    let Some(held) = place.consumers[k] else { return Vec::new() };
    let delivery = place.request().consumer[k];
    let will_say = |points: &[&str]| player.will_say(explained, held, points);
    let mut actions = Vec::new();
    match delivery.stage {
        Stage::Received if held.is_asked && !will_say(&["handled"]) => actions.push(Action::Consumer(place.at, k)),
        Stage::Retry | Stage::Park => actions.push(Action::Consumer(place.at, k)),
        Stage::None | Stage::Received | Stage::Decided | Stage::Copied => {}
    }
    let kind = if will_say(&["handled", "copied", "ack"]) { Kind::ConsumerCutOff } else { Kind::ConsumerCrash };
    if kind == Kind::ConsumerCrash || player.is_delivered_later(explained, delivery.attempts) {
        actions.push(Action::Fault(kind, place.at, k));
    }
    actions
}

/// A failed try is counted, the reply is lost, and the relay counts it again: in the model the try between is lost at once.
fn counted(player: &Player<'_>, place: &Place, k: usize) -> Option<Place> {
    let again = [Action::Relay(place.at, k), Action::Fault(Kind::PublishLost, place.at, k), Action::Relay(place.at, k)];
    again.into_iter().try_fold(place.clone(), |place, action| player.take(&place, action))
}
