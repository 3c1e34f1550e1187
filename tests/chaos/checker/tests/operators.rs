//! C14, and what an audit by hand reported, C13.

use super::super::read::{Act, Flow, Grant, Payment, Units};
use super::sample_run::SampleRun;
use super::{broken, verdict};

/// Operators have added units, cancelled an order, and paused a sale for a while; nothing is wrong.
fn managed() -> SampleRun {
    let mut run = SampleRun::correct();
    manage(&mut run);
    run
}

fn act(run: &mut SampleRun, act: &str, (sale, about, units): (&str, Option<&str>, Option<i64>)) {
    let (invoke_ms, complete_ms) = (run.next_ms(), run.next_ms());
    let (about, result) = (about.map(Into::into), "done".into());
    let (act, sale) = (act.into(), sale.into());
    run.input.acts.push(Act { act, sale, about, units, invoke_ms, complete_ms, result, findings: vec![], taken: None });
}

fn manage(run: &mut SampleRun) {
    act(run, "top_up", ("many", Some("more-1"), Some(2)));
    run.sale_of("many").granted += 2;
    run.sale_of("many").stock += 2;
    let quantity = 2;
    let grant = Grant {
        sale_id: "many".into(),
        grant_id: "more-1".into(),
        kind: "grant".into(),
        quantity,
        epoch: 1,
        applied_at: None,
    };
    run.input.grants.push(grant);
    run.input.flow.push(Flow { sale_id: "many".into(), delta: 2, kind: "grant".into() });
    act(run, "pause", ("many", None, None));
    act(run, "resume", ("many", None, None));
}

fn wrong(detail: &str, damage: impl FnOnce(&mut SampleRun)) {
    broken("C14", detail, |run| {
        manage(run);
        damage(run);
    });
}

#[test]
fn operators_whose_acts_are_on_record_break_nothing() {
    assert_eq!(verdict(&managed()).violations, []);
}

#[test]
fn c14_units_that_were_added_twice_not_at_all_or_unasked() {
    wrong("on record is [3]", |run| {
        let act = run.input.acts.iter_mut().find(|act| act.act == "top_up").unwrap();
        act.units = Some(2);
        run.input.grants.iter_mut().find(|grant| grant.grant_id == "more-1").unwrap().quantity = 3;
    });
    wrong("no operator asked for it", |run| run.input.acts.retain(|act| act.act != "top_up"));
    wrong("on record is []", |run| act(run, "top_up", ("many", Some("more-2"), Some(1))));
}

#[test]
fn c14_units_that_left_twice_not_at_all_or_unasked() {
    let withdraws = |run: &mut SampleRun| {
        act(run, "withdraw", ("many", Some("off-1"), Some(3)));
        run.input.acts.last_mut().unwrap().taken = Some(2);
        (run.sale_of("many").granted, run.sale_of("many").stock) =
            (run.sale_of("many").granted - 2, run.sale_of("many").stock - 2);
        let (sale_id, grant_id, kind) = ("many".to_owned(), "withdraw-off-1".to_owned(), "grant".to_owned());
        let applied_at = Some("t".to_owned());
        run.input.flow.push(Flow { sale_id: sale_id.clone(), delta: -2, kind: kind.clone() });
        let units = "-2".to_owned();
        run.input.redis_grants.push(Units { sale: sale_id.clone(), shard: 0, id: grant_id.clone(), units });
        let bucket = run.input.stock.iter_mut().find(|stock| stock.sale == sale_id).unwrap();
        bucket.value = (bucket.value.parse::<i64>().unwrap() - 2).to_string();
        run.input.grants.push(Grant { sale_id, grant_id, kind, quantity: -2, epoch: 1, applied_at });
    };
    let mut right = SampleRun::correct();
    withdraws(&mut right);
    assert_eq!(verdict(&right).violations, []);
    wrong("an operator withdrew 1 of 3 as withdraw-off-1, on record is 2", |run| {
        withdraws(run);
        run.input.acts.iter_mut().find(|act| act.act == "withdraw").unwrap().taken = Some(1);
    });
    wrong("withdrawal withdraw-off-1 is on record, and no operator asked for it", |run| {
        withdraws(run);
        run.input.acts.retain(|act| act.act != "withdraw");
    });
    wrong("an operator withdrew 4 of 3", |run| {
        withdraws(run);
        run.input.acts.iter_mut().find(|act| act.act == "withdraw").unwrap().taken = Some(4);
    });
}

#[test]
fn c14_a_cancelled_order_that_is_not() {
    wrong("its state is none", |run| {
        let rid = run.input.orders[0].request_id.clone();
        act(run, "cancel", ("one", Some(&rid), None));
    });
}

#[test]
fn c14_a_paused_sale_that_sells() {
    let sells = |run: &mut SampleRun| {
        act(run, "pause", ("many", None, None));
        run.bought("many", "b9", 1);
        act(run, "resume", ("many", None, None));
    };
    wrong("was accepted while sale many was paused", sells);
    // A resumption whose answer was lost may be carried out at any time.
    let mut run = managed();
    run.input.acts.last_mut().unwrap().result = "unknown".into();
    sells(&mut run);
    assert_eq!(verdict(&run).violations, []);
}

#[test]
fn c13_an_audit_by_hand_reported_what_is_not_so() {
    broken("C13", "by hand", |run| {
        manage(run);
        act(run, "audit", ("many", None, None));
        run.input.acts.last_mut().unwrap().findings = vec!["LEAK".into(), "ORPHAN".into()];
    });
}

#[test]
fn c11_money_of_a_paid_order_that_an_operator_cancelled_goes_back() {
    let got_paid = |by_hand: bool, state: &str| {
        let mut run = managed();
        let rid = run.input.orders[0].request_id.clone();
        run.input.orders[0].state = Some(state.into());
        let (payment_id, reason) = ("p".into(), Some("CANCELLED".into()));
        run.input.payments.push(Payment {
            payment_id,
            request_id: rid.clone(),
            amount_cents: 100,
            state: "REFUND_NEEDED".into(),
            reason,
        });
        let reported = run.reported("p", &rid, "paid");
        run.input.attempts.push(reported);
        if by_hand {
            act(&mut run, "cancel", ("one", Some(&rid), None));
        }
        verdict(&run).violations.iter().any(|found| found.detail.contains("the backend got paid"))
    };
    assert!(!got_paid(true, "CANCELLED"));
    assert!(got_paid(false, "CANCELLED"), "no operator did that");
    assert!(got_paid(true, "EXPIRED"));
}
