//! The window against a plain map: in any order of events an entry is in exactly one list.

use super::*;
use crate::p3_relay::entry::tests::readable;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
enum Op {
    Take(u16, u8),
    Put(EntryKey, u8, u64),
    Release(EntryKey),
    Lost(u16, u8),
    Wake(u64),
    WakeAll,
    SetAside(usize, bool),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u16..2, 0u8..6).prop_map(|(shard, id)| Op::Take(shard, id)),
        6 => (0u64..20, 0u8..5, 0u64..4).prop_map(|(key, state, at)| Op::Put(key, state, at)),
        1 => (0u64..20).prop_map(Op::Release),
        1 => (0u16..2, 0u8..6).prop_map(|(shard, id)| Op::Lost(shard, id)),
        1 => (0u64..4).prop_map(Op::Wake),
        1 => Just(Op::WakeAll),
        1 => (0usize..4, any::<bool>()).prop_map(|(count, ready_too)| Op::SetAside(count, ready_too)),
    ]
}

/// Every entry by key: its shard, id and state. Nothing else is known to be true.
type WindowModel = BTreeMap<EntryKey, (u16, String, EntryState)>;

fn wake(model: &mut WindowModel, due: impl Fn(Instant) -> bool) {
    for (_, _, state) in model.values_mut() {
        if matches!(state, EntryState::Waiting(until) if due(*until)) {
            *state = EntryState::Ready;
        }
    }
}

fn apply(window: &mut InFlightWindow, model: &mut WindowModel, start: Instant, op: Op) {
    let at = |s: u64| start + Duration::from_secs(s);
    match op {
        Op::Take(shard, id) => {
            let id = format!("{id}-0");
            let held = model.values().any(|(s, i, _)| (*s, i) == (shard, &id));
            let key = window.insert(readable(shard, &id));
            assert_eq!(key.is_none(), held, "an entry is held once");
            model.extend(key.map(|key| (key, (shard, id, EntryState::Ready))));
        }
        Op::Put(key, state, s) => {
            let states = [
                EntryState::Ready,
                EntryState::Published,
                EntryState::Confirmed,
                EntryState::Failed("f".into()),
                EntryState::Waiting(at(s)),
            ];
            let state = states[usize::from(state)].clone();
            assert_eq!(window.set_state(key, state.clone()), model.contains_key(&key));
            model.entry(key).and_modify(|(_, _, now)| *now = state);
        }
        Op::Release(key) => {
            let gone = model.remove(&key);
            assert_eq!(window.remove(key).map(|item| item.id), gone.map(|(_, id, _)| id));
        }
        Op::Lost(shard, id) => {
            let id = format!("{id}-0");
            window.lost(shard, &id);
            model.retain(|_, (s, i, state)| {
                (*s, &*i) != (shard, &id) || matches!(state, EntryState::Published | EntryState::Confirmed)
            });
        }
        Op::Wake(s) => {
            window.retry_due(at(s));
            wake(model, |until| until <= at(s));
        }
        Op::WakeAll => {
            window.retry_all();
            wake(model, |_| true);
        }
        Op::SetAside(count, ready_too) => {
            let of = |ready: bool| {
                let rank = |(key, (_, _, state)): (&EntryKey, &(u16, String, EntryState))| {
                    if let EntryState::Waiting(until) = state {
                        (!ready).then_some((Some(*until), *key))
                    } else {
                        (ready && *state == EntryState::Ready).then_some((None, *key))
                    }
                };
                let mut ranked: Vec<_> = model.iter().filter_map(rank).collect();
                ranked.sort();
                ranked.into_iter().rev().map(|(_, key)| key).collect::<Vec<_>>()
            };
            let ready = if ready_too { of(true) } else { Vec::new() };
            let keys: Vec<EntryKey> = ready.into_iter().chain(of(false)).take(count).collect();
            let shards: BTreeSet<u16> = keys.iter().filter_map(|key| model.remove(key)).map(|held| held.0).collect();
            assert_eq!(window.set_aside(count, ready_too), shards);
        }
    }
}

proptest! {
    #[test]
    fn every_entry_is_in_exactly_one_list_in_any_order_of_events(
        ops in prop::collection::vec(any_op(), 0..120)
    ) {
        let (mut window, mut model, start) = (InFlightWindow::default(), WindowModel::new(), Instant::now());
        for op in ops {
            apply(&mut window, &mut model, start, op);
            let mut listed: Vec<(EntryKey, EntryState)> = Vec::new();
            listed.extend(window.ready.iter().map(|key| (*key, EntryState::Ready)));
            listed.extend(window.sent.iter().map(|key| (*key, EntryState::Published)));
            listed.extend(window.confirmed.iter().map(|(_, key)| (*key, EntryState::Confirmed)));
            listed.extend(window.failed.iter().map(|(_, key)| (*key, EntryState::Failed("f".into()))));
            listed.extend(window.waiting.iter().map(|(until, key)| (*key, EntryState::Waiting(*until))));
            listed.sort_by_key(|(key, _)| *key);
            let expected: Vec<_> = model.iter().map(|(key, (_, _, state))| (*key, state.clone())).collect();
            prop_assert_eq!(listed, expected);
            prop_assert_eq!(window.len(), model.len());
            for shard in 0..2 {
                let mut ids = window.ids_of(shard);
                ids.sort();
                let mut of: Vec<_> = model.values().filter(|held| held.0 == shard).map(|held| held.1.clone()).collect();
                of.sort();
                prop_assert_eq!(ids, of);
                let at = |state: EntryState| {
                    let of_shard = model.iter().filter(|(_, held)| held.0 == shard && held.2 == state);
                    of_shard.map(|(key, _)| *key).collect::<Vec<_>>()
                };
                prop_assert_eq!(window.confirmed_of(shard, usize::MAX).0, at(EntryState::Confirmed));
                prop_assert_eq!(window.failed_of(shard, usize::MAX).0, at(EntryState::Failed("f".into())));
            }
        }
    }
}

#[test]
fn an_entry_of_another_relay_is_removed_unless_its_message_is_on_the_way() {
    let mut window = InFlightWindow::default();
    let keys: Vec<EntryKey> = (0..5).filter_map(|id| window.insert(readable(0, &format!("{id}-0")))).collect();
    let states = [
        EntryState::Ready,
        EntryState::Failed("f".into()),
        EntryState::Waiting(Instant::now()),
        EntryState::Published,
        EntryState::Confirmed,
    ];
    for (key, state) in keys.iter().zip(states) {
        window.set_state(*key, state);
    }
    (0..5).for_each(|id| window.lost(0, &format!("{id}-0")));
    assert_eq!((window.len(), window.attempts_under_way(), window.confirmed_count()), (2, 1, 1));
    let again = window.insert(readable(0, "0-0"));
    assert_eq!(again, Some(6), "read again it has another key");
    assert!(!window.set_state(keys[0], EntryState::Published), "and the old one means nothing");
}
