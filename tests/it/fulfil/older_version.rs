//! Orders that a version cancels which knew no states: it stands beside this one during an upgrade, or came back after one.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// What that version does to cancel an order of one unit: the unit, its journal and its grant, but not the state.
async fn cancelled_by_the_older_version(world: &World, sale: &SaleId, id: RequestId) {
    for statement in [
        format!(
            "UPDATE orders SET cancelled_at = NOW(3), cancelled_by = 'old', cancel_reason = 'r' WHERE request_id = {id}"
        ),
        format!(
            "INSERT INTO stock_flow (sale_id, delta, kind, orders_count, ref) VALUES ('{sale}', 1, 'cancel', 0, '{id}')"
        ),
        format!(
            "INSERT INTO stock_grants (sale_id, grant_id, kind, quantity) VALUES ('{sale}', 'cancel-{id}', 'reclaim', 1)"
        ),
        format!("UPDATE sales SET stock = stock + 1 WHERE sale_id = '{sale}'"),
    ] {
        world.sql(&statement).await;
    }
}

#[test]
fn an_order_that_an_older_version_cancelled_gives_its_unit_back_once_and_takes_no_money() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("older", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        for id in [alice, bob] {
            cancelled_by_the_older_version(&world, &sale, id).await;
        }
        let late = admin.pay(bob, "late").await;
        assert_eq!((late.code(), late.text("reason")), ("P6-F4".to_owned(), "CANCELLED".to_owned()), "{late:?}");
        let carol = world.ordered(&sale, "carol").await;
        for id in [alice, bob, carol] {
            world.overdue(id).await;
        }
        let sweep = world.extra_roles(&[Reconcile], |_| {});
        eventually("expired", async || world.order_in("EXPIRED", carol).await).await;
        for id in [alice, bob] {
            eventually("cancelled", async || world.order_in("CANCELLED", id).await).await;
        }
        eventually("given", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
        sweep.stop().await;
        assert_eq!(world.rows("stock_flow", "kind = 'expire' AND delta = 1").await, 1, "carol's, and no other");
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(10));
        world.audit(&sale, Window::Now).await;
        world.finish().await;
    });
}
