//! The judge of lost data: each trouble is made once, alone; a loss that shows nowhere is reported as such.

use super::super::loss::{SaleState, Trouble, judge};
use super::super::read::{Failed, Flow, Grant, Key, Units};
use super::sample_run::SampleRun;
use std::path::PathBuf;

/// A sale in which everything is as it should be: ten units, two orders, one failure that took a unit.
fn calm() -> SampleRun {
    let mut run = SampleRun::default();
    run.sale("s", 10, Some(3));
    for name in ["meta", "stock", "buyers", "ledger", "grants"] {
        run.input.keys.push(Key { sale: "s".into(), shard: 0, name: name.into() });
    }
    run.bought("s", "b1", 2);
    run.bought("s", "b2", 1);
    let failed = run.accepted("s", "b3", 1);
    run.fails(&failed, "GIVEN_UP");
    run
}

/// What the judge says of the three dumps.
fn said(before: &SampleRun, strike: &SampleRun, end: &SampleRun) -> SaleState {
    let dir: PathBuf = end.write();
    for (name, run) in [("before", before), ("strike", strike), ("end", end)] {
        std::fs::rename(run.write(), dir.join(name)).unwrap();
    }
    let mut judgement = judge(&dir);
    std::fs::remove_dir_all(dir).unwrap();
    assert!(judgement.unreadable.is_empty(), "{:?}", judgement.unreadable);
    judgement.sales.remove("s").unwrap()
}

/// The troubles of a run in which nothing happens but `harm`, which is there at the strike and stays.
fn troubles(harm: impl FnOnce(&mut SampleRun)) -> Vec<Trouble> {
    let before = calm();
    let mut end = before.clone();
    harm(&mut end);
    let mut kinds: Vec<Trouble> = said(&before, &end, &end).troubles.iter().map(|(kind, _)| *kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn nothing_is_wrong_where_nothing_happened() {
    assert!(troubles(|_| {}).is_empty());
    // On its way to a person, or persisted by order of a person.
    assert!(
        troubles(|run| {
            let parked = run.accepted("s", "b4", 1);
            run.parks(&parked);
        })
        .is_empty()
    );
    // Granted, and not given to Redis yet; then cancelled, then reclaimed.
    assert!(
        troubles(|run| {
            run.sale_of("s").granted += 4;
            run.sale_of("s").stock += 4;
            run.input.flow.push(Flow { sale_id: "s".into(), delta: 4, kind: "grant".into() });
            run.input.grants.push(Grant {
                sale_id: "s".into(),
                grant_id: "more".into(),
                kind: "grant".into(),
                quantity: 4,
                epoch: 1,
                applied_at: None,
            });
        })
        .is_empty()
    );
    assert!(
        troubles(|run| {
            run.input.orders[0].cancelled_at = Some("2025-11-11".into());
            run.sale_of("s").stock += 2;
            run.input.flow.push(Flow { sale_id: "s".into(), delta: 2, kind: "cancel".into() });
            let grant = |id: &str, quantity| Grant {
                sale_id: "s".into(),
                grant_id: id.into(),
                kind: "reclaim".into(),
                quantity,
                epoch: 1,
                applied_at: Some("2025-11-11".into()),
            };
            run.input.grants.extend([grant("cancel-1001", 2), grant("again", 1)]);
            run.input.failed[0].reclaimed_by = Some("again".into());
            let stock = run.input.stock.first_mut().unwrap();
            stock.value = (stock.value.parse::<i64>().unwrap() + 3).to_string();
            for (id, units) in [("cancel-1001", "2"), ("again", "1")] {
                run.input.redis_grants.push(Units { sale: "s".into(), shard: 0, id: id.into(), units: units.into() });
            }
        })
        .is_empty()
    );
}

/// As if it had never been accepted, and no other number is touched.
fn vanish(run: &mut SampleRun, rid: &str) {
    run.input.ledger.retain(|record| record.rid != rid);
    run.input.outcomes.retain(|outcome| outcome.request_id != rid);
    run.input.outbox.retain(|entry| entry.rid.as_deref() != Some(rid));
}

/// The answers stay as they were, and the servers are as they were before.
fn forgotten(answered: &SampleRun) -> SampleRun {
    let mut run = calm();
    run.input.attempts.clone_from(&answered.input.attempts);
    run
}

#[test]
fn a_request_that_is_nowhere_is_lost_and_its_number_missing() {
    let mut before = calm();
    let lost = before.accepted("s", "b4", 1);
    before.bought("s", "b5", 1);
    let mut end = before.clone();
    vanish(&mut end, &lost);
    // Redis has forgotten it in order, and then the database lost it.
    end.meta_of("s").fields.insert("trimmed_count".into(), "1".into());
    // Its unit is for sale again, or kept back; but one that was never there is not there.
    for (stock, bridge) in [(5, false), (4, false), (3, true), (6, true)] {
        end.input.stock[0].value = stock.to_string();
        let state = said(&before, &end, &end);
        let kinds: Vec<Trouble> = state.troubles.iter().map(|(kind, _)| *kind).collect();
        let wanted = [Trouble::Lost, Trouble::Hole, Trouble::Bridge];
        assert_eq!((&*kinds, state.unseeable.len()), (&wanted[..2 + usize::from(bridge)], 0), "{:?}", state.troubles);
    }
}

#[test]
fn a_request_above_everything_that_was_left_is_lost_without_a_trace() {
    let mut before = calm();
    let first = before.accepted("s", "b4", 1);
    // A name that the run does not give again.
    let lost = "9999".to_owned();
    before.record_of(&first).rid.clone_from(&lost);
    let named = before.input.attempts.iter_mut().filter(|attempt| attempt.rid.as_ref() == Some(&first));
    named.for_each(|attempt| attempt.rid = Some(lost.clone()));
    let mut end = forgotten(&before);
    let state = said(&before, &end, &end);
    assert!(state.is_well(), "{:?}", state.troubles);
    assert_eq!(state.unseeable, std::slice::from_ref(&lost));
    // Its number was given to another one: there is no hole either.
    end.bought("s", "b6", 1);
    let state = said(&before, &calm(), &end);
    assert!(state.is_well() && state.unseeable == [lost], "{state:?}");
    // But a counter that survived the strike shows that there was one, whatever became of the counter later.
    let mut strike = calm();
    strike.meta_of("s").fields.insert("number".into(), "4".into());
    let end = forgotten(&before);
    let state = said(&before, &strike, &end);
    let kinds: Vec<Trouble> = state.troubles.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Trouble::Lost, Trouble::Hole], "{:?}", state.troubles);
}

#[test]
fn a_request_that_was_never_seen_anywhere_is_not_excused() {
    let before = calm();
    let mut end = before.clone();
    end.answered(("buy", "accepted"), ("b9", "s", 1), Some("77"));
    let state = said(&before, &end, &end);
    assert_eq!(state.troubles.len(), 1, "{:?}", state.troubles);
    assert_eq!((state.troubles[0].0, state.unseeable.len()), (Trouble::Lost, 0));
}

#[test]
fn each_trouble_is_reported() {
    assert_eq!(troubles(|run| drop(run.accepted("s", "b4", 1))), [Trouble::Limbo]);
    assert_eq!(
        troubles(|run| drop(run.input.orders.pop())),
        [Trouble::Torn, Trouble::Books],
        "an outcome without its order"
    );
    assert_eq!(
        troubles(|run| {
            let refused = run.accepted("s", "b4", 1);
            run.fails(&refused, "SOLD_OUT");
            // The unit that Redis gave away was never there.
            run.input.stock[0].value = "6".into();
        }),
        [Trouble::Refused]
    );
    let reused = troubles(|run| {
        let refused = run.accepted("s", "b4", 1);
        run.fails(&refused, "NUMBER_REUSED");
    });
    assert!(!reused.contains(&Trouble::Refused), "a recorded failure: {reused:?}");
    assert_eq!(troubles(|run| drop(run.bought("s", "b1", 2))), [Trouble::Twice], "four, and three are allowed");
    assert_eq!(
        troubles(|run| {
            run.sale_of("s").granted = 2;
            run.sale_of("s").stock = -1;
            run.input.flow.push(Flow { sale_id: "s".into(), delta: -8, kind: "correction".into() });
            run.input.stock[0].value = "-2".into();
        }),
        [Trouble::Oversold]
    );
    assert_eq!(troubles(|run| run.sale_of("s").granted += 1), [Trouble::Books]);
    assert_eq!(troubles(|run| run.input.stock[0].value = "7".into()), [Trouble::Bridge]);
    assert_eq!(
        troubles(|run| {
            let units = Units { sale: "s".into(), shard: 0, id: "1".into(), units: "2".into() };
            run.input.transfers.push(units);
        }),
        [Trouble::Bridge],
        "units between two buckets are in neither"
    );
    let unknown = |run: &mut SampleRun, id: &str| {
        run.input.redis_grants.push(Units { sale: "s".into(), shard: 0, id: id.into(), units: "2".into() });
    };
    // Units that Redis was given too many of, and of which as many were lost: only by their grant they show.
    assert_eq!(troubles(|run| unknown(run, "more")), [Trouble::Bridge], "a grant that the database does not know");
    assert_eq!(troubles(|run| unknown(run, "first")), [Trouble::Bridge], "more of a grant than there was");
    assert_eq!(troubles(|run| run.input.redis_grants.clear()), [Trouble::Bridge], "a grant that Redis has forgotten");
    assert_eq!(
        troubles(|run| drop(run.input.ledger.pop())),
        [Trouble::Ledger],
        "its outcome stands, its repeats do not"
    );
    assert_eq!(troubles(|run| run.input.keys.retain(|key| key.name != "grants")), [Trouble::Keys]);
    assert_eq!(
        troubles(|run| drop(run.meta_of("s").fields.insert("number".into(), "2".into()))),
        [Trouble::Ledger, Trouble::Behind]
    );
    assert_eq!(
        troubles(|run| run.sale_of("s").epoch = 2),
        [Trouble::Behind],
        "another epoch; what its ledger has is decided"
    );
}

#[test]
fn a_failure_that_is_the_buyers_keeps_its_unit_and_is_no_trouble() {
    let kinds = troubles(|run| {
        let failed = run.accepted("s", "b3", 1);
        run.fails(&failed, "DUPLICATE_BUYER");
    });
    assert!(kinds.is_empty(), "{kinds:?}");
    let kinds = troubles(|run| {
        let Failed { request_id, .. } = run.input.failed[0].clone();
        run.input.failed.clear();
        assert!(!request_id.is_empty());
    });
    assert_eq!(kinds, [Trouble::Torn], "and its row in the register has to be there");
}
