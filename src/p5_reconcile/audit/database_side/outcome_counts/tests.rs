//! P5: what is remembered of a sale's outcomes, and how far. Values only.

use super::*;

fn wanted(to: u64, landed: u64) -> SeriesWanted {
    SeriesWanted { series: Series { epoch: 1, shard: 0 }, to, landed, above: true }
}

fn piece(no: u64, missing: &[(u64, u64)]) -> Piece {
    let (after, to) = (no * PIECE, (no + 1) * PIECE);
    Piece { after, to, tally: Tally::default(), missing: missing.to_vec() }
}

#[test]
fn a_large_sale_is_counted_whole_at_first_and_every_hundredth_time() {
    let mut counted = CountedOutcomes::default();
    let large = [wanted(SMALL + 1, SMALL + 1)];
    let whole: Vec<u32> = (0..=AUDITS).filter(|_| counted.counts_all(&large)).collect();
    assert_eq!(whole, [0, AUDITS]);
    assert!((0..=AUDITS).all(|_| counted.counts_all(&[wanted(SMALL, SMALL)])), "a small sale always is");
}

#[test]
fn a_large_sale_is_counted_whole_as_often_as_that_is_asked_for() {
    let mut counted = CountedOutcomes::default();
    let large = [wanted(SMALL + 1, SMALL + 1)];
    assert!(counted.counts_all(&large) && !counted.counts_all(&large));
    for _ in 0..3 {
        counted.count_all_next();
        assert!(counted.counts_all(&large), "a difference stands");
    }
    assert!(!counted.counts_all(&large));
}

#[test]
fn pieces_are_remembered_as_far_as_their_holes_can_be() {
    let holes = |no: u64, count: u64| (0..count).map(|at| (no * PIECE + 2 * at + 1, no * PIECE + 2 * at + 1)).collect();
    let most: Vec<(u64, u64)> = holes(0, HOLES_MAX as u64);
    let mut memory = SeriesMemory::default();
    memory.take(&[piece(0, &most), piece(1, &[]), piece(2, &[(2 * PIECE + 5, 2 * PIECE + 5)])]);
    assert_eq!((memory.to(), memory.holes.len()), (2 * PIECE, HOLES_MAX), "one hole more is not remembered");
}

#[test]
fn numbers_that_land_at_this_moment_are_not_remembered() {
    assert_eq!(wanted(300_000, 300_000).quiet_to(), 300_000, "everything has landed");
    assert_eq!(wanted(300_000, 299_000).quiet_to(), 298_000, "as many again as are on their way");
    assert_eq!(wanted(300_000, 50_000).quiet_to(), 50_000 - PIECE, "a backlog lands in order");
    assert_eq!(wanted(300_000, 10).quiet_to(), 0);
}
