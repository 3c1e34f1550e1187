//! A limit by person: what counts it in the script and in the database.

use crate::harms_without;
use crate::scene::{PIPELINE, QUICK};
use crate::support::buyers::passes::{FACTS_AND_PASSES, ShowingBuyer};
use crate::support::world::{World, eventually};
use seckill::domain::ids::SaleId;
use seckill::domain::policy::{LimitBy, PurchasePolicy};
use seckill::domain::sale::Sale;
use seckill::faults::Mechanism;
use serde_json::json;

/// A sale of one a person, in a world whose tokens say who that is.
async fn one_a_person() -> (World, SaleId) {
    let world = World::with(&PIPELINE, &[QUICK, &FACTS_AND_PASSES].concat()).await;
    let one = |sale: &mut Sale| (sale.limit_by, sale.policy) = (LimitBy::Person, PurchasePolicy::OnePerUser);
    let sale = world.sale_with("each", 10, one).await;
    (world, sale)
}

/// What is wrong with a unit for another account of the same person, if this purchase got it one.
async fn second_unit(world: &World, sale: &SaleId) -> Vec<String> {
    let other = ShowingBuyer::new(world, "ann-2").with_claims(json!({ "pid": "ann" }));
    let answer = other.buy(sale).await;
    let two = || format!("ann was let in by two accounts: {answer:?}");
    if answer.status == 202 { vec![two()] } else { Vec::new() }
}

async fn first_unit(world: &World, sale: &SaleId) {
    let first = ShowingBuyer::new(world, "ann-1").with_claims(json!({ "pid": "ann" }));
    assert_eq!(first.buy(sale).await.status, 202);
    eventually("the order", async || world.rows("orders", "person = 'ann'").await == 1).await;
}

async fn orders_of_ann(world: &World) -> Vec<String> {
    let orders = world.rows("orders", "person = 'ann'").await;
    if orders > 1 { vec![format!("ann has {orders} orders in a sale of one a person")] } else { Vec::new() }
}

#[test]
fn a_person_is_let_in_by_each_account_when_the_script_counts_accounts() {
    harms_without(Mechanism::PersonCounted, async |_| {
        let (world, sale) = one_a_person().await;
        first_unit(&world, &sale).await;
        let found = second_unit(&world, &sale).await;
        eventually("the end", async || world.outbox().await == (0, 0)).await;
        assert_eq!(orders_of_ann(&world).await, Vec::<String>::new(), "the database has a limit of its own");
        world.stop().await;
        found
    });
}

#[test]
fn a_person_whom_redis_forgot_gets_an_order_by_each_account_when_the_database_counts_accounts() {
    harms_without(Mechanism::PersonGuard, async |_| {
        let (world, sale) = one_a_person().await;
        first_unit(&world, &sale).await;
        world.redis(&["HDEL", &world.servers.redis.keys.buyers(0, &sale), "ann"]).await;
        assert_eq!(second_unit(&world, &sale).await.len(), 1, "Redis does not know her any more");
        let decided = "person = 'ann'";
        eventually("decided", async || {
            world.rows("orders", decided).await + world.rows("failed_request", decided).await == 2
        })
        .await;
        let found = orders_of_ann(&world).await;
        world.stop().await;
        found
    });
}
