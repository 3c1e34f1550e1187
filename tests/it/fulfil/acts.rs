//! Acts on orders (M8): what changes an order is written together with its act, and what was asked for in vain is on record, too.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, run};
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::json;

const REFUSED_ACTS: &str =
    "CREATE TRIGGER refuse BEFORE INSERT ON operator_acts FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'";

#[test]
fn a_step_of_an_order_whose_act_cannot_be_written_is_not_taken() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("acts", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        let (unpaid, paid, needed) =
            (r#"{"status":"UNPAID"}"#, r#"{"status":"PAID"}"#, r#"{"payment":"REFUND_NEEDED"}"#);
        let payment = json!({ "payment_id": "p", "amount": 100, "currency": "CNY", "by": "Li Wei" });
        let back = json!({ "payment_id": "p", "by": "Li Wei" });
        let cancel = json!({ "reason": "r", "by": "Li Wei" });
        // What is asked for, how it shows, and what its act says of it.
        let steps = [
            ("paying", json!({ "by": "Li Wei" }), ("orders", "paying_at IS NOT NULL"), ("DEADLINE_MOVED", unpaid)),
            ("paid", payment, ("payments", "state = 'APPLIED'"), ("APPLIED", unpaid)),
            ("cancel", cancel, ("orders", "state = 'CANCELLED'"), ("CANCELLED", paid)),
            ("refunded", back, ("payments", "state = 'REFUNDED'"), ("REFUNDED", needed)),
        ];
        for (step, body, (table, done), (code, before)) in steps {
            let path = format!("/orders/{alice}/{step}");
            world.sql(REFUSED_ACTS).await;
            let refused = admin.post(&path, body.clone()).await;
            assert_eq!(refused.status, 503, "{step}: {refused:?}");
            assert_eq!(world.rows(table, done).await, 0, "{step}: never without its act");
            world.sql("DROP TRIGGER refuse").await;
            let act = format!(
                "action = 'order.{step}' AND target_id = '{alice}' AND sale_id = 'acts' AND actor_name = 'Li Wei' \
                 AND outcome = 'ok' AND code = '{code}' AND before_json = '{before}'"
            );
            for when in ["the first time", "a repeat"] {
                let answer = admin.post(&path, body.clone()).await;
                assert_eq!(answer.status, 200, "{step}, {when}: {answer:?}");
                assert_eq!(world.rows(table, done).await, 1, "{step}, {when}");
                assert_eq!(world.rows("operator_acts", &act).await, 1, "{step}, {when}: one act");
            }
        }
        world.finish().await;
    });
}

#[test]
fn what_was_asked_for_in_vain_is_on_record_with_the_reason() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("vain", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        admin.pay(alice, "p").await;
        admin.pay_amount(bob, "little", 99).await;
        admin.pay(bob, "p").await;
        for payment in ["p", "nowhere"] {
            let asked = json!({ "payment_id": payment });
            let refused = admin.post(&format!("/orders/{alice}/refunded"), asked).await;
            assert!([404, 409].contains(&refused.status), "{refused:?}");
        }
        for _ in 0..2 {
            admin.post(&format!("/orders/{bob}/cancel"), json!({ "reason": "r" })).await;
        }
        for (order, action, outcome, code) in [
            (alice, "order.paid", "ok", "APPLIED"),
            (bob, "order.paid", "failed", "OTHER_AMOUNT"),
            (bob, "order.paid", "failed", "PAYMENT_ID_TAKEN"),
            (alice, "order.refunded", "failed", "NOT_NEEDED"),
            (alice, "order.refunded", "failed", "NO_PAYMENT"),
            (bob, "order.cancel", "ok", "CANCELLED"),
            (bob, "order.cancel", "ok", "CANCELLED_BEFORE"),
        ] {
            let act = format!(
                "action = '{action}' AND target_id = '{order}' AND sale_id = 'vain' AND outcome = '{outcome}' AND code = '{code}'"
            );
            assert_eq!(world.rows("operator_acts", &act).await, 1, "{act}");
        }
        assert_eq!(world.rows("operator_acts", "TRUE").await, 7);
        world.finish().await;
    });
}
