//! One limit over all sales of a drop: what counts it in the script and in the database, and what keeps its sales together.

use crate::harms_without;
use crate::scene::{PIPELINE, QUICK, found_at_last};
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually};
use seckill::domain::ids::SaleId;
use seckill::domain::order_life::PaymentTerms;
use seckill::faults::Mechanism;
use seckill::roles::Role;

/// A world with a drop of two sales, warmed; one unit a buyer over both.
async fn drop_of_two(roles: &[Role], terms: Option<PaymentTerms>) -> (World, [SaleId; 2]) {
    let world = World::with(roles, QUICK).await;
    let sales = world.drop_of(1, &["l", "m"], |sale| sale.payment = terms).await;
    world.sale_control().warm(&sales[0]).await.unwrap();
    (world, sales.try_into().unwrap())
}

/// What is wrong with a second unit of one buyer, if this purchase got it one.
async fn second_unit(world: &World, sale: &SaleId) -> Vec<String> {
    let answer = world.buy(sale, "ann", 1, None).await;
    let two = || format!("ann was let in twice, her limit over both sales is 1: {answer:?}");
    if answer.status == 202 { vec![two()] } else { Vec::new() }
}

async fn orders_of_ann(world: &World) -> Vec<String> {
    let orders = world.rows("orders", "user_id = 'ann'").await;
    if orders > 1 { vec![format!("ann has {orders} orders in a drop of one a buyer")] } else { Vec::new() }
}

#[test]
fn a_buyer_is_let_into_each_sale_of_a_drop_when_the_script_counts_one() {
    harms_without(Mechanism::DropCounted, async |_| {
        let (world, [l, m]) = drop_of_two(&PIPELINE, None).await;
        world.bought(&l, "ann").await;
        let found = second_unit(&world, &m).await;
        eventually("the end", async || world.outbox().await == (0, 0)).await;
        assert_eq!(orders_of_ann(&world).await, Vec::<String>::new(), "the database has a limit of its own");
        world.stop().await;
        found
    });
}

#[test]
fn a_buyer_is_let_in_again_while_the_other_sale_of_a_drop_is_being_rebuilt() {
    harms_without(Mechanism::DropFrozen, async |_| {
        let (world, [l, m]) = drop_of_two(&PIPELINE, None).await;
        world.ordered(&l, "ann").await;
        // As a rebuild leaves it between its first step and its second: frozen, and no buyer loaded.
        let keys = &world.servers.redis.keys;
        world.redis(&["HSET", &keys.meta(0, &l), "state", "frozen"]).await;
        world.redis(&["HDEL", &keys.buyers(0, &l), "ann"]).await;
        let found = second_unit(&world, &m).await;
        world.stop().await;
        found
    });
}

#[test]
fn a_buyer_is_let_in_again_when_the_other_sale_of_a_drop_has_lost_its_buyers() {
    harms_without(Mechanism::DropWhole, async |_| {
        let (world, [l, m]) = drop_of_two(&PIPELINE, None).await;
        world.ordered(&l, "ann").await;
        world.redis(&["DEL", &world.servers.redis.keys.buyers(0, &l)]).await;
        let found = second_unit(&world, &m).await;
        world.stop().await;
        found
    });
}

#[test]
fn a_buyer_whom_redis_forgot_gets_an_order_in_each_sale_of_a_drop_when_the_database_does_not_count() {
    harms_without(Mechanism::DropGuard, async |_| {
        let (world, [l, m]) = drop_of_two(&PIPELINE, None).await;
        world.ordered(&l, "ann").await;
        world.redis(&["HDEL", &world.servers.redis.keys.buyers(0, &l), "ann"]).await;
        assert_eq!(second_unit(&world, &m).await.len(), 1, "Redis does not know her any more");
        let decided = "user_id = 'ann'";
        eventually("decided", async || {
            world.rows("orders", decided).await + world.rows("failed_request", decided).await == 2
        })
        .await;
        let found = orders_of_ann(&world).await;
        world.stop().await;
        found
    });
}

#[test]
fn a_buyer_whose_order_ended_counts_for_ever_when_a_drop_gets_nothing_back() {
    harms_without(Mechanism::ReturnsToDrop, async |_| {
        let terms = PaymentTerms { limit_returns: true, ..LONG };
        let (world, [l, m]) = drop_of_two(&Role::ALL, Some(terms)).await;
        let order = world.ordered(&l, "ann").await;
        assert_eq!(world.cancel_mine("ann", order).await.text("state"), "CANCELLED");
        eventually("she may again", async || world.buy(&m, "ann", 1, None).await.status == 202).await;
        let found = found_at_last(&world, &m).await;
        let own = found_at_last(&world, &l).await;
        world.stop().await;
        [found, own].concat()
    });
}

#[test]
fn a_sale_of_a_drop_sells_nothing_when_the_other_one_is_closed_by_itself() {
    harms_without(Mechanism::ClosedTogether, async |_| {
        let (world, [l, m]) = drop_of_two(&PIPELINE, None).await;
        // Refused, where the mechanism is.
        world.sale_control().close(&l).await.ok();
        let answer = world.buy(&m, "bob", 1, None).await;
        let found = if answer.status == 202 { Vec::new() } else { vec![format!("bob has nothing yet: {answer:?}")] };
        world.stop().await;
        found
    });
}
