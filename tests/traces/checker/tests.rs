//! The checker is shown good runs, and the same with one thing wrong.

mod hands;
mod model;

use super::line::{Traced, Words};
use super::{Losses, TraceVerdict, Tries, judge};
use serde_json::{Value, json};

const TRIES: Tries = Tries { entry: 3, message: 3 };

/// Lines in the order in which they were written, each with its process.
#[derive(Clone)]
struct Run(Vec<(&'static str, Value)>);

impl Run {
    fn judged(&self) -> TraceVerdict {
        self.judged_with(Losses::default())
    }

    /// As the checker reads it: numbered by process and by run.
    fn judged_with(&self, losses: Losses) -> TraceVerdict {
        let mut texts: Vec<(&str, u64, String)> = Vec::new();
        for (at, (process, line)) in self.0.iter().enumerate() {
            if !texts.iter().any(|(name, ..)| name == process) {
                texts.push((process, 0, String::new()));
            }
            let (_, n, text) = texts.iter_mut().find(|(name, ..)| name == process).expect("put there above");
            let mut line = line.clone();
            line["n"] = json!(*n);
            line["at"] = json!(at);
            *n += 1;
            text.push_str(&format!("{line}\n"));
        }
        let mut words = Words::default();
        let read =
            |(name, _, text): (&str, u64, String)| Traced::read(name, &text, u64::MAX, &mut words).expect("lines");
        judge(texts.into_iter().map(read).collect(), losses, Some(TRIES))
    }

    fn place(&self, point: &str) -> usize {
        self.0.iter().position(|(_, line)| line["point"] == point).unwrap_or_else(|| panic!("no {point}"))
    }

    fn without(&self, at: usize) -> Self {
        let mut run = self.clone();
        run.0.remove(at);
        run
    }

    fn with(&self, at: usize, process: &'static str, line: Value) -> Self {
        let mut run = self.clone();
        run.0.insert(at, (process, line));
        run
    }

    /// With the first line of a point put elsewhere.
    fn moved(&self, point: &str, to: usize) -> Self {
        let at = self.place(point);
        let (process, line) = self.0[at].clone();
        self.without(at).with(to, process, line)
    }

    fn and(mut self, others: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        self.0.extend(others);
        self
    }

    /// Nothing is wrong with it.
    fn is_explained(&self) {
        let verdict = self.judged();
        assert!(verdict.is_green(), "{}", verdict.complaints().join("\n"));
    }

    /// This rule finds it.
    fn breaks(&self, rule: &str, words: &str) {
        let verdict = self.judged();
        let found = verdict.findings.iter().any(|found| found.rule == rule && found.detail.contains(words));
        assert!(found, "not found: {rule} {words}; {:?}", verdict.findings);
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the fields are made for it")]
fn order(point: &str, rid: u64, more: Value) -> Value {
    let mut line = json!({
        "point": point, "rid": rid.to_string(), "sale": "s", "user": "u", "qty": 1, "shard": 0, "epoch": 1, "no": rid,
    });
    for (name, value) in more.as_object().expect("fields") {
        line[name] = value.clone();
    }
    line
}

fn ask(rid: u64) -> Value {
    json!({ "point": "ask", "rid": rid.to_string(), "sale": "s", "user": "u", "qty": 1, "shard": 0, "epoch": 1 })
}

fn reserved(rid: u64, verdict: &str) -> Value {
    json!({ "point": "reserved", "rid": rid.to_string(), "verdict": verdict, "replicated": true })
}

/// From the outbox to the broker.
fn relayed(rid: u64) -> [(&'static str, Value); 4] {
    let entry = format!("{rid}-0");
    [
        ("relay", order("read", rid, json!({ "entry": entry }))),
        ("relay", order("publish", rid, json!({ "entry": entry }))),
        ("relay", order("answer", rid, json!({ "entry": entry, "verdict": "CONFIRMED" }))),
        ("relay", order("done", rid, json!({ "entry": entry }))),
    ]
}

/// Delivered to this consumer and decided.
fn consumed(consumer: &'static str, rid: u64, (verdict, state): (&str, &str)) -> [(&'static str, Value); 5] {
    let tag = format!("1:{rid}:0");
    [
        (consumer, order("delivered", rid, json!({ "tag": tag, "attempts": 0 }))),
        (consumer, order("decide", rid, json!({ "by": "relay" }))),
        (consumer, order("decided", rid, json!({ "by": "relay", "verdict": verdict, "outcome": "ORDER" }))),
        (consumer, order("handled", rid, json!({ "tag": tag, "state": state, "attempts": 1 }))),
        (consumer, json!({ "point": "ack", "tag": tag })),
    ]
}

fn settled(rid: u64, verdict: &str) -> (&'static str, Value) {
    ("consumer", json!({ "point": "settled", "rid": rid.to_string(), "sale": "s", "verdict": verdict }))
}

/// One request as nearly all of them go.
fn plain() -> Run {
    let grant =
        json!({ "point": "granted", "sale": "s", "shard": 0, "epoch": 1, "grant": "g", "units": 1, "verdict": 1 });
    let accepted = [("command", grant), ("api", ask(1)), ("api", reserved(1, "ACCEPTED"))];
    let run = Run(accepted.to_vec()).and(relayed(1)).and(consumed("consumer", 1, ("ORDERED", "P4-C0")));
    run.and([settled(1, "ORDER")])
}

#[test]
fn a_plain_run_is_explained_and_its_cells_are_seen() {
    plain().is_explained();
    let verdict = plain().judged();
    assert_eq!((verdict.lines, verdict.requests, verdict.processes), (13, 1, 4));
    let table = verdict.cells.table();
    for cell in ["| P3-N0 Read | 1 |", "| P3-N1 Confirmed | 1 |", "| P3-N2 OrderCommitted | 1 |"] {
        assert!(table.contains(cell), "{table}");
    }
    assert!(verdict.cells.unseen().contains(&"P5-RC1 OrderCommitted".to_owned()));
}

#[test]
fn a_removed_line_is_found_where_no_silence_explains_it() {
    // A confirm that came, a deletion, an ack and a mark may be the last thing that a process did not live to write.
    let silent = ["done", "ack", "settled", "granted"];
    let run = plain();
    for (at, (_, line)) in run.0.iter().enumerate() {
        let point = line["point"].as_str().expect("a point");
        let verdict = run.without(at).judged();
        let expected = silent.contains(&point) && point != "granted" || point == "reserved";
        assert_eq!(verdict.is_green(), expected, "without {point}: {:?}", verdict.findings);
    }
}

#[test]
fn a_gap_in_the_numbers_of_a_process_is_found() {
    let mut words = Words::default();
    let text = "{\"n\":0,\"at\":1,\"point\":\"process\"}\n{\"n\":2,\"at\":3,\"point\":\"process\"}\n{\"n\":3,\"at";
    let verdict = judge(vec![Traced::read("api", text, u64::MAX, &mut words).expect("lines")], Losses::default(), None);
    assert_eq!((verdict.rules(), verdict.lines), (vec!["T1"], 2), "{:?}", verdict.findings);
}

#[test]
fn two_outcomes_of_a_request_are_found() {
    let again = consumed("other", 1, ("ORDERED", "P4-C0"));
    plain().and(again).breaks("T3", "decided twice");
    let refused = consumed("other", 1, ("REFUSED", "P4-C2"));
    plain().and(refused).breaks("T3", "decided twice");
    plain().and(consumed("other", 1, ("ALREADY", "P4-C1"))).is_explained();
    plain().and([settled(1, "FAILED")]).breaks("T3", "settled with another outcome");
}

#[test]
fn a_number_or_a_unit_too_many_is_found() {
    let second = [("api", ask(2)), ("api", reserved(2, "ACCEPTED"))];
    let run = plain().and(second).and(relayed(2));
    run.breaks("T7", "2 units accepted, 1 were given");
    let mut same = run;
    for (_, line) in same.0.iter_mut().filter(|(_, line)| line["rid"] == "2" && line["no"] == 2) {
        line["no"] = json!(1);
    }
    same.breaks("T4", "the number 1 was given to 1 and to 2");
    plain().and([("api", ask(1)), ("api", reserved(1, "SHORT"))]).breaks("T3", "refused, and it was accepted before");
    plain().and([("api", ask(1)), ("api", reserved(1, "ACCEPTED"))]).breaks("T3", "accepted twice");
    plain().and([("api", ask(1)), ("api", reserved(1, "REPLAYED"))]).is_explained();
}

#[test]
fn an_order_of_an_epoch_that_is_over_is_found() {
    let fixed = json!({ "point": "rebuild_fixed", "sale": "s", "epoch": 2, "units": 1 });
    let run = plain();
    run.with(run.place("decide"), "reconcile", fixed.clone()).breaks("T6", "the units of epoch 2 were fixed before");
    // Between the question and its answer both orders are possible.
    run.with(run.place("decided"), "reconcile", fixed).is_explained();
}

#[test]
fn what_was_not_answered_may_have_happened_and_nothing_else() {
    let run = plain();
    run.without(run.place("reserved")).is_explained();
    run.with(run.place("reserved"), "api", json!({ "point": "unanswered", "rid": "1" }))
        .without(run.place("reserved") + 1)
        .is_explained();
    let never_asked = run.without(run.place("reserved"));
    never_asked.without(never_asked.place("ask")).breaks("T3", "it was not accepted");
    // A consumer that died in its commit: the next one finds the order.
    let dead = Run(run.0[..run.place("decided")].to_vec());
    dead.clone().and(consumed("other", 1, ("ALREADY", "P4-C1"))).is_explained();
    dead.and(consumed("other", 1, ("ORDERED", "P4-C0"))).is_explained();
    let not_sent = Run(run.0[..run.place("delivered")].to_vec());
    not_sent.and(consumed("other", 1, ("ALREADY", "P4-C1"))).breaks("T3", "found decided, and it was not");
}

#[test]
fn lines_may_be_written_in_any_order_that_their_steps_can_have() {
    let run = plain();
    // The api writes its reply late: a relay has the entry by then.
    run.moved("reserved", run.place("done")).is_explained();
    // A call that began after the order was found cannot have accepted it.
    let late = run.without(run.place("reserved"));
    late.moved("ask", late.0.len() - 1).breaks("T3", "it was not accepted");
}

#[test]
fn an_audit_that_finds_a_decided_request_missing_is_found() {
    let begun = json!({ "point": "audit_begun", "sale": "s" });
    let missing = order("missing", 1, json!({}));
    let run = plain();
    let after = run.clone().and([("reconcile", begun.clone()), ("reconcile", missing.clone())]);
    after.breaks("T3", "found undecided, and it has an outcome");
    // It read before the commit, and wrote later.
    run.with(run.place("decide"), "reconcile", begun).and([("reconcile", missing)]).is_explained();
}

#[test]
fn an_order_is_paid_or_ends_and_not_both() {
    let change = |point: &str, event: &str, name: (&str, &str)| {
        let mut line = json!({ "point": point, "event": event, "rid": "1", "verdict": "APPLIED" });
        line[name.0] = json!(name.1);
        line
    };
    let both =
        |event, name| [("api", change("order_written", event, name)), ("api", change("order_changed", event, name))];
    let paid = plain().and(both("PaymentReceived", ("payment", "p")));
    paid.is_explained();
    let expired = both("DeadlinePassed", ("grant", "return-1"));
    paid.clone().and(expired.clone()).breaks("T3", "DeadlinePassed of an order that is PAID");
    paid.and([expired[1].clone()]).breaks("T2", "it was not written");
    assert!(plain().and(expired).judged().cells.table().contains("| P6-F0 DeadlinePassed | 1 |"));
}

#[test]
fn a_server_that_may_forget_accepts_again() {
    let again = [("api", ask(1)), ("api", reserved(1, "ACCEPTED"))];
    let run = plain().and(again);
    assert!(run.judged_with(Losses { accepts: true, commits: false }).is_green());
    assert!(!run.judged().is_green());
    let decided = plain().and(consumed("other", 1, ("ORDERED", "P4-C0")));
    assert!(decided.judged_with(Losses { accepts: false, commits: true }).is_green());
}

#[test]
fn each_cell_has_lines_or_a_reason_or_is_open() {
    let all = super::cells::all();
    let with_reason = all.iter().filter(|(_, never)| never.is_some()).count();
    assert!(with_reason < all.len() / 2, "{with_reason} of {} cells cannot be used", all.len());
    let verdict = plain().judged();
    assert!(verdict.cells.surprises().is_empty());
    assert_eq!(verdict.cells.seen() + verdict.cells.unseen().len() + with_reason, all.len());
    // A refusal is none of a chaos run.
    let refused = Run(plain().0[..plain().place("decide")].to_vec()).and([
        ("consumer", order("decide", 1, json!({ "by": "relay" }))),
        ("consumer", order("decided", 1, json!({ "by": "relay", "verdict": "REFUSED", "outcome": "FAILED" }))),
    ]);
    let mut cells = refused.judged().cells;
    assert_eq!(cells.surprises().len(), 1, "{:?}", cells.surprises());
    let seen = cells.seen();
    cells.merge(&verdict.cells);
    assert_eq!(cells.seen(), seen + 1, "the order's");
}
