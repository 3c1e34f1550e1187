//! The rules of lines find one violation of each kind in a raffle and a waiting list that were made up, and none in what they are made from.
#![cfg(test)]

mod scene;

use super::{Came, Leaving};
use scene::{Scene, attempt, broken, order, rid};

/// A click of this moment, in place of fay's.
fn clicked(scene: &mut Scene, accepted_ms: i64) {
    (scene.books.orders[3].accepted_ms, scene.books.orders[3].state_ms) = (accepted_ms, Some(accepted_ms + 2_000));
    scene.log.attempts[1] = attempt("fay", accepted_ms - 5, Came::Accepted("2".into()));
}

#[test]
fn lines_in_which_all_is_right_break_no_rule() {
    assert_eq!(broken(|_scene| ()), Vec::<&str>::new());
    // An answer that was lost, of an entry and of one that came again.
    assert_eq!(broken(|scene| scene.log.entering[0].came = Came::Unknown), Vec::<&str>::new());
    // A chosen entry whose answer was lost got its unit after a higher rank.
    let late = |scene: &mut Scene| {
        scene.books.orders[0].accepted_ms = 7_000;
        scene.books.entries[2].state_ms = 9_000;
        scene.books.orders[0].state_ms = Some(9_000);
    };
    assert_eq!(broken(late), Vec::<&str>::new());
    // One in hand that waits is no one who was passed over.
    assert_eq!(broken(|scene| scene.books.entries[6].rid = Some(rid(9_000))), Vec::<&str>::new());
    // No entry waits any more: clicks get what is there.
    let over = |scene: &mut Scene| {
        scene.books.entries.retain(|row| row.sale != "w");
        scene.log.entering.retain(|call| call.sale != "w");
        scene.log.seen.retain(|seen| seen.sale != "w");
        scene.books.orders.pop();
        scene.books.held.remove(&("w".to_owned(), "hal".to_owned()));
        scene.log.reported.retain(|reported| reported.rid != rid(4_300));
        *scene.books.unsold.get_mut("w").unwrap() = 1;
        scene.books.lines.get_mut("w").unwrap().by_line = false;
        clicked(scene, 9_000);
    };
    assert_eq!(broken(over), Vec::<&str>::new());
}

#[test]
fn entries_that_vanished_and_entries_from_nowhere_are_found() {
    let gone = |scene: &mut Scene| {
        scene.books.entries.pop();
        scene.log.seen.pop();
    };
    assert_eq!(broken(gone), ["ENTRY"], "a 201 without a row");
    assert_eq!(broken(|scene| _ = scene.log.entering.pop()), ["ENTRY"], "a row without a call");
    assert_eq!(broken(|scene| scene.log.entering[6].quantity = 2), ["ENTRY"], "for other units");
    assert_eq!(broken(|scene| scene.books.entries[6].entered_ms = 5_990), Vec::<&str>::new());
    assert_eq!(broken(|scene| scene.books.entries[0].entered_ms = 1_000), ["ENTRY"], "behind the close");
    assert_eq!(broken(|scene| scene.log.entering[0].begun_ms = 1_001), ["ENTRY"], "called behind the close");
    let twice = |scene: &mut Scene| {
        scene.books.entries[6].buyer = "gus".into();
        scene.log.entering[6].buyer = "gus".into();
        scene.log.seen[2].buyer = "gus".into();
    };
    assert_eq!(broken(twice), ["ENTRY"], "one buyer in it twice");
    assert_eq!(broken(|scene| scene.books.entries[0].person = Some("p-ann".into())), ["ENTRY"]);
    assert_eq!(broken(|scene| scene.log.leaving.clear()), ["ENTRY"], "put out by no call");
    assert_eq!(broken(|scene| scene.log.leaving[0].buyer = "eve".into()), ["ENTRY"], "another buyer had it leave");
    let stays = |scene: &mut Scene| {
        let leaving = Leaving { buyer: "ann".into(), entry: "23".into(), left: Some(true) };
        scene.log.leaving.push(leaving);
    };
    assert_eq!(broken(stays), ["ENTRY"], "it left, and waits");
}

#[test]
fn persons_are_in_a_line_once_where_they_are_counted() {
    let by_person = |scene: &mut Scene| {
        scene.terms.by_person = true;
        for row in &mut scene.books.entries {
            row.person = Some(format!("p-{}", row.buyer));
        }
        for order in &mut scene.books.orders {
            order.person = Some(format!("p-{}", order.buyer));
        }
        scene.books.held =
            [("r", "p-bob"), ("w", "p-eve"), ("w", "p-hal")].map(|(of, who)| ((of.into(), who.into()), 1)).into();
    };
    assert_eq!(broken(by_person), Vec::<&str>::new());
    let second = |scene: &mut Scene| {
        by_person(scene);
        scene.log.who.get_mut("gus").unwrap().person = "p-ann".into();
        scene.books.entries[4].person = Some("p-ann".into());
    };
    assert_eq!(broken(second), ["ENTRY"], "a second account of ann's");
}

#[test]
fn an_order_has_one_entry_and_both_say_the_same() {
    let shared = |scene: &mut Scene| {
        scene.books.entries[6].rid = Some(rid(4_300));
        scene.log.seen.pop();
    };
    assert_eq!(broken(shared), ["OFFER"], "one order, two entries");
    let without = |scene: &mut Scene| scene.books.entries[5].rid = Some(rid(4_301));
    assert_eq!(broken(without), ["CLICK", "OFFER", "UNKNOWN"], "taken, and its order is of no entry");
    assert_eq!(broken(|scene| scene.books.entries[5].state = "LAPSED".into()), ["OFFER"]);
    assert_eq!(broken(|scene| scene.books.entries[5].reason = Some("LIMIT".into())), ["OFFER"]);
    assert_eq!(broken(|scene| scene.books.entries[2].reason = Some("CANCELLED".into())), ["OFFER"]);
    assert_eq!(broken(|scene| scene.books.entries[2].state = "TAKEN".into()), ["OFFER"]);
    assert_eq!(broken(|scene| scene.books.entries[2].state = "OFFERED".into()), ["OFFER"], "open at rest");
    assert_eq!(broken(|scene| scene.books.entries[2].reason = Some("LIMIT".into())), ["OFFER"], "with an order");
    assert_eq!(broken(|scene| scene.log.seen[1].rid = Some(rid(1))), ["OFFER"], "shown another request");
    assert_eq!(broken(|scene| scene.log.seen[2].rid = Some(rid(1))), ["OFFER"], "its request is gone");
    let of_another = |scene: &mut Scene| {
        scene.books.orders[4].buyer = "gus".into();
        scene.books.held =
            [("r", "bob"), ("w", "eve"), ("w", "gus")].map(|(of, who)| ((of.into(), who.into()), 1)).into();
    };
    assert_eq!(broken(of_another), ["OFFER"]);
}

#[test]
fn ranks_are_recomputed_and_nothing_goes_past_one_that_waits() {
    assert_eq!(broken(|scene| scene.books.entries[1].rank = Some(1)), ["RANK"], "drawn otherwise");
    assert_eq!(broken(|scene| scene.books.entries[3].listed = true), ["RANK"], "another list");
    assert_eq!(broken(|scene| scene.books.lines.get_mut("r").unwrap().seed = "08".repeat(32)), ["RANK"]);
    assert_eq!(broken(|scene| scene.log.seen[0].rank = Some(1)), ["RANK"], "shown another one");
    assert_eq!(broken(|scene| scene.books.entries[6].rank = Some(2)), ["RANK"], "two of one rank");
    assert_eq!(broken(|scene| scene.books.entries[6].entered_ms = 2_900), ["RANK"], "not by arrival");
    assert_eq!(broken(|scene| scene.books.entries[6].rank = None), ["RANK"]);
    let single = |scene: &mut Scene| {
        scene.books.entries[4].quantity = 1;
        scene.log.entering[4].quantity = 1;
    };
    assert_eq!(broken(single), ["RANK"], "gus wanted no more than hal got");
    let passed = |scene: &mut Scene| {
        scene.books.entries[2].state = "WAITING".into();
        (scene.books.entries[2].rid, scene.books.entries[2].rank, scene.books.entries[2].reason) = (None, None, None);
        scene.books.orders.remove(0);
    };
    assert_eq!(broken(passed), ["RANK"], "rank 1 waits, rank 2 has its unit");
    // Chosen long after rank 2, and served after it.
    let later = |scene: &mut Scene| {
        (scene.books.entries[2].rid, scene.books.entries[2].state_ms) = (Some(rid(9_700)), 12_000);
        scene.books.orders[0] = order(&rid(9_700), "r", "cat", 9_710, "EXPIRED");
    };
    assert_eq!(broken(later), ["RANK"]);
}

#[test]
fn a_click_while_an_entry_waits_is_found_by_rows_and_by_what_buyers_saw() {
    let by_rows = |scene: &mut Scene| {
        clicked(scene, 4_000);
        scene.log.attempts[1].begun_ms = 1_000;
    };
    assert_eq!(broken(by_rows), ["CLICK"], "gus waited");
    let by_answers = |scene: &mut Scene| {
        clicked(scene, 6_500);
        (scene.books.orders[3].accepted_ms, scene.books.orders[3].state_ms) = (2_200, Some(4_200));
    };
    assert_eq!(broken(by_answers), ["CLICK"], "ann saw that she waits, before and behind it");
    // One whose answer came after the last call of who waits may have been it when the door was open.
    let at_the_edge = |scene: &mut Scene| {
        by_answers(scene);
        scene.log.attempts[1].ended_ms = 7_001;
    };
    assert_eq!(broken(at_the_edge), Vec::<&str>::new());
    assert_eq!(broken(|scene| clicked(scene, 3_100 + super::clicks::SLACK_MS - 1)), Vec::<&str>::new(), "by the clock");
    assert_eq!(broken(|scene| scene.books.lines.get_mut("w").unwrap().by_line = false), ["CLICK"], "an open door");
    let in_a_raffle = |scene: &mut Scene| {
        clicked(scene, 5_000);
        (scene.books.orders[3].sale, scene.log.attempts[1].sale) = ("r".into(), "r".into());
    };
    assert_eq!(broken(in_a_raffle), ["CLICK"]);
}
