//! The rule about what downstream systems got: C12.

use super::super::read::{Announced, Destroyed, Flow, Grant, Payment, Published, Units};
use super::{SampleRun, broken, verdict};

impl SampleRun {
    /// An unpaid order ends, and its units are on sale again.
    pub fn ends(&mut self, rid: &str, state: &str) {
        let order = self.input.orders.iter_mut().find(|order| order.request_id == rid).expect("an order");
        order.state = Some(state.into());
        let (sale, quantity) = (order.sale_id.clone(), order.quantity);
        self.sale_of(&sale).stock += quantity;
        let input = &mut self.input;
        input.flow.push(Flow { sale_id: sale.clone(), delta: quantity, kind: "expire".into() });
        let id = format!("return-{rid}");
        input.grants.push(Grant {
            sale_id: sale.clone(),
            grant_id: id.clone(),
            quantity,
            epoch: 1,
            ..Grant::default()
        });
        input.redis_grants.push(Units { sale: sale.clone(), shard: 0, id, units: quantity.to_string() });
        let stock = input.stock.iter_mut().find(|stock| stock.sale == sale).expect("a bucket");
        stock.value = (stock.value.parse::<i64>().expect("units") + quantity).to_string();
    }

    /// Downstream systems get what became of a request or an order.
    pub fn publishes(&mut self, rid: &str, status: &str) {
        self.input.published.push(Published { rid: rid.into(), status: status.into(), ..Published::default() });
    }
}

/// Forgets that something was published.
fn lost(run: &mut SampleRun, rid: &str, status: &str) {
    let before = run.input.published.len();
    run.input.published.retain(|published| published.rid != rid || published.status != status);
    assert!(run.input.published.len() < before, "{status} of {rid} was published");
}

/// An order that expired and was paid after that: its money has to go back. All of it is published, some of it twice.
fn published_life(run: &mut SampleRun) -> String {
    let rid = run.bought("many", "b9", 1);
    run.ends(&rid, "EXPIRED");
    run.input.orders.last_mut().unwrap().version = 3;
    let (payment_id, request_id) = ("p".to_owned(), rid.clone());
    let (state, reason) = ("REFUND_NEEDED".to_owned(), Some("EXPIRED".to_owned()));
    run.input.payments.push(Payment { payment_id, request_id, amount_cents: 100, state, reason });
    let attempt = run.reported("p", &rid, "refund_needed");
    run.input.attempts.push(attempt);
    for (status, version, payment_id) in
        [("EXPIRED", 2, None), ("REFUND_NEEDED", 3, Some("p".to_owned())), ("EXPIRED", 2, None)]
    {
        run.input.published.push(Published {
            rid: rid.clone(),
            status: status.into(),
            version: Some(version),
            payment_id,
        });
    }
    rid
}

#[test]
fn c12_something_was_never_published() {
    let mut run = SampleRun::correct();
    published_life(&mut run);
    assert!(verdict(&run).is_green(), "{:#?}", verdict(&run).violations);
    for (status, word) in [("CONFIRMED", "is CONFIRMED"), ("FAILED", "is FAILED")] {
        broken("C12", word, |run| {
            let published = run.input.published.iter().find(|published| published.status == status).unwrap().clone();
            lost(run, &published.rid, status);
        });
    }
    for (status, word) in [("EXPIRED", "is EXPIRED"), ("REFUND_NEEDED", "payment p is REFUND_NEEDED")] {
        broken("C12", word, |run| {
            let rid = published_life(run);
            lost(run, &rid, status);
        });
    }
    // Its state is published, and something happened to it before or after that was not.
    broken("C12", "versions [4] were never published", |run| {
        published_life(run);
        run.input.orders.last_mut().unwrap().version = 4;
    });
}

#[test]
fn c12_a_message_that_was_destroyed_excuses_its_outcome_and_nothing_else() {
    // Unix milliseconds of 2025-11-11 10:00:00.
    const DECIDED_MS: i64 = 1_762_855_200_000;
    let of = |began_ms: i64| {
        let mut run = SampleRun::correct();
        let published = run.input.published.iter().find(|published| published.status == "CONFIRMED").unwrap().clone();
        let outcome = run.input.outcomes.iter_mut().find(|outcome| outcome.request_id == published.rid).unwrap();
        outcome.created_at = Some("2025-11-11 10:00:00.000".into());
        run.input.destroyed = vec![Destroyed { began_ms, healed_ms: began_ms + 10 }];
        lost(&mut run, &published.rid, "CONFIRMED");
        verdict(&run)
    };
    // In the second case its consumer had lost its connection, wrote on, and died.
    for began_ms in [DECIDED_MS + 5_000, DECIDED_MS - 2_000] {
        let excused = of(began_ms);
        assert!(excused.is_green() && excused.figures.destroyed_events == 1, "{:#?}", excused.violations);
    }
    for began_ms in [DECIDED_MS - 20_000, DECIDED_MS + 40_000] {
        assert_eq!(of(began_ms).rules(), ["C12"], "{began_ms}");
    }
    // An event of an order's life is in the database until it is published.
    broken("C12", "is EXPIRED", |run| {
        run.input.destroyed = vec![Destroyed { began_ms: 0, healed_ms: i64::MAX }];
        let rid = run.bought("many", "b9", 1);
        run.ends(&rid, "EXPIRED");
    });
}

#[test]
fn c15_the_shop_got_no_webhook() {
    let mut run = SampleRun::correct();
    run.input.received = Some(run.input.published.clone());
    assert!(verdict(&run).is_green(), "{:#?}", verdict(&run).violations);
    broken("C15", "was never published", |run| {
        let mut received = run.input.published.clone();
        received.remove(0);
        run.input.received = Some(received);
    });
}

#[test]
fn c16_an_event_of_a_sale_is_missing_or_has_the_version_of_another() {
    let announced = |run: &mut SampleRun, events: &[(&str, u64)]| {
        let event = |(key, version): &(&str, u64)| Announced {
            key: (*key).to_owned(),
            sale_id: "many".to_owned(),
            version: *version,
        };
        run.input.announced = events.iter().map(event).collect();
    };
    let mut run = SampleRun::correct();
    // At least once, and in any order.
    announced(&mut run, &[("sale.sold_out", 2), ("sale.opened", 1), ("sale.sold_out", 2)]);
    assert!(verdict(&run).is_green(), "{:#?}", verdict(&run).violations);
    broken("C16", "event 2 of sale many", |run| announced(run, &[("sale.opened", 1), ("sale.back", 3)]));
    broken("C16", "version 1 of sale many", |run| announced(run, &[("sale.opened", 1), ("sale.paused", 1)]));
}
