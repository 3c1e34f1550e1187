//! A checker that has never failed proves nothing: every rule is broken once, alone, and only that rule speaks.

mod loss;
mod redis;
mod story;
mod told;

use super::read::{Entry, Failed, Flow, Outcome};
use super::{Verdict, check};
use story::Story;

fn verdict(story: &Story) -> Verdict {
    let dir = story.write();
    let verdict = check(&dir);
    std::fs::remove_dir_all(dir).unwrap();
    verdict
}

/// Damages the correct story, and expects this rule and no other; the details must hold `told`.
fn broken(rule: &str, told: &str, damage: impl FnOnce(&mut Story)) {
    let mut story = Story::correct();
    damage(&mut story);
    let verdict = verdict(&story);
    assert_eq!(verdict.rules(), [rule], "{:#?}", verdict.violations);
    assert!(verdict.violations.iter().any(|found| found.detail.contains(told)), "{told}: {:#?}", verdict.violations);
}

#[test]
fn a_correct_run_is_green_and_counted() {
    let verdict = verdict(&Story::correct());
    assert!(verdict.is_green(), "{:#?}", verdict.violations);
    let figures = verdict.figures;
    assert_eq!((figures.orders, figures.accepted, figures.unknown, figures.parked), (7, 8, 3, 1));
    assert_eq!((figures.undersold_units, figures.untold, figures.rebuilt_sales), (1, 1, 1));
    assert_eq!((figures.refused["sold_out"], figures.refused["limit"], figures.failed["GIVEN_UP"]), (1, 1, 1));
    assert_eq!(figures.rule_of_three, Some(3.0 / 8.0));
}

#[test]
fn c0_an_input_is_missing_or_unreadable() {
    let story = Story::correct();
    let dir = story.write();
    std::fs::remove_file(dir.join("redis_transfers.jsonl")).unwrap();
    assert_eq!(check(&dir).rules(), ["C0"]);
    std::fs::write(dir.join("redis_transfers.jsonl"), "{\"sale\":").unwrap();
    assert_eq!(check(&dir).rules(), ["C0"]);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn c1_sold_more_than_granted_or_the_books_disagree() {
    broken("C1", "journal", |story| {
        story.input.flow.push(Flow { sale_id: "many".into(), delta: 1, kind: "correction".into() });
    });
    broken("C1", "is not granted", |story| story.sale_of("many").granted += 1);
    broken("C1", "oversold", |story| {
        // As many orders as ever, of a sale that never had so many units.
        let sold = 20 - story.sale_of("many").stock;
        story.sale_of("many").granted = sold - 1;
        story.sale_of("many").stock = 0;
        story.input.flow.push(Flow { sale_id: "many".into(), delta: sold - 20, kind: "correction".into() });
    });
    broken("C1", "which does not exist", |story| {
        let rid = story.bought("many", "b9", 1);
        let many = story.sale_of("many");
        many.stock += 1;
        story.input.flow.push(Flow { sale_id: "many".into(), delta: 1, kind: "correction".into() });
        story.input.orders.last_mut().unwrap().sale_id = "gone".into();
        story.input.attempts.iter_mut().filter(|a| a.rid.as_ref() == Some(&rid)).for_each(|attempt| {
            attempt.sale = "gone".into();
        });
    });
    broken("C1", "stock is -1", |story| {
        let sale = story.sale_of("many");
        (sale.granted, sale.stock) = (sale.granted - sale.stock - 1, -1);
        story.input.flow.retain(|flow| flow.sale_id != "many");
        story.input.flow.push(Flow { sale_id: "many".into(), delta: -1, kind: "correction".into() });
    });
    broken("C1", " ms: ", |story| {
        // Healed before the end.
        story.input.samples[3].ordered += 1;
    });
}

#[test]
fn c2_a_buyer_has_too_much() {
    broken("C2", "one is allowed", |story| {
        let failed = story.input.failed.remove(0);
        story.input.outcomes.retain(|outcome| outcome.request_id != failed.request_id);
        story.lands(&failed.request_id);
        // It is b1's second order now.
        story.input.orders.last_mut().unwrap().user_id = "b1".into();
        story.record_of(&failed.request_id).user = "b1".into();
        story.input.attempts.retain(|attempt| attempt.kind != "status" || attempt.result != "failed");
        story.input.attempts.iter_mut().filter(|a| a.rid.as_ref() == Some(&failed.request_id)).for_each(|attempt| {
            attempt.user = "b1".into();
        });
    });
    broken("C2", "5 are allowed", |story| {
        story.bought("five", "b1", 1);
    });
    broken("C2", "by purchases", |story| story.input.purchases[0].quantity -= 1);
    broken("C2", "two orders", |story| {
        let twin = story.input.orders.iter().find(|order| order.sale_id == "many").unwrap().clone();
        story.sale_of("many").stock -= twin.quantity;
        story.input.flow.push(Flow { sale_id: "many".into(), delta: -twin.quantity, kind: "order".into() });
        story.input.orders.push(twin);
    });
}

#[test]
fn c3_a_request_is_lost_in_limbo_or_half_decided() {
    broken("C3-lost", "lost: request", |story| {
        let rid = story.bought("many", "b9", 1);
        story.vanishes(&rid);
    });
    broken("C3-limbo", "it is in ledger", |story| {
        story.accepted("many", "b9", 1);
    });
    broken("C3-limbo", "it is in ledger, outbox or queues", |story| {
        let rid = story.accepted("many", "b9", 1);
        story.lies_in("retry", &rid);
    });
    broken("C3-limbo", "no client was told", |story| {
        let rid = story.accepted("many", "b9", 1);
        story.lies_in("orders", &rid);
        let body = story.input.rabbit.pop().unwrap().body;
        story.input.outbox.push(Entry { entry: "1-1".into(), rid: Some(rid), body, ..Entry::default() });
        story.input.attempts.last_mut().unwrap().result = "overloaded".into();
    });
    broken("C3-torn", "the register does not know it", |story| {
        // Of a sale whose units nobody counts: nothing else can be told from it.
        story.input.outcomes.push(Outcome {
            request_id: "7777".into(),
            kind: "FAILED".into(),
            reason: Some("UNKNOWN_SALE".into()),
            sale_id: "gone".into(),
            epoch: 1,
            number: Some(1),
            ..Outcome::default()
        });
    });
    broken("C3-torn", "there is no order", |story| {
        // Its order is there under another id that a client asked for as well.
        story.bought("many", "b9", 1);
        story.input.orders.last_mut().unwrap().request_id = "8888".into();
        story.heard(("buy", "accepted"), ("b9", "many", 1), Some("8888"));
    });
    broken("C3-torn", "says failed_final, but", |story| {
        let row = Failed { request_id: "9001".into(), user_id: "b3".into(), ..story.input.failed[0].clone() };
        story.input.failed.push(row);
    });
    broken("C3-torn", "two outcomes", |story| {
        let twin = Outcome { sale_id: "gone".into(), number: Some(1), ..story.input.outcomes[0].clone() };
        story.input.outcomes.insert(0, twin);
    });
    broken("C3-torn", "without an outcome", |story| {
        let rid = story.bought("many", "b9", 1);
        let order = story.input.orders.pop().unwrap();
        story.input.orders.retain(|other| other.request_id != rid);
        story.vanishes(&rid);
        story.sale_of("many").stock -= 1;
        story.input.flow.push(Flow { sale_id: "many".into(), delta: -1, kind: "order".into() });
        story.input.orders.push(order);
    });
}

#[test]
fn c4_nobody_asked_for_it() {
    broken("C4", "nobody asked for it", |story| {
        let rid = story.bought("many", "b9", 1);
        story.input.attempts.retain(|attempt| attempt.rid.as_ref() != Some(&rid));
    });
    broken("C4", "nobody used it", |story| {
        story.bought("many", "b9", 1);
        story.input.attempts.pop();
    });
    broken("C4", "something else was asked for", |story| {
        story.bought("many", "b9", 2);
        story.input.attempts.last_mut().unwrap().quantity = 1;
    });
    broken("C4", "failure", |story| {
        let rid = story.accepted("many", "b9", 2);
        story.fails(&rid, "GIVEN_UP");
        story.input.attempts.last_mut().unwrap().user = "B9".into();
    });
    // One lost answer excuses one unknown order, not two.
    broken("C4", "nobody asked for it", |story| {
        let rid = story.bought("many", "b6", 3);
        story.input.attempts.retain(|attempt| attempt.rid.as_ref() != Some(&rid));
    });
}
