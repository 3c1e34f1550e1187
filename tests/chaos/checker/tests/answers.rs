//! Rules about the answers that clients got, C5, C6, C7, and about what the audit reported, C13.

use super::super::read::Reported;
use super::{SampleRun, broken, verdict};

#[test]
fn c5_sold_out_was_not_true() {
    broken("C5", "never accepted", |run| run.answered(("buy", "sold_out"), ("b9", "many", 1), None));
    broken("C5", "never accepted", |run| run.answered(("token", "sold_out"), ("b9", "many", 1), None));
}

#[test]
fn c6_a_promise_was_taken_back() {
    for refusal in ["sold_out", "not_found", "limit", "duplicate"] {
        // In the sale that is sold out, so that only the promise is at stake.
        broken("C6", refusal, |run| {
            let winner = run.input.orders[0].request_id.clone();
            run.answered(("buy", refusal), ("b1", "one", 1), Some(&winner));
        });
    }
    // What overlaps has no order.
    let mut run = SampleRun::correct();
    let winner = run.input.orders[0].request_id.clone();
    run.answered(("buy", "sold_out"), ("b1", "one", 1), Some(&winner));
    run.input.attempts.last_mut().unwrap().invoke_ms = 0;
    assert!(verdict(&run).is_green());
}

#[test]
fn c7_it_never_became_certain_or_the_database_says_otherwise() {
    broken("C7", "no client ever learned it", |run| run.answered(("buy", "unknown"), ("b9", "many", 1), Some("9009")));
    broken("C7", "still QUEUED", |run| {
        let rid = run.bought("many", "b9", 1);
        run.input.attempts.last_mut().unwrap().result = "unknown".into();
        run.answered(("status", "queued"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "not found once only", |run| {
        run.answered(("buy", "unknown"), ("b9", "many", 1), Some("9009"));
        run.answered(("status", "not_found"), ("b9", "many", 1), Some("9009"));
    });
    broken("C7", "got failed last", |run| {
        let rid = run.bought("many", "b9", 1);
        run.answered(("status", "failed"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "got not_found last", |run| {
        let rid = run.bought("many", "b9", 1);
        run.input.attempts.last_mut().unwrap().result = "unknown".into();
        run.answered(("status", "not_found"), ("b9", "many", 1), Some(&rid));
        run.answered(("status", "not_found"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "but it is in the ledger", |run| {
        let rid = run.accepted("many", "b9", 1);
        run.is_in("dlq", &rid);
        run.input.attempts.last_mut().unwrap().result = "unknown".into();
        run.answered(("status", "not_found"), ("b9", "many", 1), Some(&rid));
        run.answered(("status", "not_found"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "the reason", |run| {
        let attempt = run.input.attempts.iter_mut().find(|attempt| attempt.reason.is_some()).unwrap();
        attempt.reason = Some("SOLD_OUT".into());
    });
}

#[test]
fn c13_the_audit_cried_wolf() {
    let reported = |code: &str| Reported {
        sale_id: Some("many".into()),
        code: code.into(),
        detail: "database stock = sum of stock_flow: 5 against 7".into(),
    };
    broken("C13", "5 against 7", |run| run.input.findings.push(reported("UNBALANCED")));
    let mut run = SampleRun::correct();
    run.input.findings.push(reported("P5-RC1"));
    assert!(verdict(&run).is_green(), "a leak that was mended");
    run.input.findings.push(reported("UNBALANCED"));
    run.sale_of("many").granted += 1;
    assert_eq!(verdict(&run).rules(), ["C1"], "an audit that is right");
}
