//! The schedule: a seed decides it, and nothing stays away from it.

use super::kind::Kind;
use super::plan::{Counts, Place, once_more, plan};
use super::steps::STEPS;
use seckill::roles::Role;
use std::collections::{BTreeMap, BTreeSet};

const COUNTS: Counts = [(Role::Api, 2), (Role::Relay, 2), (Role::Consumer, 2), (Role::Reconcile, 1)];

#[test]
fn a_seed_decides_everything() {
    assert_eq!(plan(7, 60_000, COUNTS), plan(7, 60_000, COUNTS));
    assert_ne!(plan(7, 60_000, COUNTS), plan(8, 60_000, COUNTS));
}

#[test]
fn ten_minutes_have_a_thousand_faults_of_every_kind_on_every_place_and_none_outlasts_the_run() {
    let faults = plan(1, 600_000, COUNTS);
    assert!(faults.len() >= 1_000, "{}", faults.len());
    let planned = |kind: &Kind| faults.iter().filter(|fault| fault.kind == *kind).count();
    let rare: Vec<(Kind, usize)> =
        Kind::ALL.iter().map(|kind| (*kind, planned(kind))).filter(|(_, n)| *n < 12).collect();
    assert!(rare.is_empty(), "{rare:?}");
    let links: BTreeSet<Place> =
        faults.iter().map(|fault| fault.target).filter(|place| matches!(place, Place::Link(..))).collect();
    assert_eq!(links.len(), 2 * 3 + 2 * 2 + 2 * 3 + 3, "{links:?}");
    let steps: BTreeSet<usize> = faults
        .iter()
        .filter_map(|fault| if let Place::Step(step, _) = fault.target { Some(step) } else { None })
        .collect();
    assert_eq!(steps.len(), STEPS.len(), "{steps:?}");
    assert!(faults.iter().all(|fault| fault.at_ms + fault.length_ms <= 600_000));
    assert!(faults.windows(2).any(|two| two[0].at_ms == two[1].at_ms), "two at once");
}

#[test]
fn what_was_missed_is_tried_again_on_places_that_are_free() {
    let again = once_more(1, Kind::ALL, COUNTS);
    let places: BTreeSet<Place> = again.iter().map(|fault| fault.target).collect();
    assert_eq!(places.len(), again.len(), "{again:?}");
    assert!(again.len() > Kind::ALL.len() / 2, "{again:?}");
}

#[test]
fn a_process_is_under_one_fault_at_a_time() {
    let mut until: BTreeMap<Place, u64> = BTreeMap::new();
    for fault in plan(3, 600_000, COUNTS) {
        let places = match fault.target {
            Place::Inside(..) => vec![],
            Place::Step(step, index) => {
                vec![Place::Process(STEPS[step].role, index), Place::Server(STEPS[step].server)]
            }
            target @ (Place::Process(..) | Place::Role(_) | Place::Server(_) | Place::Link(..)) => vec![target],
        };
        for place in places {
            let before = until.insert(place, fault.at_ms + fault.length_ms).unwrap_or(0);
            assert!(before <= fault.at_ms, "{fault:?}");
        }
    }
}
