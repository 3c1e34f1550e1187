//! The sweep of overdue orders in trouble: what failed holds up no more than it must, and no unit stays away.

use crate::support::buyers::orders::LONG;
use crate::support::world::database_sessions::{Session, stuck};
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::sale::MetaState;
use seckill::roles::Role::{self, Api, Consumer, Reconcile, Relay};

/// The name of the lock of what one process leads, in SQL.
fn lock(work: &str) -> String {
    format!("CONCAT('seckill.', LEFT(SHA2(CONCAT(DATABASE(), '.', '{work}'), 256), 40))")
}

/// Leads in the place of a process, as long as the session lives.
async fn leads(session: &mut Session, work: &str) {
    session.run(&format!("DO GET_LOCK({}, 60)", lock(work))).await;
}

#[test]
fn a_sweep_that_fails_gives_the_units_of_what_expired_and_of_a_batch_it_never_saw() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[]).await;
        let first = world.paying_sale("a-first", 10, Some(1), LONG).await;
        let full = world.paying_sale("b-full", 10, Some(1), LONG).await;
        let unseen = world.paying_sale("c-unseen", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&first, "alice").await, world.ordered(&first, "bob").await);
        let (carol, dave) = (world.ordered(&full, "carol").await, world.ordered(&unseen, "dave").await);
        // The api gives open grants, too, and so does P5.
        world.stop_roles().await;
        let stock = &world.servers.redis.stock;
        let units = async |sale: &SaleId, wanted: i64| stock.units(sale, 0).await.unwrap() == Some(wanted);
        let mut in_place_of_p5 = Session::open(&world).await;
        leads(&mut in_place_of_p5, "reconcile").await;
        world.overdue(alice).await;
        let sweep = world.extra_roles(&[Reconcile], |_| {});
        eventually("the sweep works", async || units(&first, 9).await).await;

        // "The table is full" (1114): an error of the database as a whole, behind the first sale.
        world
            .sql(
                "CREATE TRIGGER fills BEFORE UPDATE ON orders FOR EACH ROW \
                 IF NEW.sale_id = 'b-full' AND NEW.state = 'EXPIRED' THEN \
                 SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table is full'; END IF",
            )
            .await;
        world.overdue(carol).await;
        world.overdue(bob).await;
        eventually("given although the reading fails", async || units(&first, 10).await).await;
        // As a batch whose commit was never answered: its sale is behind the one that fails.
        world.overdue(dave).await;
        let due = world.servers.rows.orders.overdue(&unseen, None, 500).await.unwrap();
        assert!(world.servers.rows.orders.expire(&unseen, due).await.unwrap().is_some());
        eventually("given although no process got it", async || units(&unseen, 10).await).await;
        assert!(world.order_in("UNPAID", carol).await, "it failed all the time");

        world.sql("DROP TRIGGER fills").await;
        eventually("the last one", async || units(&full, 10).await).await;
        sweep.stop().await;
        assert_eq!(world.rows("stock_flow", "kind = 'expire'").await, 4);
        world.finish().await;
    });
}

#[test]
fn a_sweep_whose_leadership_is_lost_stops_before_its_next_sale() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let (mut holder, mut successor) = (Session::open(&world).await, Session::open(&world).await);
        holder.run("BEGIN").await;
        // Each of them is waited for: in that time the leader learns that its lock is gone.
        for held in ["a", "b", "c", "d"] {
            let sale = world.paying_sale(held, 3, Some(1), LONG).await;
            world.ordered(&sale, "alice").await;
            holder.run(&format!("UPDATE sales SET title = 'x' WHERE sale_id = '{held}'")).await;
        }
        let last = world.paying_sale("last", 3, Some(1), LONG).await;
        let bob = world.ordered(&last, "bob").await;
        world.sql("UPDATE orders SET expire_at = NOW(3) - INTERVAL 1 SECOND").await;
        let mut leader = world.process("reconcile", "", &[]);
        stuck(&world).await;
        let connection = format!("SELECT CAST(COALESCE(IS_USED_LOCK({}), 0) AS SIGNED) AS n", lock("expiry"));
        world.sql(&format!("KILL {}", world.number(&connection).await)).await;
        leads(&mut successor, "expiry").await;
        leader.program.until_logged("leadership lost, its connection is gone work=Expiry").await;
        assert!(world.order_in("UNPAID", bob).await, "another process leads");
        leader.kill();
        holder.run("ROLLBACK").await;
        world.finish().await;
    });
}

#[test]
fn a_locked_sale_holds_up_no_other_where_statements_have_little_time() {
    run(async {
        // Less than a lock is waited for elsewhere.
        let world = World::with(&Role::ALL, &["mysql.statement_timeout_ms=2000"]).await;
        let held = world.paying_sale("a-held", 3, Some(1), LONG).await;
        let free = world.paying_sale("b-free", 3, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&held, "alice").await, world.ordered(&free, "bob").await);
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'a-held'").await;
        // The locked one has the first turn.
        world.sql("UPDATE orders SET expire_at = NOW(3) - INTERVAL 1 SECOND").await;
        eventually("the other sale's", async || world.order_in("EXPIRED", bob).await).await;
        assert!(world.order_in("UNPAID", alice).await);
        other.run("ROLLBACK").await;
        eventually("later", async || world.order_in("EXPIRED", alice).await).await;
        world.finish().await;
    });
}

#[test]
fn a_sweep_whose_figures_cannot_be_counted_goes_on() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("uncounted", 3, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        // P5 would count payments, too.
        let mut in_place_of_p5 = Session::open(&world).await;
        leads(&mut in_place_of_p5, "reconcile").await;
        let mut sweep = world.process("reconcile", "", &[]);
        sweep.until_metric("seckill_p6_fulfil_refunds_needed_count", |count| count == 0.0).await;
        let faults = r#"seckill_faults_total{phase="p6_fulfil"}"#;
        let before = sweep.metric(faults).await.unwrap();
        world.sql("RENAME TABLE payments TO payments_elsewhere").await;
        sweep.program.until_logged("overdue orders and refunds could not be counted").await;
        world.overdue(alice).await;
        eventually("expired", async || world.order_in("EXPIRED", alice).await).await;
        assert_eq!(sweep.metric(faults).await, Some(before), "no trouble of the sweep");
        world.sql("RENAME TABLE payments_elsewhere TO payments").await;
        sweep.kill();
        world.finish().await;
    });
}

#[test]
fn an_order_whose_buyers_count_is_wrong_expires_last_and_its_neighbours_at_once() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let terms = seckill::domain::order_life::PaymentTerms { limit_returns: true, ..LONG };
        let sale = world.paying_sale("wrong", 10, Some(3), terms).await;
        let mut orders = Vec::new();
        for user in ["alice", "bob", "carol", "dave", "erin"] {
            orders.push(world.ordered(&sale, user).await);
        }
        world.sql("UPDATE purchases SET quantity = 0 WHERE user_id = 'carol'").await;
        // Her own cancellation does not say "repeat it" for ever.
        let refused = world.cancel_mine("carol", orders[2]).await;
        assert_eq!((refused.status, refused.code()), (500, "INTERNAL".to_owned()), "{refused:?}");
        assert!(refused.text("detail").contains("repeating does not help"), "{refused:?}");

        let mut sweep = world.process("reconcile", "", &[]);
        world.sql("UPDATE orders SET expire_at = NOW(3) - INTERVAL 1 SECOND").await;
        eventually("the neighbours", async || world.rows("orders", "state = 'EXPIRED'").await == 4).await;
        sweep.until_metric("seckill_p6_fulfil_set_aside_count", |count| count == 1.0).await;
        sweep.program.until_logged(&orders[2].to_string()).await;
        assert!(world.order_in("UNPAID", orders[2]).await);
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(9), "four units are on sale again");

        world.sql("UPDATE purchases SET quantity = 1 WHERE user_id = 'carol'").await;
        eventually("hers, too", async || world.order_in("EXPIRED", orders[2]).await).await;
        sweep.until_metric("seckill_p6_fulfil_set_aside_count", |count| count == 0.0).await;
        sweep.kill();
        world.finish().await;
    });
}

#[test]
fn an_order_that_was_set_aside_waits_while_its_sale_is_being_rebuilt() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let terms = seckill::domain::order_life::PaymentTerms { limit_returns: true, ..LONG };
        let frozen = world.paying_sale("a-frozen", 10, Some(3), terms).await;
        let free = world.paying_sale("b-free", 10, Some(3), terms).await;
        let (alice, bob) = (world.ordered(&frozen, "alice").await, world.ordered(&free, "bob").await);
        world.sql("UPDATE purchases SET quantity = 0").await;
        // P5 would rebuild it.
        let mut in_place_of_p5 = Session::open(&world).await;
        leads(&mut in_place_of_p5, "reconcile").await;
        let sweep = world.process("reconcile", "", &[]);
        world.overdue(alice).await;
        sweep.until_metric("seckill_p6_fulfil_set_aside_count", |count| count == 1.0).await;
        let keys = &world.servers.redis.sale_keys;
        keys.set_state(&frozen, 0, MetaState::Frozen, &[MetaState::Open]).await.unwrap();
        world.overdue(bob).await;
        sweep.until_metric("seckill_p6_fulfil_set_aside_count", |count| count == 2.0).await;
        world.sql("UPDATE purchases SET quantity = 1").await;
        // Set aside after alice's, so it is tried after hers again.
        eventually("the other sale's", async || world.order_in("EXPIRED", bob).await).await;
        assert!(world.order_in("UNPAID", alice).await, "its rebuild would begin again");
        keys.set_state(&frozen, 0, MetaState::Open, &[MetaState::Frozen]).await.unwrap();
        eventually("after the rebuild", async || world.order_in("EXPIRED", alice).await).await;
        sweep.kill();
        world.finish().await;
    });
}

#[test]
fn a_locked_row_of_one_buyer_keeps_no_neighbour_from_expiring() {
    run(async {
        let world = World::start().await;
        let terms = seckill::domain::order_life::PaymentTerms { limit_returns: true, ..LONG };
        let sale = world.paying_sale("one-row", 10, Some(3), terms).await;
        let mut orders = Vec::new();
        for user in ["alice", "bob", "carol", "dave"] {
            orders.push(world.ordered(&sale, user).await);
        }
        let mut other = Session::open(&world).await;
        other.run("BEGIN; SELECT 1 FROM purchases WHERE sale_id = 'one-row' AND user_id = 'bob' FOR UPDATE").await;
        world.sql("UPDATE orders SET expire_at = NOW(3) - INTERVAL 1 SECOND").await;
        eventually("the neighbours", async || world.rows("orders", "state = 'EXPIRED'").await == 3).await;
        assert!(world.order_in("UNPAID", orders[1]).await);
        other.run("ROLLBACK").await;
        eventually("later", async || world.order_in("EXPIRED", orders[1]).await).await;
        world.finish().await;
    });
}

#[test]
fn orders_that_fail_take_no_other_sales_turn_to_expire() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let (bad, good) =
            (world.paying_sale("a-bad", 20, Some(1), LONG).await, world.paying_sale("b-good", 3, Some(1), LONG).await);
        world.sell(&bad, 12).await;
        eventually("the orders", async || world.orders(&bad).await == 12).await;
        let bob = world.ordered(&good, "bob").await;
        // Each of them fails, and takes its time: a sweep that tried all of them first would come late to the other sale.
        world
            .sql(
                "CREATE TRIGGER fails BEFORE UPDATE ON orders FOR EACH ROW \
                 IF NEW.sale_id = 'a-bad' AND NEW.state = 'EXPIRED' THEN \
                 DO SLEEP(0.5); SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF",
            )
            .await;
        let mut sweep = world.process("reconcile", "", &[]);
        world.sql("UPDATE orders SET expire_at = NOW(3) - INTERVAL 1 SECOND WHERE sale_id = 'a-bad'").await;
        sweep.program.until_logged("it is set aside").await;
        world.overdue(bob).await;
        eventually("the other sale's", async || world.order_in("EXPIRED", bob).await).await;
        let aside = sweep.program.stderr().matches("it is set aside").count();
        assert!(aside < 12, "{aside} of 12 were tried before");
        sweep.kill();
        world.sql("DROP TRIGGER fails").await;
        world.finish().await;
    });
}

#[test]
fn an_order_that_another_transaction_holds_is_passed_over() {
    run(async {
        let world = World::start().await;
        let sale = world.paying_sale("passed", 10, Some(1), LONG).await;
        let mut orders = Vec::new();
        for user in ["alice", "bob", "carol"] {
            orders.push(world.ordered(&sale, user).await);
        }
        let mut other = Session::open(&world).await;
        // The deadline passes in one statement, so that all three are in one batch; then one row is held.
        world.sql("UPDATE orders SET expire_at = NOW(3) + INTERVAL 2 SECOND").await;
        other.run(&format!("BEGIN; UPDATE orders SET source = source WHERE request_id = {}", orders[1])).await;
        other.run(&format!("SELECT 1 FROM orders WHERE request_id = {} FOR UPDATE", orders[1])).await;
        eventually("the neighbours", async || world.rows("orders", "state = 'EXPIRED'").await == 2).await;
        assert!(world.order_in("UNPAID", orders[1]).await, "somebody works on it");
        other.run("ROLLBACK").await;
        eventually("later", async || world.order_in("EXPIRED", orders[1]).await).await;
        world.finish().await;
    });
}
