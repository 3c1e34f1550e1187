//! The checker finds one violation of each kind in a log that was made up, and none in the one that they are made from.
#![cfg(test)]

use super::{Attempt, Books, Came, DropTerms, Identity, Issued, Log, OrderRow, Played, Reported, Withdrawal, judge};
use serde_json::json;

/// Members first, who need a tier; what they leave rolls over. By person, one each; the second sale takes purchase tokens only.
struct Scene {
    terms: DropTerms,
    log: Log,
    books: Books,
}

fn attempt(buyer: &str, sale: &str, token: Option<&str>, came: Came) -> Attempt {
    let (buyer, sale, token) = (buyer.to_owned(), sale.to_owned(), token.map(str::to_owned));
    let begun_ms = if sale == "m" { 1_100 } else { 2_100 };
    Attempt { buyer, sale, quantity: 1, token, shows: true, begun_ms, ended_ms: begun_ms + 5, came, trick: None }
}

fn order(rid: &str, sale: &str, buyer: &str, state: Option<&str>) -> OrderRow {
    let accepted_ms = if sale == "m" { 1_102 } else { 2_102 };
    OrderRow {
        rid: rid.into(),
        sale: sale.into(),
        buyer: buyer.into(),
        person: Some(format!("p-{buyer}")),
        quantity: 1,
        amount_cents: 100,
        state: state.map(str::to_owned),
        accepted_ms,
        state_ms: Some(accepted_ms + 50),
    }
}

fn scene() -> Scene {
    let sale = |id: &str, from: &str, to: &str| {
        json!({ "sale_id": id, "stock": 2, "limit": 1, "price_cents": 100, "pay_within_s": 2, "limit_returns": true,
            "starts_at": format!("1970-01-01T00:00:0{from}Z"), "ends_at": format!("1970-01-01T00:00:0{to}Z") })
    };
    let mut file = json!({ "drop_id": "d", "limit": 1, "limit_by": "person", "sales": [sale("m", "1", "2"), sale("all", "2", "4")] });
    file["sales"][0]["needs"] = json!({ "tier": ["gold"] });
    file["sales"][0]["rollover_to"] = "all".into();
    file["sales"][1]["token_required"] = true.into();
    file["sales"][1]["releases"] = json!([{ "at": "1970-01-01T00:00:03Z", "units": 3 }]);
    let mut log = Log::default();
    for buyer in ["ann", "bob", "eve"] {
        let gold = json!({ "tier": if buyer == "eve" { "silver" } else { "gold" } });
        let facts = gold.as_object().expect("facts").clone();
        log.who.insert(buyer.into(), Identity { person: format!("p-{buyer}"), facts, has_pass: false });
    }
    log.issued.insert("t2".into(), Issued { buyer: "bob".into(), sale: "all".into(), rid: "2".into() });
    log.attempts = vec![
        attempt("ann", "m", None, Came::Accepted("1".into())),
        attempt("bob", "all", Some("t2"), Came::Unknown),
        attempt("bob", "all", Some("t2"), Came::Accepted("2".into())),
        attempt("eve", "m", None, Came::Refused { status: 403, code: "P1-Q1".into() }),
    ];
    log.reported = vec![Reported { rid: "1".into(), amount: 100, paid: Some(true) }];
    let mut books = Books {
        orders: vec![order("1", "m", "ann", Some("PAID")), order("2", "all", "bob", Some("UNPAID"))],
        ..Books::default()
    };
    books.payments.insert("1".into(), 100);
    for (sale, name, units) in
        [("m", "first", 2), ("all", "first", 2), ("all", "release-1", 3), ("all", "move-rollover-1", 1)]
    {
        books.grants.insert((sale.into(), name.into()), units);
    }
    books.withdrawals =
        vec![Withdrawal { sale: "m".into(), name: "rollover-1".into(), taken: Some(1), moves_to: Some("all".into()) }];
    books.unsold = [("m".to_owned(), 0), ("all".to_owned(), 5)].into();
    books.held = [(("m".to_owned(), "p-ann".to_owned()), 1), (("all".to_owned(), "p-bob".to_owned()), 1)].into();
    Scene { terms: DropTerms::of(&file, None), log, books }
}

/// The rules that a change of the scene breaks.
fn broken(change: impl FnOnce(&mut Scene)) -> Vec<&'static str> {
    let mut scene = scene();
    change(&mut scene);
    let Scene { terms, log, books } = &scene;
    let mut rules: Vec<_> = judge(&Played { terms, log, books }).into_iter().map(|found| found.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

#[test]
fn a_drop_in_which_all_is_right_breaks_no_rule() {
    assert_eq!(broken(|_scene| ()), Vec::<&str>::new());
    // An order that ended unpaid makes room for another account of the same person.
    let room = |scene: &mut Scene| {
        let mut first = order("3", "all", "bob", Some("EXPIRED"));
        (first.accepted_ms, first.state_ms) = (2_050, Some(2_102));
        scene.log.issued.insert("t3".into(), Issued { buyer: "bob".into(), sale: "all".into(), rid: "3".into() });
        scene.log.attempts.push(attempt("bob", "all", Some("t3"), Came::Accepted("3".into())));
        scene.books.orders.push(first);
    };
    assert_eq!(broken(room), Vec::<&str>::new());
    // A failure is an outcome, and keeps its unit.
    let failed = |scene: &mut Scene| {
        scene.books.orders.retain(|order| order.rid != "2");
        scene.books.failed.insert("2".into(), ("all".into(), 1));
    };
    assert_eq!(broken(failed), Vec::<&str>::new());
}

#[test]
fn units_that_never_were_and_units_that_vanished_are_found() {
    let more = |scene: &mut Scene| scene.books.orders[0].quantity = 3;
    assert!(broken(more).contains(&"OVERSOLD"));
    assert_eq!(broken(|scene| *scene.books.unsold.get_mut("all").unwrap() = 4), ["UNITS"]);
    assert_eq!(broken(|scene| *scene.books.unsold.get_mut("all").unwrap() = 6), ["UNITS"]);
    let twice = |scene: &mut Scene| {
        *scene.books.unsold.get_mut("all").unwrap() += 3;
        scene.books.grants.insert(("all".into(), "release-2".into()), 3);
    };
    assert_eq!(broken(twice), ["UNITS"], "a release that no file has");
    let lost_on_the_way = |scene: &mut Scene| _ = scene.books.grants.remove(&("all".into(), "move-rollover-1".into()));
    assert_eq!(broken(lost_on_the_way), ["UNITS"]);
    assert_eq!(broken(|scene| scene.books.withdrawals[0].moves_to = None), ["UNITS"]);
    let stays = |scene: &mut Scene| {
        scene.books.withdrawals.clear();
        scene.books.grants.remove(&("all".into(), "move-rollover-1".into()));
        scene.books.unsold = [("m".to_owned(), 1), ("all".to_owned(), 4)].into();
    };
    assert_eq!(broken(stays), ["UNITS"], "what is unsold has to roll over");
}

#[test]
fn limits_are_judged_at_each_moment_and_by_who_a_buyer_really_is() {
    // A second account of ann's, which the product takes for a person of its own.
    let second = |scene: &mut Scene| {
        scene.log.who.get_mut("bob").unwrap().person = "p-ann".into();
        scene.books.orders[1].person = Some("p-bob".into());
    };
    assert_eq!(broken(second), ["HELD", "LIMIT", "PERSON"]);
    let overlap = |scene: &mut Scene| {
        let mut first = order("3", "all", "bob", Some("EXPIRED"));
        (first.accepted_ms, first.state_ms) = (2_050, Some(2_103));
        scene.log.issued.insert("t3".into(), Issued { buyer: "bob".into(), sale: "all".into(), rid: "3".into() });
        scene.log.attempts.push(attempt("bob", "all", Some("t3"), Came::Accepted("3".into())));
        scene.books.orders.push(first);
    };
    assert_eq!(broken(overlap), ["LIMIT"], "one millisecond with two units");
    assert_eq!(broken(|scene| scene.books.held.clear()), ["HELD"]);
    let too_many = |scene: &mut Scene| *scene.books.held.values_mut().next().unwrap() = 2;
    assert_eq!(broken(too_many), ["HELD"]);
}

#[test]
fn what_a_sale_needs_and_when_it_sells_is_judged_by_orders_and_by_answers() {
    let by_eve = |scene: &mut Scene| {
        scene.books.orders[0] = order("1", "m", "eve", Some("PAID"));
        scene.log.attempts[0].buyer = "eve".into();
        scene.books.held =
            [(("m".to_owned(), "p-eve".to_owned()), 1), (("all".to_owned(), "p-bob".to_owned()), 1)].into();
    };
    assert_eq!(broken(by_eve), ["NEEDS"]);
    assert_eq!(broken(|scene| scene.log.attempts[0].shows = false), ["NEEDS"], "she has it, and did not show it");
    assert_eq!(broken(|scene| scene.books.orders[0].accepted_ms = 2_001), ["WINDOW"]);
    assert_eq!(broken(|scene| scene.log.attempts[0].begun_ms = 2_001), ["WINDOW"]);
    assert_eq!(broken(|scene| scene.log.attempts[0].ended_ms = 999), ["WINDOW"]);
    assert_eq!(
        broken(|scene| scene.terms.sales[0].hidden_until_ms = Some(1_200)),
        ["WINDOW"],
        "before it was published"
    );
    // The repeat after the end of a purchase that was begun in time.
    assert_eq!(broken(|scene| scene.log.attempts[2].begun_ms = 4_500), Vec::<&str>::new());
}

#[test]
fn tokens_and_requests_are_held_against_each_other() {
    assert_eq!(broken(|scene| scene.log.attempts[2].came = Came::Accepted("9".into())), ["LOST", "TOKEN"]);
    let two = |scene: &mut Scene| {
        scene.log.attempts.push(attempt("bob", "all", Some("t2"), Came::Accepted("4".into())));
    };
    assert_eq!(broken(two), ["LOST", "TOKEN"]);
    let anybodys = |scene: &mut Scene| scene.log.issued.get_mut("t2").unwrap().buyer = "ann".into();
    assert_eq!(broken(anybodys), ["TOKEN"]);
    assert_eq!(broken(|scene| _ = scene.log.issued.remove("t2")), ["TOKEN"]);
    let gone = |scene: &mut Scene| {
        scene.books.orders.pop();
        *scene.books.unsold.get_mut("all").unwrap() = 6;
        scene.books.held.retain(|(sale, _), _| sale == "m");
    };
    assert_eq!(broken(gone), ["LOST"]);
    assert_eq!(broken(|scene| scene.books.orders[0].buyer = "bob".into()), ["HELD", "LIMIT", "LOST", "PERSON"]);
    let from_nowhere = |scene: &mut Scene| scene.log.attempts.retain(|attempt| attempt.buyer != "ann");
    assert_eq!(broken(from_nowhere), ["UNKNOWN"]);
    let unanswered = |scene: &mut Scene| scene.log.attempts[0].came = Came::Unknown;
    assert_eq!(broken(unanswered), Vec::<&str>::new());
    let of_another = |scene: &mut Scene| {
        (scene.log.attempts[0].came, scene.log.attempts[0].quantity) = (Came::Unknown, 2);
    };
    assert_eq!(broken(of_another), ["UNKNOWN"]);
}

#[test]
fn prices_payments_and_the_audit_are_judged() {
    assert_eq!(broken(|scene| scene.books.orders[0].amount_cents = 90), ["PRICE"]);
    assert_eq!(broken(|scene| scene.books.payments.clear()), ["PRICE"]);
    assert_eq!(broken(|scene| scene.log.reported.clear()), ["PRICE"], "paid by no payment");
    let cheaper = |scene: &mut Scene| {
        scene.log.reported[0].amount = 1;
        scene.books.payments.insert("1".into(), 1);
    };
    assert_eq!(broken(cheaper), ["PRICE"]);
    assert_eq!(broken(|scene| scene.books.orders[0].state = Some("UNPAID".into())), ["PRICE"], "answered \"paid\"");
    assert_eq!(broken(|scene| scene.books.audit.push("m: LEAK".into())), ["AUDIT"]);
}
