//! What one process does with what it has in hand.

use super::*;

#[test]
fn what_a_process_does_out_of_order_is_found() {
    let run = plain();
    run.moved("done", run.place("answer")).breaks("T2", "before the broker confirmed it");
    run.moved("ack", run.place("decided")).breaks("T2", "acknowledged before it has an outcome");
    run.moved("answer", run.place("publish")).breaks("T2", "nothing was sent");
    run.moved("delivered", run.place("handled")).breaks("T2", "was not delivered");
    run.with(0, "api", reserved(1, "ACCEPTED")).breaks("T2", "an answer without a question");
}

#[test]
fn a_message_that_is_sent_back_is_counted_and_copied_first() {
    let handled = |state: &str| order("handled", 1, json!({ "tag": "1:1:0", "state": state, "attempts": 1 }));
    let error = order("decided", 1, json!({ "by": "relay", "verdict": "ERROR", "reason": "gone" }));
    let base = Run(plain().0[..plain().place("decided")].to_vec());
    let sent_back = base.and([
        ("consumer", error),
        ("consumer", handled("P4-C3")),
        ("consumer", json!({ "point": "copied", "tag": "1:1:0" })),
        ("consumer", json!({ "point": "ack", "tag": "1:1:0" })),
    ]);
    let mut again = consumed("other", 1, ("ORDERED", "P4-C0"));
    again[0].1["attempts"] = json!(1);
    sent_back.clone().and(again.clone()).is_explained();
    sent_back.without(sent_back.place("copied")).and(again.clone()).breaks("T2", "or a copy");
    let mut others = again;
    others[0].1["attempts"] = json!(2);
    sent_back.and(others).breaks("T3", "no consumer has counted");
}

/// An outage of the database keeps a delivery in hand. Meanwhile another writer of the process decides the same request, which the
/// broker has twice.
#[test]
fn a_delivery_that_is_held_may_be_decided_by_another_one_of_the_same_request() {
    let held = |point: &str| ("consumer", order(point, 1, json!({ "tag": "1:9:0", "attempts": 0, "state": "P4-C1" })));
    let failed = json!({ "by": "relay", "verdict": "ERROR", "reason": "gone" });
    let run = plain();
    let first = [held("delivered"), ("consumer", order("decide", 1, json!({ "by": "relay" })))];
    let first = Run([&run.0[..run.place("delivered")], &first, &[("consumer", order("decided", 1, failed))]].concat());
    let between = first.and(consumed("consumer", 1, ("ORDERED", "P4-C0")));
    let again = [held("delivered"), ("consumer", order("decide", 1, json!({ "by": "relay" })))];
    let already = order("decided", 1, json!({ "by": "relay", "verdict": "ALREADY", "outcome": "ORDER" }));
    let ack = ("consumer", json!({ "point": "ack", "tag": "1:9:0" }));
    let whole = between.and(again).and([("consumer", already), held("handled"), ack]);
    whole.is_explained();
    // What is acknowledged does not come again under its tag.
    whole.and([held("delivered")]).breaks("T2", "delivered again under one tag");
}

/// The order is written by the second of three tries, and its answer comes last.
#[test]
fn an_answer_may_be_that_of_any_try_that_is_under_way() {
    let delivered = |tag: &str| ("consumer", order("delivered", 1, json!({ "tag": tag, "attempts": 0 })));
    let decide = ("consumer", order("decide", 1, json!({ "by": "relay" })));
    let decided = |verdict: &str| {
        ("consumer", order("decided", 1, json!({ "by": "relay", "verdict": verdict, "outcome": "ORDER" })))
    };
    let base = Run(plain().0[..plain().place("delivered")].to_vec());
    let tried = base.and([delivered("1:1:0"), decide.clone(), delivered("1:2:0"), decide.clone(), settled(1, "ORDER")]);
    let found = tried.and([decided("ALREADY"), delivered("1:3:0"), decide, decided("ALREADY"), decided("ORDERED")]);
    found.is_explained();
    found.and([decided("ORDERED")]).breaks("T2", "a verdict without a question");
}

/// A node of the database rolled a batch back, and it is tried again: its orders change once.
#[test]
fn a_batch_that_was_rolled_back_is_written_again() {
    let line = |point: &str| json!({ "point": point, "event": "DeadlinePassed", "grant": "return-1" });
    let mut of_order = line("order_written");
    of_order["rid"] = json!("1");
    let written = || ("reconcile", of_order.clone());
    let run = plain().and([written(), written(), ("reconcile", line("order_changed"))]);
    run.is_explained();
    run.and([("reconcile", line("order_changed"))]).breaks("T3", "DeadlinePassed of an order that is EXPIRED");
}
