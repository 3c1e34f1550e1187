//! Rules about what clients were told: C5, C6, C7.

use super::{Story, broken, verdict};

#[test]
fn c5_sold_out_was_not_true() {
    broken("C5", "never accepted", |story| story.heard(("buy", "sold_out"), ("b9", "many", 1), None));
    broken("C5", "never accepted", |story| story.heard(("token", "sold_out"), ("b9", "many", 1), None));
}

#[test]
fn c6_a_promise_was_taken_back() {
    for refusal in ["sold_out", "not_found", "limit", "duplicate"] {
        // In the sale that is sold out, so that only the promise is at stake.
        broken("C6", refusal, |story| {
            let winner = story.input.orders[0].request_id.clone();
            story.heard(("buy", refusal), ("b1", "one", 1), Some(&winner));
        });
    }
    // What overlaps has no order.
    let mut story = Story::correct();
    let winner = story.input.orders[0].request_id.clone();
    story.heard(("buy", "sold_out"), ("b1", "one", 1), Some(&winner));
    story.input.attempts.last_mut().unwrap().invoke_ms = 0;
    assert!(verdict(&story).is_green());
}

#[test]
fn c7_it_never_became_certain_or_the_database_says_otherwise() {
    broken("C7", "nobody ever learned it", |story| story.heard(("buy", "unknown"), ("b9", "many", 1), Some("9009")));
    broken("C7", "still QUEUED", |story| {
        let rid = story.bought("many", "b9", 1);
        story.input.attempts.last_mut().unwrap().result = "unknown".into();
        story.heard(("status", "queued"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "not found once only", |story| {
        story.heard(("buy", "unknown"), ("b9", "many", 1), Some("9009"));
        story.heard(("status", "not_found"), ("b9", "many", 1), Some("9009"));
    });
    broken("C7", "heard failed last", |story| {
        let rid = story.bought("many", "b9", 1);
        story.heard(("status", "failed"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "heard not_found last", |story| {
        let rid = story.bought("many", "b9", 1);
        story.input.attempts.last_mut().unwrap().result = "unknown".into();
        story.heard(("status", "not_found"), ("b9", "many", 1), Some(&rid));
        story.heard(("status", "not_found"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "but it is in the ledger", |story| {
        let rid = story.accepted("many", "b9", 1);
        story.lies_in("dlq", &rid);
        story.input.attempts.last_mut().unwrap().result = "unknown".into();
        story.heard(("status", "not_found"), ("b9", "many", 1), Some(&rid));
        story.heard(("status", "not_found"), ("b9", "many", 1), Some(&rid));
    });
    broken("C7", "the reason", |story| {
        let told = story.input.attempts.iter_mut().find(|attempt| attempt.reason.is_some()).unwrap();
        told.reason = Some("SOLD_OUT".into());
    });
}
