//! Rules about Redis' sums, marks and numbers (C8), and two outcomes at once (C10).

use super::super::read::{DropPurchase, Flow, Grant, Order, Units};
use super::{SampleRun, broken, verdict};

impl SampleRun {
    /// Redis lost a sale, and it was rebuilt with the units that are left.
    pub fn rebuild(&mut self, sale: &str, left: i64) {
        self.sale_of(sale).epoch = 2;
        let fields = &mut self.meta_of(sale).fields;
        fields.insert("epoch".into(), "2".into());
        fields.insert("number".into(), "0".into());
        self.input.stock.iter_mut().find(|stock| stock.sale == sale).expect("a bucket").value = left.to_string();
        let grants = &mut self.input.redis_grants;
        grants.iter_mut().find(|grant| grant.sale == sale).expect("a grant").units = "0".into();
        grants.push(Units { sale: sale.into(), shard: 0, id: "rebuild-2".into(), units: left.to_string() });
        self.input.grants.push(Grant {
            sale_id: sale.into(),
            grant_id: "rebuild-2".into(),
            kind: "rebuild".into(),
            quantity: left,
            epoch: 2,
            applied_at: Some("2025-11-11".into()),
        });
    }
}

#[test]
fn c8_redis_disagrees_with_the_outcomes() {
    broken("C8", "left redis", |run| run.input.stock[2].value = "999".into());
    broken("C8", "its ledger has", |run| {
        let rid = run.bought("many", "b9", 1);
        run.input.ledger.retain(|record| record.rid != rid);
    });
    broken("C8", "its ledger mark is Q", |run| {
        let rid = run.bought("many", "b9", 1);
        run.record_of(&rid).state = "Q".into();
    });
    broken("C8", "its ledger mark is F", |run| {
        let rid = run.bought("many", "b9", 1);
        run.record_of(&rid).state = "F".into();
    });
    broken("C8", "its ledger says SOLD_OUT", |run| {
        let rid = run.input.failed[0].request_id.clone();
        run.record_of(&rid).reason = "SOLD_OUT".into();
    });
    broken("C8", "accepted 1 for B9, ordered 1 for b9", |run| {
        let rid = run.bought("many", "b9", 1);
        run.record_of(&rid).user = "B9".into();
    });
    broken("C8", "unreadable ledger record", |run| {
        run.bought("many", "b9", 1);
        let record = run.input.ledger.last_mut().unwrap();
        record.unreadable = Some("Q x".into());
    });
    broken("C8", "numbers of 4 are missing: [4]", |run| {
        run.meta_of("many").fields.insert("number".into(), "4".into());
    });
    broken("C8", "belongs to both", |run| {
        run.bought("many", "b9", 1);
        run.input.outcomes.last_mut().unwrap().number = Some(1);
    });
    broken("C8", "no readable stock", |run| {
        run.input.stock.pop();
        run.input.redis_grants.retain(|grant| grant.sale != "many");
    });
}

#[test]
fn c8_redis_was_given_what_no_grant_of_the_database_has() {
    let given = |run: &mut SampleRun, id: &str, more: i64| {
        let stock = run.input.stock.iter_mut().find(|stock| stock.sale == "many").unwrap();
        stock.value = (stock.value.parse::<i64>().unwrap() + more).to_string();
        run.input.redis_grants.push(Units { sale: "many".into(), shard: 0, id: id.into(), units: more.to_string() });
    };
    broken("C8", "5 units of grant more, the database has no such grant", |run| given(run, "more", 5));
    broken("C8", "units of grant first, it has", |run| given(run, "first", 5));
    broken("C8", "0 units of grant late, it has 5", |run| {
        let applied_at = Some("2025-11-11".to_owned());
        let (sale_id, grant_id) = ("many".to_owned(), "late".to_owned());
        run.input.grants.push(Grant { sale_id, grant_id, quantity: 5, epoch: 1, applied_at, ..Grant::default() });
    });
}

#[test]
fn c8_what_was_trimmed_or_is_frozen_is_not_missed() {
    let mut run = SampleRun::correct();
    let rid = run.bought("many", "b9", 2);
    run.input.ledger.retain(|record| record.rid != rid);
    run.meta_of("many").fields.insert("trimmed_ordered".into(), "2".into());
    assert!(verdict(&run).is_green());
    let mut run = SampleRun::correct();
    run.input.stock[0].value = "999".into();
    run.meta_of("one").fields.insert("state".into(), "frozen".into());
    let verdict = verdict(&run);
    assert!(verdict.is_green() && verdict.figures.frozen_sales == 1, "{verdict:#?}");
}

#[test]
fn c10_both_order_and_failure() {
    broken("C10", "there is an order", |run| {
        let failed = run.input.failed[0].clone();
        let Order { source, .. } = run.input.orders[0].clone();
        run.input.orders.push(Order {
            request_id: failed.request_id,
            sale_id: failed.sale_id,
            user_id: failed.user_id,
            quantity: failed.quantity,
            source,
            ..Order::default()
        });
        run.sale_of("one").stock -= 1;
        run.input.flow.push(Flow { sale_id: "one".into(), delta: -1, kind: "order".into() });
        let (drop_id, user_id) = ("drop".into(), run.input.failed[0].user_id.clone());
        run.input.drop_purchases.push(DropPurchase { drop_id, user_id, quantity: 1 });
        // Counted as ordered and as failed: one more was accepted than granted, which is a case of C10.
    });
    broken("C10", "the register says failed_final", |run| {
        let mut row = run.input.failed[0].clone();
        let order = &run.input.orders[0];
        (row.request_id, row.user_id) = (order.request_id.clone(), order.user_id.clone());
        run.input.failed.push(row);
    });
    broken("C10", "got both", |run| {
        let rid = run.bought("many", "b9", 1);
        run.answered(("status", "failed"), ("b9", "many", 1), Some(&rid));
        run.answered(("status", "confirmed"), ("b9", "many", 1), Some(&rid));
    });
}
