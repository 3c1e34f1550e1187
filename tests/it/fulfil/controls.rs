//! Negative controls of P6: with one mechanism left out, the audit must show it.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Relay};

#[test]
fn without_the_condition_a_paid_order_expires_and_the_audit_says_so() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("condition", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        // A payment that is not committed yet when the sweep chooses; then the sweep waits for its row.
        let mut payer = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap();
        world.overdue(bob).await;
        world.overdue(alice).await;
        let pays = format!(
            "BEGIN; UPDATE orders SET state = 'PAID', version = 2 WHERE request_id = {alice}; INSERT INTO payments \
             (payment_id, request_id, sale_id, amount_cents, currency, state) VALUES ('p', {alice}, '{sale}', 100, 'CNY', 'APPLIED')"
        );
        payer.batch_execute(&pays).await.unwrap();
        let broken = world.process("reconcile", "expiry_condition=return", &[]);
        let waiting =
            "SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE INFO LIKE '/* orders::still_due */%'";
        eventually("the sweep waits", async || world.number(waiting).await > 0).await;
        payer.batch_execute("COMMIT").await.unwrap();
        eventually("both expired", async || world.rows("orders", "state = 'EXPIRED'").await == 2).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(!audit.consistent() && audit.counted.life.payments_unmatched == 1, "{audit:#?}");
        broken.kill();
        world.stop().await;
    });
}

#[test]
fn a_grant_that_redis_takes_twice_shows_in_the_books() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("twice", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        world.overdue(alice).await;
        let broken = world.process("reconcile", "grant_once=return", &[]);
        eventually("expired", async || world.order_in("EXPIRED", alice).await).await;
        eventually("given twice", async || world.servers.redis.stock.units(&sale, 0).await.unwrap() == Some(11)).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(!audit.consistent(), "{audit:#?}");
        broken.kill();
        world.stop().await;
    });
}
