//! The sweep dies at each of its crash points, and the next one does the rest: no unit comes back twice, none stays away.

use crate::support::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn a_sweep_that_dies_at_any_line_is_finished_by_the_next_one() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("dies", 10, Some(1), LONG).await;
        for (n, point) in ["F27", "F28", "F29"].into_iter().enumerate() {
            let user = format!("user{n}");
            let id = world.ordered(&sale, &user).await;
            world.overdue(id).await;
            world.process("reconcile", &format!("{point}=return"), &[]).dies_at(point).await;
            let expired = world.order_in("EXPIRED", id).await;
            assert_eq!(expired, point == "F29", "{point}");
            let open = world.rows("stock_grants", "applied_at IS NULL").await;
            assert_eq!(open, i64::from(point == "F29"), "{point}: its grant is open");
            let next = world.extra_roles(&[Reconcile], |_| {});
            eventually("expired", async || world.order_in("EXPIRED", id).await).await;
            eventually("given", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
            next.stop().await;
            assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(10), "{point}");
        }
        assert_eq!(world.rows("stock_flow", "kind = 'expire'").await, 3);
        world.finish().await;
    });
}

#[test]
fn a_payment_that_dies_at_any_line_is_told_again_and_counts_once() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("told-again", 10, Some(1), LONG).await;
        for point in ["F30", "F31"] {
            let id = world.ordered(&sale, point).await;
            let rid = id.to_string();
            let args = ["order", "paid", &rid, "--payment-id", point, "--amount", "100", "--currency", "CNY"];
            let died = world.cli_with_faults(&format!("{point}=return"), &args);
            assert_eq!(died.code, None, "{died:?}");
            assert_eq!(world.order_in("PAID", id).await, point == "F31", "{point}");
            let acts = format!("action = 'order.paid' AND target_id = '{id}'");
            assert_eq!(world.rows("operator_acts", &acts).await, i64::from(point == "F31"), "{point}: with its change");
            world.cli(&args).exits(0);
            assert!(world.order_in("PAID", id).await);
            assert_eq!(world.rows("operator_acts", &acts).await, 1, "{point}: a repeat is no act");
        }
        assert_eq!(world.rows("payments", "state = 'APPLIED'").await, 2);
        let id = world.ordered(&sale, "F32").await;
        let rid = id.to_string();
        let args = ["order", "cancel", &rid, "--reason", "r"];
        let died = world.cli_with_faults("F32=return", &args);
        assert_eq!(died.code, None, "{died:?}");
        assert!(world.order_in("UNPAID", id).await);
        world.cli(&args).exits(0);
        assert!(world.order_in("CANCELLED", id).await);
        assert_eq!(world.rows("operator_acts", &format!("action = 'order.cancel' AND target_id = '{id}'")).await, 1);
        world.finish().await;
    });
}
