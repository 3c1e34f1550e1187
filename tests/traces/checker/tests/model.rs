//! The model is shown good runs, and runs that are none of it; some of these no other rule finds.

use super::{Run, ask, consumed, order, plain, relayed, reserved, settled};
use serde_json::{Value, json};

impl Run {
    /// No other rule finds it.
    fn is_found_by_the_model_alone(&self, words: &str) {
        let verdict = self.judged();
        assert_eq!(verdict.rules(), ["T8"], "{:?}", verdict.findings);
        self.breaks("T8", words);
    }
}

/// Lines of a relay about the entry of request 1.
fn of_relay(relay: &'static str, points: &[(&str, Value)]) -> Vec<(&'static str, Value)> {
    let of = |(point, more): &(&str, Value)| {
        let mut line = order(point, 1, more.clone());
        line["entry"] = json!("1-0");
        (relay, line)
    };
    points.iter().map(of).collect()
}

/// A try that the broker does not answer, and its number.
fn failed(relay: &'static str, attempts: u32) -> Vec<(&'static str, Value)> {
    of_relay(
        relay,
        &[
            ("publish", json!({})),
            ("answer", json!({ "verdict": "FAILED" })),
            ("counted", json!({ "attempts": attempts })),
        ],
    )
}

/// Accepted, and read by a relay.
fn begun() -> Run {
    let run = plain();
    Run(run.0[..run.place("publish")].to_vec())
}

#[test]
fn a_plain_run_is_a_run_of_the_model() {
    let verdict = plain().judged();
    assert_eq!((verdict.modelled, verdict.rules()), (1, Vec::<&str>::new()));
}

#[test]
fn an_order_of_a_request_that_was_not_accepted_is_no_run() {
    let run = plain();
    let not_asked = run.without(run.place("reserved"));
    not_asked.without(not_asked.place("ask")).breaks("T8", "request 1, 0 of");
}

#[test]
fn a_confirm_of_what_was_not_sent_is_no_run() {
    let run = plain();
    run.moved("answer", run.place("publish")).breaks("T8", "→ 4 relay#1 answer");
}

#[test]
fn two_orders_are_no_run() {
    plain().and(consumed("other", 1, ("ORDERED", "P4-C0"))).breaks("T8", "outcome 1");
    plain().and(consumed("other", 1, ("ALREADY", "P4-C1"))).is_explained();
}

#[test]
fn an_accepted_request_is_not_refused_for_lack_of_a_unit() {
    let mut refused = plain();
    for (_, line) in &mut refused.0 {
        match line["point"].as_str() {
            Some("decided") => (line["verdict"], line["outcome"]) = (json!("REFUSED"), json!("FAILED")),
            Some("handled") => line["state"] = json!("P4-C2"),
            Some("settled") => line["verdict"] = json!("FAILED"),
            _ => {}
        }
    }
    refused.is_found_by_the_model_alone("decided rid=1");
}

#[test]
fn each_failed_try_of_an_entry_is_counted_once_or_twice() {
    let run = begun().and(failed("relay", 1)).and(failed("relay", 2));
    run.and(relayed_again("relay")).is_explained();
    // A lost reply counts again.
    begun().and(failed("relay", 2)).and(relayed_again("relay")).is_explained();
    let back = begun().and(failed("relay", 2)).and(failed("relay", 1)).and(relayed_again("relay"));
    back.is_found_by_the_model_alone("counted rid=1");
}

fn relayed_again(relay: &'static str) -> Vec<(&'static str, Value)> {
    of_relay(relay, &[("publish", json!({})), ("answer", json!({ "verdict": "CONFIRMED" })), ("done", json!({}))])
}

#[test]
fn an_entry_is_parked_after_its_last_try_and_not_before() {
    let parks = || of_relay("relay", &[("park", json!({})), ("parked", json!({ "verdict": "MOVED" }))]);
    let tried = |times: u32| (1..=times).fold(begun(), |run, attempts| run.and(failed("relay", attempts)));
    tried(3).and(parks()).is_explained();
    tried(2).and(parks()).is_found_by_the_model_alone("park rid=1");
    let again = of_relay("relay", &[("park", json!({})), ("counted", json!({ "attempts": 4 }))]);
    tried(3).and(again).and(parks()).is_explained();
    // The relay died before it parked: the next one counts a try more.
    let parks = of_relay("other relay", &[("park", json!({})), ("parked", json!({ "verdict": "MOVED" }))]);
    let taken_over = tried(3).and(of_relay("other relay", &[("read", json!({}))])).and(failed("other relay", 4));
    taken_over.and(parks).is_explained();
}

#[test]
fn what_is_parked_is_decided_by_a_person_or_p5_and_not_twice() {
    let parks = of_relay("relay", &[("park", json!({})), ("parked", json!({ "verdict": "MOVED" }))]);
    let parked = (1..=3).fold(begun(), |run, attempts| run.and(failed("relay", attempts))).and(parks);
    let decided = |by: &str, verdict: &str, outcome: &str| {
        let answer = json!({ "by": by, "verdict": verdict, "outcome": outcome });
        [("p5", order("decide", 1, json!({ "by": by }))), ("p5", order("decided", 1, answer))]
    };
    let replayed = parked.clone().and(decided("replay", "ORDERED", "ORDER"));
    replayed.is_explained();
    replayed.and(decided("give_up", "REFUSED", "FAILED")).breaks("T8", "decided rid=1");
    parked.clone().and(decided("give_up", "REFUSED", "FAILED")).is_explained();
    parked.and(decided("compensation", "REFUSED", "FAILED")).is_found_by_the_model_alone("decided rid=1");
}

#[test]
fn a_consumer_that_lost_its_connection_goes_on() {
    let run = plain();
    let cut = Run(run.0[..run.place("decided")].to_vec()).and(consumed("other", 1, ("ORDERED", "P4-C0")));
    let late = json!({ "by": "relay", "verdict": "ALREADY", "outcome": "ORDER" });
    let handled = json!({ "tag": "1:1:0", "state": "P4-C1", "attempts": 1 });
    let goes_on = [("consumer", order("decided", 1, late)), ("consumer", order("handled", 1, handled))];
    cut.and(goes_on).is_explained();
}

/// A group waits for a locked row while its connection breaks again and again: each new one delivers its messages once more.
#[test]
fn one_message_may_be_in_several_hands_of_one_process() {
    let run = plain();
    let in_hand = |tag: &str| {
        let about = |point: &str, more: Value| ("consumer", order(point, 1, more));
        [about("delivered", json!({ "tag": tag, "attempts": 0 })), about("decide", json!({ "by": "relay" }))]
    };
    let first = run.place("decided");
    let held =
        ["2:1:0", "3:1:0", "4:1:0"].into_iter().fold(Run(run.0[..first].to_vec()), |run, tag| run.and(in_hand(tag)));
    let decided = held.and(run.0[first..].to_vec()).and(consumed("other", 1, ("ALREADY", "P4-C1")));
    let late = |tag: &str| {
        let verdict = json!({ "by": "relay", "verdict": "ALREADY", "outcome": "ORDER" });
        let handled = json!({ "tag": tag, "state": "P4-C1", "attempts": 1 });
        [("consumer", order("decided", 1, verdict)), ("consumer", order("handled", 1, handled))]
    };
    ["2:1:0", "3:1:0", "4:1:0"].into_iter().fold(decided, |run, tag| run.and(late(tag))).is_explained();
}

#[test]
fn a_commit_without_an_answer_is_found_by_the_delivery_that_waits_for_the_database() {
    let run = plain();
    let error = json!({ "by": "relay", "verdict": "ERROR", "reason": "connection closed" });
    let error = [("consumer", order("decided", 1, error))];
    let held = Run(run.0[..run.place("decided")].to_vec()).and(error.clone());
    let again = || Run(consumed("consumer", 1, ("ALREADY", "P4-C1"))[..2].to_vec()).0;
    for held in [held.clone(), held.and(again()).and(error)] {
        held.clone().and(consumed("consumer", 1, ("ALREADY", "P4-C1"))).is_explained();
        held.and(consumed("consumer", 1, ("ORDERED", "P4-C0"))).is_explained();
    }
}

#[test]
fn a_relay_that_slept_sends_what_another_one_has_sent() {
    let run = plain();
    let mut other = relayed(1);
    for (process, _) in &mut other {
        *process = "other relay";
    }
    // It took the entry over before the first one deleted it.
    let read = run.with(run.place("done"), "other relay", other[0].1.clone());
    read.and(other[1..].to_vec()).and(consumed("other", 1, ("ALREADY", "P4-C1"))).is_explained();
}

#[test]
fn a_call_that_was_not_answered_may_run_late_and_once() {
    let lost = [("api", ask(1)), ("api", json!({ "point": "unanswered", "rid": "1" }))];
    let run = plain();
    let before = |at: usize| Run(run.0[..at].to_vec());
    let after = run.0[run.place("reserved") + 1..].to_vec();
    before(run.place("ask")).and(lost.clone()).and(after.clone()).is_explained();
    // The second call finds what the first one has left, or nothing yet.
    for verdict in ["ACCEPTED", "REPLAYED"] {
        let asked_again =
            before(run.place("ask")).and(lost.clone()).and([("api", ask(1)), ("api", reserved(1, verdict))]);
        asked_again.and(after.clone()).is_explained();
    }
    let never = before(run.place("ask")).and([("api", ask(1)), ("api", reserved(1, "REPLAYED"))]);
    never.and(after).breaks("T8", "request 1, 1 of");
}

/// A change of the order of request 1: written, and committed.
fn changed(event: &str, about: (&str, &str), verdict: &str) -> [(&'static str, Value); 2] {
    let line = |point: &str| {
        let mut line = json!({ "point": point, "event": event, "rid": "1", "verdict": verdict });
        line[about.0] = json!(about.1);
        ("shop", line)
    };
    [line("order_written"), line("order_changed")]
}

#[test]
fn money_goes_back_for_the_reason_that_the_order_gives() {
    let paid = |name: &str, verdict: &str| changed("PaymentReceived", ("payment", name), verdict);
    let cancelled = || changed("CancelledByOperator", ("by", "ann"), "");
    plain().and(paid("a", "APPLIED")).and(paid("b", "ALREADY_PAID")).and(cancelled()).is_explained();
    plain().and(paid("a", "OTHER_AMOUNT")).and(paid("b", "APPLIED")).is_explained();
    plain().and(cancelled()).and(paid("a", "CANCELLED")).is_explained();
    plain().and(paid("a", "ALREADY_PAID")).is_found_by_the_model_alone("order_changed rid=1");
    plain().and(paid("a", "EXPIRED")).is_found_by_the_model_alone("order_changed rid=1");
    let twice = plain().and(paid("a", "APPLIED")).and(paid("b", "CANCELLED"));
    twice.is_found_by_the_model_alone("order_changed rid=1");
}

#[test]
fn a_change_that_was_written_may_have_been_committed() {
    let [written, _] = changed("PaymentReceived", ("payment", "a"), "APPLIED");
    let run = plain().and([written]);
    run.clone().and(changed("PaymentReceived", ("payment", "b"), "ALREADY_PAID")).is_explained();
    run.and(changed("PaymentReceived", ("payment", "b"), "APPLIED")).is_explained();
}

#[test]
fn a_run_that_is_wrong_throughout_is_judged_in_time() {
    let wrong = |rid: u64| [("api", ask(rid)), ("api", reserved(rid, "REPLAYED"))];
    let run = Run((1..=100).flat_map(wrong).collect());
    let verdict = run.judged();
    let of_model = verdict.findings.iter().filter(|found| found.rule == "T8").count();
    assert_eq!((of_model, verdict.modelled), (20, 0));
}

/// A delivery whose transaction the database does not answer, so that the message goes to another consumer under another tag.
fn delivered_in_vain(consumer: &'static str, tag: &str) -> Vec<(&'static str, Value)> {
    let answer = json!({ "by": "relay", "verdict": "ERROR", "reason": "the database is away" });
    vec![
        (consumer, order("delivered", 1, json!({ "tag": tag, "attempts": 0 }))),
        (consumer, order("decide", 1, json!({ "by": "relay" }))),
        (consumer, order("decided", 1, answer)),
    ]
}

const DELIVERIES: usize = 7;

/// Each delivery may be cut off at any time, in any of the model's hands: as many places as there are orders of them, unless the
/// hands have none.
#[test]
fn every_place_of_a_message_with_many_deliveries_is_searched_within_the_bound() {
    const CONSUMERS: [&str; 3] = ["consumer a", "consumer b", "consumer c"];
    let vain = (0..DELIVERIES).fold(begun().and(relayed_again("relay")), |run, at| {
        run.and(delivered_in_vain(CONSUMERS[at % 3], &format!("1:{at}:0")))
    });
    let landed = vain.and(consumed("consumer", 1, ("ORDERED", "P4-C0")));
    landed.clone().and([settled(1, "ORDER")]).is_explained();
    let twice = landed.and(consumed("other", 1, ("ORDERED", "P4-C0")));
    let findings = twice.judged().findings;
    let of_model = findings.iter().find(|found| found.rule == "T8").expect("two orders are no run");
    assert!(!of_model.detail.contains("too many places"), "{}", of_model.detail);
}
