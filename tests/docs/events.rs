//! `docs/asyncapi.yaml` refuses messages that are not what it says, each kind for itself: else it would hold nothing. That real
//! messages are as it says, `tests/it` shows wherever a test listens to them.

use crate::asyncapi::{problems_of_call, problems_of_message};
use serde_json::{Value, json};

/// A good event of each kind, by its routing key.
fn events() -> [(&'static str, Value); 16] {
    let of = |status: &str, more: Value| {
        let mut event = json!({"v": 1, "rid": "12", "sale": "s", "user": "u", "qty": 1, "status": status});
        let fields = more.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(fields);
        event
    };
    let state = json!({"amount": 0, "currency": "CNY", "version": 2, "at": 1_700_000_000_000_i64});
    let refund = json!({
        "reason": "EXPIRED", "payment_id": "p", "amount": 5, "currency": "EUR", "version": 0, "at": 1, "sale": null,
        "user": null, "qty": null,
    });
    let sale = |event: &str, state: &str, more: Value| {
        let mut event = json!({"v": 1, "event": event, "sale_id": "s", "state": state, "version": 1, "at": 1});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let entry = |event: &str, more: Value| {
        let mut event =
            json!({"v": 1, "event": event, "sale_id": "s", "entry_id": "7", "user": "u", "qty": 1, "at": 1});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let (digest, seed) = ("0".repeat(64), "f".repeat(64));
    let drawn =
        json!({"v": 1, "event": "line.drawn", "sale_id": "s", "entries": 3, "digest": digest, "seed": seed, "at": 1});
    [
        ("line.drawn", drawn),
        ("line.offered", entry("line.offered", json!({"rid": "12", "rank": 1}))),
        ("line.lapsed", entry("line.lapsed", json!({"reason": "EXPIRED"}))),
        ("sale.opened", sale("sale.opened", "OPEN", json!({"remaining": 5}))),
        ("sale.paused", sale("sale.paused", "PAUSED", json!({}))),
        ("sale.resumed", sale("sale.resumed", "OPEN", json!({"remaining": 5}))),
        ("sale.sold_out", sale("sale.sold_out", "SOLD_OUT", json!({"remaining": 0}))),
        ("sale.back", sale("sale.back", "OPEN", json!({"remaining": 5}))),
        ("sale.ended", sale("sale.ended", "ENDED", json!({}))),
        ("sale.closed", sale("sale.closed", "CLOSED", json!({}))),
        ("order.confirmed", of("CONFIRMED", json!({"amount": 100, "currency": "CNY", "version": 1}))),
        ("order.failed", of("FAILED", json!({"reason": "SOLD_OUT"}))),
        ("order.paid", of("PAID", state.clone())),
        ("order.expired", of("EXPIRED", state.clone())),
        ("order.cancelled", of("CANCELLED", state)),
        ("order.refund_needed", of("REFUND_NEEDED", refund)),
    ]
}

fn problems(key: &str, event: &Value) -> Vec<String> {
    problems_of_message(key, &json!({"v": 1, "events": [event]}))
}

#[test]
fn a_good_event_of_each_kind_is_as_documented_alone_and_in_a_webhooks_call() {
    for (key, event) in events() {
        assert_eq!(problems(key, &event), Vec::<String>::new(), "{key}");
        let call = json!({"type": key, "timestamp": "2025-11-11T10:00:00.000Z", "data": event});
        assert_eq!(problems_of_call(&call), Vec::<String>::new(), "{key}");
    }
}

#[test]
fn an_event_that_lacks_a_field_or_has_another_type_is_refused() {
    for (key, event) in events() {
        for (field, value) in event.as_object().unwrap() {
            let mut without = event.clone();
            without.as_object_mut().unwrap().remove(field);
            assert!(!problems(key, &without).is_empty(), "{key} without {field}");
            let others = [json!([]), json!(-1), json!(""), if value.is_null() { json!(0) } else { json!(null) }];
            for other in others {
                let mut wrong = event.clone();
                wrong[field] = other.clone();
                assert!(!problems(key, &wrong).is_empty(), "{key} with {field} {other}");
            }
        }
        let mut more = event.clone();
        if key.starts_with("sale.") {
            more["drop_id"] = json!("d");
            assert_eq!(problems(key, &more), Vec::<String>::new(), "{key} of a drop");
        }
        more["colour"] = json!("red");
        assert!(problems(key, &more)[0].contains("colour is not documented"), "{key}");
        for (other, _) in events().iter().filter(|(other, _)| *other != key) {
            assert!(!problems(other, &event).is_empty(), "{key} under {other}");
        }
    }
}

#[test]
fn an_envelope_that_is_another_one_is_refused() {
    let [(key, event), ..] = events();
    for message in [
        json!({"v": 2, "events": [event]}),
        json!({"events": [event]}),
        json!({"v": 1}),
        json!({"v": 1, "events": []}),
        json!({"v": 1, "events": vec![event.clone(); 101]}),
        json!({"v": 1, "events": event}),
        json!([event]),
    ] {
        assert!(!problems_of_message(key, &message).is_empty(), "{message}");
    }
    let good = json!({"type": key, "timestamp": "2025-11-11T10:00:00.000Z", "data": event});
    for (field, value) in [("type", json!("order.lost")), ("timestamp", json!("yesterday")), ("data", json!("{}"))] {
        let mut wrong = good.clone();
        wrong[field] = value;
        assert!(!problems_of_call(&wrong).is_empty(), "{wrong}");
        wrong.as_object_mut().unwrap().remove(field);
        assert!(!problems_of_call(&wrong).is_empty(), "{wrong}");
    }
    let mistaken = json!({"type": "order.paid", "timestamp": "2025-11-11T10:00:00.000Z", "data": event});
    assert!(!problems_of_call(&mistaken).is_empty(), "its type is not that of its event");
}
