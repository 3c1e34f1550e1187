//! Drops from end to end: one limit over several sales, in Redis, and what it does while one of them is not whole.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{DropId, SaleId};
use seckill::domain::operator::Actor;
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::sale::MetaState;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{self, Api, Consumer, Reconcile, Relay};
use seckill::sales::SaleControlError;

const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];

async fn code(world: &World, sale: &SaleId, user: &str, quantity: u32) -> String {
    let answer = world.buy(sale, user, quantity, None).await;
    if answer.status == 202 { "accepted".to_owned() } else { answer.code() }
}

#[test]
fn a_drop_has_one_limit_over_all_its_sales() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sales = world.drop_of(2, &["m", "l", "xl"], |_sale| ()).await;
        world.sale_control().warm(&sales[1]).await.unwrap();
        for sale in &sales {
            let meta = world.servers.redis.sale_keys.meta(sale, 0).await.unwrap();
            assert_eq!(meta.map(|meta| meta.state), Some(MetaState::Open), "warmed with the other: {sale}");
        }
        assert_eq!(code(&world, &sales[0], "ann", 1).await, "accepted");
        assert_eq!(code(&world, &sales[1], "ann", 2).await, "P2-R5");
        assert_eq!(code(&world, &sales[1], "ann", 1).await, "accepted");
        let refused = world.buy(&sales[2], "ann", 1, None).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "P2-R5"), "{refused:?}");
        assert!(refused.text("detail").contains("over all sales of this drop is 2 a buyer, you have 2"), "{refused:?}");
        assert_eq!(code(&world, &sales[2], "bob", 2).await, "accepted", "another buyer has a limit of his own");
        for (sale, ordered) in sales.iter().zip([1, 1, 2]) {
            let audit = world.settled(sale).await;
            assert!(audit.consistent() && audit.counted.ordered == ordered, "{audit:?}");
        }
        assert_eq!(world.rows("drop_purchases", "quantity = 2").await, 2);
        world.finish().await;
    });
}

#[test]
fn a_sale_of_a_drop_sells_nothing_while_it_is_not_known_what_buyers_have_in_the_others() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sales = world.drop_of(1, &["m", "l"], |_sale| ()).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        assert_eq!(code(&world, &sales[0], "ann", 1).await, "accepted");
        assert!(world.settled(&sales[0]).await.consistent());

        // The buyers hash of one sale is lost: it is the only place in Redis that knew what ann has.
        let keys = world.servers.redis.keys.clone();
        world.redis(&["DEL", &keys.buyers(0, &sales[0])]).await;
        for user in ["ann", "bob"] {
            assert_eq!(code(&world, &sales[1], user, 1).await, "P1-S7", "{user}");
        }
        world.start_roles(&[Reconcile]).await;
        eventually("the other sale sells again", async || code(&world, &sales[1], "bob", 1).await == "accepted").await;
        assert_eq!(code(&world, &sales[1], "ann", 1).await, "P2-R5", "her order in the other sale still counts");

        // Frozen by an operator, until the rebuild.
        world.stop_roles().await;
        world.cli(&["sale", "rebuild", "m"]).exits(0);
        world.start_roles(&[Api]).await;
        assert_eq!(code(&world, &sales[1], "cid", 1).await, "P1-S7");
        world.start_roles(&[Relay, Consumer, Reconcile]).await;
        eventually("it sells again", async || code(&world, &sales[1], "cid", 1).await == "accepted").await;
        for sale in &sales {
            assert!(world.settled(sale).await.consistent());
            assert!(world.audit(sale, Window::Now).await.consistent());
        }
        world.finish().await;
    });
}

#[test]
fn an_order_that_is_cancelled_gives_its_unit_back_to_the_limit_of_the_drop() {
    run(async {
        let world = World::with(&Role::ALL, QUICK).await;
        let terms = PaymentTerms { limit_returns: true, ..LONG };
        let sales = world.drop_of(1, &["m", "l"], |sale| sale.payment = Some(terms)).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        let first = world.ordered(&sales[0], "ann").await;
        assert_eq!(code(&world, &sales[1], "ann", 1).await, "P2-R5");
        assert_eq!(world.cancel_mine("ann", first).await.text("state"), "CANCELLED");
        assert_eq!(world.rows("drop_purchases", "quantity = 0").await, 1);
        eventually("she may again", async || code(&world, &sales[1], "ann", 1).await == "accepted").await;
        for sale in &sales {
            assert_eq!(code(&world, sale, "ann", 1).await, "P2-R5", "once: {sale}");
        }
        eventually("counted", async || world.rows("drop_purchases", "quantity = 1").await == 1).await;
        world.finish().await;
    });
}

#[test]
fn an_audit_of_a_drop_finds_a_buyer_whose_units_were_edited() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sales = world.drop_of(3, &["m", "l"], |_sale| ()).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        for sale in &sales {
            assert_eq!(code(&world, sale, "ann", 1).await, "accepted");
            assert!(world.settled(sale).await.consistent());
        }
        world.sql("UPDATE drop_purchases SET quantity = 1").await;
        let of_first = world.audit(&sales[1], Window::Now).await;
        let details: Vec<&str> = of_first.findings.iter().map(|finding| finding.detail.as_str()).collect();
        let expected = "purchases of buyers = orders that count against their limits: 1 against 2 in drop drop: buyer ann 1 against 2";
        assert_eq!(details, [expected]);
        assert!(world.audit(&sales[0], Window::Now).await.consistent(), "one of its sales speaks for the drop");
        world.sql("UPDATE drop_purchases SET quantity = 2").await;
        assert!(world.audit(&sales[1], Window::Now).await.consistent());
        world.finish().await;
    });
}

#[test]
fn the_sales_of_a_drop_are_closed_together() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sales = world.drop_of(1, &["m", "l"], |_sale| ()).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        assert_eq!(code(&world, &sales[0], "ann", 1).await, "accepted");
        let ann = Actor::at_the_terminal("ann");
        let refused = world.sale_control().close(&sales[1]).await;
        assert!(matches!(refused, Err(SaleControlError::OfDrop(..))), "{refused:?}");
        world.sale_control().close_drop(&ann, &DropId::parse("drop").unwrap()).await.unwrap();
        assert_eq!(world.rows("sales", "status = 'closed'").await, 2);
        for sale in &sales {
            let meta = world.servers.redis.sale_keys.meta(sale, 0).await.unwrap();
            assert_eq!(meta.map(|meta| meta.state), Some(MetaState::Closed));
        }
        assert_eq!(world.settled(&sales[0]).await.counted.ordered, 1);
        let unknown = world.sale_control().close_drop(&ann, &DropId::parse("other").unwrap()).await;
        assert!(matches!(unknown, Err(SaleControlError::NoSuchDrop(_))), "{unknown:?}");
        world.finish().await;
    });
}

#[test]
fn a_drop_closes_by_itself_when_the_last_of_its_sales_is_over() {
    run(async {
        let set = [QUICK, &["p5_reconcile.auto_close_after_s=1"]].concat();
        let world = World::with(&Role::ALL, &set).await;
        let sales = world.drop_of(1, &["l", "m"], |_sale| ()).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        assert_eq!(code(&world, &sales[1], "ann", 1).await, "accepted");
        // A plain sale that is over at the same time is closed: P5 has had its turn.
        let plain = world.sale("a-plain-one", 5, None).await;
        let over = |id: &str| {
            format!(
                "UPDATE sales SET ends_at = NOW(3) - INTERVAL 10 SECOND, starts_at = NOW(3) - INTERVAL 20 SECOND WHERE sale_id = '{id}'"
            )
        };
        world.sql(&over("m")).await;
        world.sql(&over(plain.as_str())).await;
        eventually("P5 closes", async || world.rows("sales", "status = 'closed'").await == 1).await;
        assert_eq!(
            world.rows("sales", "status = 'closed' AND sale_id = 'm'").await,
            0,
            "what ann has in it counts for the other"
        );
        assert_eq!(code(&world, &sales[0], "ann", 1).await, "P2-R5");
        world.sql(&over("l")).await;
        eventually("all are closed", async || world.rows("sales", "status = 'closed'").await == 3).await;
        world.finish().await;
    });
}
