//! A checker that has never failed proves nothing: every rule is broken once, alone, and only that rule speaks.

mod answers;
mod loss;
mod operators;
mod published;
mod redis;
mod sample_run;
mod shared_cases;
mod written_run;

use super::read::{Attempt, Entry, Failed, Flow, Outcome, Payment};
use super::{Verdict, check, check_with_published};
use sample_run::SampleRun;

fn verdict(run: &SampleRun) -> Verdict {
    let dir = run.write();
    let verdict = check_with_published(&dir);
    std::fs::remove_dir_all(dir).unwrap();
    verdict
}

/// Damages the correct run, and expects this rule and no other; the details must hold `detail`.
fn broken(rule: &str, detail: &str, damage: impl FnOnce(&mut SampleRun)) {
    let mut run = SampleRun::correct();
    damage(&mut run);
    let verdict = verdict(&run);
    assert_eq!(verdict.rules(), [rule], "{:#?}", verdict.violations);
    assert!(
        verdict.violations.iter().any(|found| found.detail.contains(detail)),
        "{detail}: {:#?}",
        verdict.violations
    );
}

#[test]
fn a_correct_run_is_green_and_counted() {
    let verdict = verdict(&SampleRun::correct());
    assert!(verdict.is_green(), "{:#?}", verdict.violations);
    let figures = verdict.figures;
    assert_eq!((figures.orders, figures.accepted, figures.unknown, figures.parked), (7, 8, 3, 1));
    assert_eq!((figures.undersold_units, figures.unknown_to_clients, figures.rebuilt_sales), (1, 1, 1));
    assert_eq!((figures.refused["sold_out"], figures.refused["limit"], figures.failed["GIVEN_UP"]), (1, 1, 1));
    assert_eq!(figures.rule_of_three, Some(3.0 / 8.0));
}

#[test]
fn c0_an_input_is_missing_or_unreadable() {
    let run = SampleRun::correct();
    let dir = run.write();
    std::fs::remove_file(dir.join("redis_transfers.jsonl")).unwrap();
    assert_eq!(check(&dir).rules(), ["C0"]);
    std::fs::write(dir.join("redis_transfers.jsonl"), "{\"sale\":").unwrap();
    assert_eq!(check(&dir).rules(), ["C0"]);
    std::fs::write(dir.join("redis_transfers.jsonl"), "").unwrap();
    std::fs::remove_file(dir.join("published.jsonl")).unwrap();
    assert!(check(&dir).is_green(), "a run without a downstream system");
    assert!(check_with_published(&dir).rules().contains(&"C0"));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn c1_sold_more_than_granted_or_the_books_disagree() {
    broken("C1", "journal", |run| {
        run.input.flow.push(Flow { sale_id: "many".into(), delta: 1, kind: "correction".into() });
    });
    broken("C1", "is not granted", |run| run.sale_of("many").granted += 1);
    broken("C1", "oversold", |run| {
        // As many orders as before, of a sale that never had so many units.
        let sold = 20 - run.sale_of("many").stock;
        run.sale_of("many").granted = sold - 1;
        run.sale_of("many").stock = 0;
        run.input.flow.push(Flow { sale_id: "many".into(), delta: sold - 20, kind: "correction".into() });
    });
    broken("C1", "which does not exist", |run| {
        let rid = run.bought("many", "b9", 1);
        let many = run.sale_of("many");
        many.stock += 1;
        run.input.flow.push(Flow { sale_id: "many".into(), delta: 1, kind: "correction".into() });
        run.input.orders.last_mut().unwrap().sale_id = "gone".into();
        run.input.attempts.iter_mut().filter(|a| a.rid.as_ref() == Some(&rid)).for_each(|attempt| {
            attempt.sale = "gone".into();
        });
    });
    broken("C1", "stock is -1", |run| {
        let sale = run.sale_of("many");
        (sale.granted, sale.stock) = (sale.granted - sale.stock - 1, -1);
        run.input.flow.retain(|flow| flow.sale_id != "many");
        run.input.flow.push(Flow { sale_id: "many".into(), delta: -1, kind: "correction".into() });
    });
    broken("C1", " ms: ", |run| {
        // Healed before the end.
        run.input.samples[3].ordered += 1;
    });
}

#[test]
fn c2_a_buyer_has_too_much() {
    broken("C2", "one is allowed", |run| {
        let failed = run.input.failed.remove(0);
        run.input.outcomes.retain(|outcome| outcome.request_id != failed.request_id);
        run.persisted(&failed.request_id);
        // It is b1's second order now.
        run.input.orders.last_mut().unwrap().user_id = "b1".into();
        run.record_of(&failed.request_id).user = "b1".into();
        run.input.attempts.retain(|attempt| attempt.kind != "status" || attempt.result != "failed");
        run.input.attempts.iter_mut().filter(|a| a.rid.as_ref() == Some(&failed.request_id)).for_each(|attempt| {
            attempt.user = "b1".into();
        });
    });
    broken("C2", "5 are allowed", |run| {
        run.bought("five", "b1", 1);
    });
    broken("C2", "by purchases", |run| run.input.purchases[0].quantity -= 1);
    broken("C2", "Some(5) are allowed", |run| run.input.drops[0].per_user_limit = Some(5));
    broken("C2", "by drop_purchases", |run| run.input.drop_purchases[0].quantity -= 1);
    broken("C2", "two orders", |run| {
        let twin = run.input.orders.iter().find(|order| order.sale_id == "many").unwrap().clone();
        run.sale_of("many").stock -= twin.quantity;
        run.input.flow.push(Flow { sale_id: "many".into(), delta: -twin.quantity, kind: "order".into() });
        run.input.orders.push(twin);
    });
}

#[test]
fn c3_a_request_is_lost_in_limbo_or_half_decided() {
    broken("C3-lost", "lost: request", |run| {
        let rid = run.bought("many", "b9", 1);
        run.vanishes(&rid);
    });
    broken("C3-limbo", "it is in ledger", |run| {
        run.accepted("many", "b9", 1);
    });
    broken("C3-limbo", "it is in ledger, outbox or queues", |run| {
        let rid = run.accepted("many", "b9", 1);
        run.is_in("retry", &rid);
    });
    broken("C3-limbo", "answered to no client", |run| {
        let rid = run.accepted("many", "b9", 1);
        run.is_in("orders", &rid);
        let body = run.input.rabbit.pop().unwrap().body;
        run.input.outbox.push(Entry { entry: "1-1".into(), rid: Some(rid), body, ..Entry::default() });
        run.input.attempts.last_mut().unwrap().result = "overloaded".into();
    });
    broken("C3-torn", "the register does not know it", |run| {
        // Of a sale whose units are not counted: nothing else can be concluded from it.
        run.input.outcomes.push(Outcome {
            request_id: "7777".into(),
            kind: "FAILED".into(),
            reason: Some("UNKNOWN_SALE".into()),
            sale_id: "gone".into(),
            epoch: 1,
            number: Some(1),
            ..Outcome::default()
        });
        run.publishes("7777", "FAILED");
    });
    broken("C3-torn", "there is no order", |run| {
        // Its order is there under another id that a client asked for as well.
        run.bought("many", "b9", 1);
        run.input.orders.last_mut().unwrap().request_id = "8888".into();
        run.answered(("buy", "accepted"), ("b9", "many", 1), Some("8888"));
    });
    broken("C3-torn", "says failed_final, but", |run| {
        let row = Failed { request_id: "9001".into(), user_id: "b3".into(), ..run.input.failed[0].clone() };
        run.input.failed.push(row);
    });
    broken("C3-torn", "two outcomes", |run| {
        let twin = Outcome { sale_id: "gone".into(), number: Some(1), ..run.input.outcomes[0].clone() };
        run.input.outcomes.insert(0, twin);
    });
    broken("C3-torn", "without an outcome", |run| {
        let rid = run.bought("many", "b9", 1);
        let order = run.input.orders.pop().unwrap();
        run.input.orders.retain(|other| other.request_id != rid);
        run.vanishes(&rid);
        run.sale_of("many").stock -= 1;
        run.input.flow.push(Flow { sale_id: "many".into(), delta: -1, kind: "order".into() });
        run.input.orders.push(order);
    });
}

#[test]
fn c4_no_client_asked_for_it() {
    broken("C4", "no client asked for it", |run| {
        let rid = run.bought("many", "b9", 1);
        run.input.attempts.retain(|attempt| attempt.rid.as_ref() != Some(&rid));
    });
    broken("C4", "no client used it", |run| {
        run.bought("many", "b9", 1);
        run.input.attempts.pop();
    });
    broken("C4", "something else was asked for", |run| {
        run.bought("many", "b9", 2);
        run.input.attempts.last_mut().unwrap().quantity = 1;
    });
    broken("C4", "failure", |run| {
        let rid = run.accepted("many", "b9", 2);
        run.fails(&rid, "GIVEN_UP");
        run.input.attempts.last_mut().unwrap().user = "B9".into();
    });
    // One lost answer excuses one unknown order, not two.
    broken("C4", "no client asked for it", |run| {
        let rid = run.bought("many", "b6", 3);
        run.input.attempts.retain(|attempt| attempt.rid.as_ref() != Some(&rid));
    });
}

impl SampleRun {
    /// The shop's backend reports a payment.
    pub fn reported(&mut self, payment: &str, rid: &str, result: &str) -> Attempt {
        let at_ms = self.next_ms();
        Attempt {
            seq: at_ms,
            user: "backend".into(),
            sale: "many".into(),
            rid: Some(rid.into()),
            kind: "pay".into(),
            payment: Some(payment.into()),
            result: result.into(),
            invoke_ms: at_ms,
            complete_ms: at_ms,
            ..Attempt::default()
        }
    }
}

fn payment(id: &str, rid: &str, state: &str) -> Payment {
    let (payment_id, request_id, state) = (id.to_owned(), rid.to_owned(), state.to_owned());
    Payment {
        payment_id,
        request_id,
        amount_cents: 100,
        reason: (state != "APPLIED").then(|| "EXPIRED".to_owned()),
        state,
    }
}

/// A payment has to go back, and downstream systems get it.
fn refund_published(run: &mut SampleRun, id: &str) {
    let rid = run.input.payments.iter().find(|payment| payment.payment_id == id).unwrap().request_id.clone();
    run.publishes(&rid, "REFUND_NEEDED");
    run.input.published.last_mut().unwrap().payment_id = Some(id.into());
}

#[test]
fn c11_paid_and_returned_units_that_came_back_twice_and_money_that_is_lost() {
    broken("C11", "0 payments are applied", |run| {
        run.input.orders[0].state = Some("PAID".into());
        let rid = run.input.orders[0].request_id.clone();
        run.publishes(&rid, "PAID");
    });
    broken("C11", "is no order", |run| {
        let reported = run.reported("p", "nobody", "paid");
        run.input.payments.push(payment("p", "nobody", "APPLIED"));
        run.input.attempts.push(reported);
    });
    // Paid, with its payment reported and on record: as it should be.
    let paid = |run: &mut SampleRun| {
        let rid = run.input.orders[0].request_id.clone();
        run.input.orders[0].state = Some("PAID".into());
        run.input.payments.push(payment("p", &rid, "APPLIED"));
        let reported = run.reported("p", &rid, "paid");
        run.input.attempts.push(reported);
        run.publishes(&rid, "PAID");
    };
    let mut run = SampleRun::correct();
    paid(&mut run);
    assert!(verdict(&run).is_green(), "{:#?}", verdict(&run).violations);
    broken("C11", "the backend got paid", |run| {
        paid(run);
        run.input.orders[0].state = None;
        run.input.payments[0].state = "REFUND_NEEDED".into();
        refund_published(run, "p");
    });
    broken("C11", "not on record", |run| {
        let reported = run.reported("lost", "1", "refund_needed");
        run.input.attempts.push(reported);
    });
    broken("C11", "never got an answer", |run| {
        let reported = run.reported("silent", "1", "unknown");
        run.input.attempts.push(reported);
    });
    broken("C11", "no backend reported it", |run| {
        run.input.payments.push(payment("forged", "1", "REFUNDED"));
        refund_published(run, "forged");
    });
    broken("C11", "the backend got", |run| {
        paid(run);
        let again = run.reported("p", "1", "refund_needed");
        run.input.attempts.push(again);
    });
    // The units are in the stock and in its journal, and no order ended.
    broken("C11", "0 units of orders that ended, 1 came back", |run| {
        run.input.flow.push(Flow { sale_id: "many".into(), delta: 1, kind: "expire".into() });
        run.input.flow.push(Flow { sale_id: "many".into(), delta: -1, kind: "correction".into() });
    });
}
