//! What the judge asks for, what it leaves to the repair, and what the next audit remembers.

use super::scene::AuditScene;
use crate::domain::outcome::{FailReason, Outcome};
use crate::domain::transfer_marks::Rewound;
use crate::p5_reconcile::audit::judge::{JudgedSale, OpenQuestion};
use crate::p5_reconcile::audit::redis_side::KnownGaps;
use crate::p5_reconcile::audit::window::Window;
use crate::p5_reconcile::rows::books::Series;

fn judged(scene: &mut AuditScene) -> (JudgedSale, Vec<OpenQuestion>) {
    scene.judged().expect("a decided case")
}

#[test]
fn a_sale_in_order_is_asked_about_its_grants_only() {
    let mut scene = AuditScene::open(10);
    let bought = scene.buy(2);
    scene.trim(bought);
    assert_eq!(judged(&mut scene).1, [OpenQuestion::Grants]);
    let mut frozen = AuditScene::open(10);
    frozen.freeze();
    assert!(judged(&mut frozen).1.is_empty(), "a rebuild counts its grants again");
}

#[test]
fn each_question_follows_from_the_answers_before() {
    let mut scene = AuditScene::on_shards(2, 10);
    let (forgotten, open) = (scene.buy(2), scene.accept(1));
    scene.is_old(forgotten);
    scene.is_old(open);
    scene.database_forgets(forgotten);
    let since_ms = scene.record(open).accepted_at_ms;
    let (_, asked) = judged(&mut scene);
    let expected = [
        OpenQuestion::Settled { shards: vec![0] },
        OpenQuestion::Outcomes(vec![open, forgotten]),
        OpenQuestion::Locations { since_ms },
        OpenQuestion::Grants,
        OpenQuestion::Transfers { buckets: false },
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_young_gap_of_an_epoch_that_is_over_is_asked_for_its_age() {
    let mut scene = AuditScene::open(10);
    scene.accept(1);
    scene.buy(1);
    scene.rebuild();
    let (_, asked) = judged(&mut scene);
    assert_eq!(asked[0], OpenQuestion::Ages(vec![(Series { epoch: 1, shard: 0 }, vec![1])]));
    scene.window = Window::Now;
    assert_eq!(judged(&mut scene).1, [OpenQuestion::Grants], "nothing is young where nothing may be open");
}

#[test]
fn what_is_to_be_repaired_is_in_the_audit() {
    let mut scene = AuditScene::open(20);
    let (parked, leak, unmarked, young) = (scene.accept(1), scene.accept(2), scene.accept(3), scene.accept(4));
    for id in [parked, leak, unmarked] {
        scene.is_old(id);
    }
    scene.park(parked);
    scene.decide(unmarked, Outcome::Failed(FailReason::GivenUp));
    let audit = judged(&mut scene).0.audit;
    let overdue: Vec<_> = audit.overdue.iter().map(|open| (open.request_id, open.parked)).collect();
    assert_eq!(overdue, [(parked, true), (leak, false)]);
    assert_eq!(audit.unmarked[&0], [(unmarked, Outcome::Failed(FailReason::GivenUp))]);
    let sheet = audit.counted;
    assert_eq!((sheet.parked, sheet.leaked, sheet.in_flight, sheet.accepted_failed), (1, 2, 4, 3));
    assert_eq!((audit.oldest_open_ms, audit.examined_count), (600_000, 4));
    assert!(!audit.overdue.iter().any(|open| open.request_id == young));
}

#[test]
fn old_records_are_collected_once_their_numbers_are_decided() {
    let mut scene = AuditScene::open(10);
    let (old, young, forgotten) = (scene.buy(1), scene.buy(1), scene.buy(1));
    scene.is_old(old);
    scene.is_old(forgotten);
    scene.database_forgets(forgotten);
    scene.retention_ms = Some(60_000);
    let audit = judged(&mut scene).0.audit;
    assert_eq!(audit.old[&0], [old], "{young} is young, {forgotten} has no outcome");
}

#[test]
fn units_that_can_be_sold_twice_stop_the_sale() {
    let mut scene = AuditScene::on_shards(2, 10);
    scene.transfers.rewound = vec![Rewound::Target { source: 0, target: 1 }];
    assert!(!judged(&mut scene).0.audit.sells_twice);
    let mut scene = AuditScene::on_shards(2, 10);
    scene.transfers.rewound = vec![Rewound::Source { source: 0, target: 1 }];
    assert!(judged(&mut scene).0.audit.sells_twice);
}

#[test]
fn the_next_audit_remembers_gaps_and_scans_a_doubted_ledger_again() {
    let mut scene = AuditScene::open(10);
    let lost = scene.accept(2);
    scene.buy(1);
    scene.redis_forgets(lost);
    let (JudgedSale { gaps, shards_to_rescan, audit }, _) = judged(&mut scene);
    assert_eq!(gaps, [(0, KnownGaps { runs: vec![(1, 1)], units: 2 })]);
    assert_eq!(shards_to_rescan, [0]);
    assert_eq!((audit.counted.gaps, audit.counted.gaps_held), (2, 2));
    assert!(judged(&mut AuditScene::open(10)).0.shards_to_rescan.is_empty());
}

#[test]
fn findings_beyond_the_bound_are_counted() {
    let mut scene = AuditScene::open(10);
    scene.findings_max = 2;
    scene.window = Window::Now;
    for _ in 0..5 {
        scene.accept(1);
    }
    let audit = judged(&mut scene).0.audit;
    assert_eq!((audit.findings.len(), audit.findings_left_out_count), (2, 3));
    let mut gaps = AuditScene::open(100);
    for _ in 0..22 {
        let lost = gaps.accept(1);
        gaps.buy(1);
        gaps.redis_forgets(lost);
    }
    let audit = judged(&mut gaps).0.audit;
    assert_eq!(audit.findings.len(), 1 + 20 + 1, "the damaged ledger, twenty gaps, and how many more there are");
    assert!(audit.findings[21].detail.starts_with("2 runs of numbers more have no outcome"));
}
