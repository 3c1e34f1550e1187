//! The hand against a plain map: whatever the order of events, an entry is in exactly one place.

use super::*;
use crate::p3_relay::entry::tests::readable;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
enum Op {
    Take(u16, u8),
    Put(Ticket, u8, u64),
    LetGo(Ticket),
    Lost(u16, u8),
    Wake(u64),
    WakeAll,
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u16..2, 0u8..6).prop_map(|(shard, id)| Op::Take(shard, id)),
        6 => (0u64..20, 0u8..5, 0u64..4).prop_map(|(ticket, place, at)| Op::Put(ticket, place, at)),
        1 => (0u64..20).prop_map(Op::LetGo),
        1 => (0u16..2, 0u8..6).prop_map(|(shard, id)| Op::Lost(shard, id)),
        1 => (0u64..4).prop_map(Op::Wake),
        1 => Just(Op::WakeAll),
    ]
}

/// Every held entry by ticket: its shard, id and place. Nothing else is known to be true.
type Model = BTreeMap<Ticket, (u16, String, Place)>;

fn wake(model: &mut Model, due: impl Fn(Instant) -> bool) {
    for (_, _, place) in model.values_mut() {
        if matches!(place, Place::Waiting(until) if due(*until)) {
            *place = Place::Ready;
        }
    }
}

fn apply(hand: &mut Hand, model: &mut Model, start: Instant, op: Op) {
    let at = |s: u64| start + Duration::from_secs(s);
    match op {
        Op::Take(shard, id) => {
            let id = format!("{id}-0");
            let held = model.values().any(|(s, i, _)| (*s, i) == (shard, &id));
            let ticket = hand.take(readable(shard, &id));
            assert_eq!(ticket.is_none(), held, "an entry is held once");
            model.extend(ticket.map(|ticket| (ticket, (shard, id, Place::Ready))));
        }
        Op::Put(ticket, place, s) => {
            let places =
                [Place::Ready, Place::Sent, Place::Confirmed, Place::Failed("f".into()), Place::Waiting(at(s))];
            let place = places[usize::from(place)].clone();
            assert_eq!(hand.put(ticket, place.clone()), model.contains_key(&ticket));
            model.entry(ticket).and_modify(|(_, _, now)| *now = place);
        }
        Op::LetGo(ticket) => {
            let gone = model.remove(&ticket);
            assert_eq!(hand.let_go(ticket).map(|item| item.id), gone.map(|(_, id, _)| id));
        }
        Op::Lost(shard, id) => {
            let id = format!("{id}-0");
            hand.lost(shard, &id);
            model.retain(|_, (s, i, place)| {
                (*s, &*i) != (shard, &id) || matches!(place, Place::Sent | Place::Confirmed)
            });
        }
        Op::Wake(s) => {
            hand.wake(at(s));
            wake(model, |until| until <= at(s));
        }
        Op::WakeAll => {
            hand.wake_all();
            wake(model, |_| true);
        }
    }
}

proptest! {
    #[test]
    fn every_entry_is_in_exactly_one_place_whatever_the_order_of_events(
        ops in prop::collection::vec(any_op(), 0..120)
    ) {
        let (mut hand, mut model, start) = (Hand::default(), Model::new(), Instant::now());
        for op in ops {
            apply(&mut hand, &mut model, start, op);
            let mut listed: Vec<(Ticket, Place)> = Vec::new();
            listed.extend(hand.ready.iter().map(|ticket| (*ticket, Place::Ready)));
            listed.extend(hand.sent.iter().map(|ticket| (*ticket, Place::Sent)));
            listed.extend(hand.confirmed.iter().map(|(_, ticket)| (*ticket, Place::Confirmed)));
            listed.extend(hand.failed.iter().map(|(_, ticket)| (*ticket, Place::Failed("f".into()))));
            listed.extend(hand.waiting.iter().map(|(until, ticket)| (*ticket, Place::Waiting(*until))));
            listed.sort_by_key(|(ticket, _)| *ticket);
            let expected: Vec<_> = model.iter().map(|(ticket, (_, _, place))| (*ticket, place.clone())).collect();
            prop_assert_eq!(listed, expected);
            prop_assert_eq!(hand.len(), model.len());
            for shard in 0..2 {
                let mut ids = hand.ids_of(shard);
                ids.sort();
                let mut of: Vec<_> = model.values().filter(|held| held.0 == shard).map(|held| held.1.clone()).collect();
                of.sort();
                prop_assert_eq!(ids, of);
                let at = |place: Place| {
                    let of_shard = model.iter().filter(|(_, held)| held.0 == shard && held.2 == place);
                    of_shard.map(|(ticket, _)| *ticket).collect::<Vec<_>>()
                };
                prop_assert_eq!(hand.confirmed_of(shard, usize::MAX).0, at(Place::Confirmed));
                prop_assert_eq!(hand.failed_of(shard, usize::MAX).0, at(Place::Failed("f".into())));
            }
        }
    }
}

#[test]
fn what_was_taken_over_is_let_go_of_unless_it_is_on_its_way() {
    let mut hand = Hand::default();
    let tickets: Vec<Ticket> = (0..5).filter_map(|id| hand.take(readable(0, &format!("{id}-0")))).collect();
    let places =
        [Place::Ready, Place::Failed("f".into()), Place::Waiting(Instant::now()), Place::Sent, Place::Confirmed];
    for (ticket, place) in tickets.iter().zip(places) {
        hand.put(*ticket, place);
    }
    (0..5).for_each(|id| hand.lost(0, &format!("{id}-0")));
    assert_eq!((hand.len(), hand.on_trial_count(), hand.confirmed_count()), (2, 1, 1));
    let again = hand.take(readable(0, "0-0"));
    assert_eq!(again, Some(6), "taken again it has another ticket");
    assert!(!hand.put(tickets[0], Place::Sent), "and the old one means nothing");
}
