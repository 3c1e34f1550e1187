//! A sale's status only moves where it may: what was read before somebody closed the sale cannot open it again.

use crate::support::world::database_sessions::{Session, stuck};
use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;
use seckill::sales::SaleControlError;

/// What an operator, or the api role by itself, does to a sale.
#[derive(Debug, Clone, Copy)]
enum Act {
    Warm,
    Pause,
    Resume,
}

/// Runs `act` so that it reads the sale before `status` is committed, and writes after it.
async fn overtaken(world: &World, sale: &SaleId, act: Act, status: &str) -> Result<(), SaleControlError> {
    let mut other = Session::open(world).await;
    other.run(&format!("BEGIN; UPDATE sales SET status = '{status}' WHERE sale_id = '{sale}'")).await;
    let (sale_control, id) = (world.sale_control(), sale.clone());
    let acting = tokio::spawn(async move {
        match act {
            Act::Warm => sale_control.warm(&id).await,
            Act::Pause => sale_control.pause(&id).await,
            Act::Resume => sale_control.resume(&id).await,
        }
    });
    stuck(world).await;
    other.run("COMMIT").await;
    acting.await.expect("it ends")
}

async fn is(world: &World, sale: &SaleId, status: &str) -> bool {
    world.rows("sales", &format!("sale_id = '{sale}' AND status = '{status}'")).await == 1
}

/// The state that the script obeys.
async fn in_redis(world: &World, sale: &SaleId) -> String {
    let state = world.redis(&["HGET", &world.servers.redis.keys.meta(0, sale), "state"]).await;
    state.as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_began_before_the_close_does_not_open_the_sale_again() {
    run(async {
        let world = World::with(&[], &[]).await;
        for act in [Act::Warm, Act::Pause, Act::Resume] {
            let name = format!("closed-{act:?}");
            let sale = match act {
                Act::Warm => world.draft(&name, 10, |_| {}).await,
                Act::Pause | Act::Resume => world.sale(&name, 10, None).await,
            };
            let refused = overtaken(&world, &sale, act, "closed").await;
            assert!(matches!(refused, Err(SaleControlError::Closed(_))), "{act:?}: {refused:?}");
            assert!(is(&world, &sale, "closed").await, "{act:?}");
            assert_eq!(in_redis(&world, &sale).await, "closed", "{act:?}: redis follows the database");
        }
        world.finish().await;
    });
}

#[test]
fn a_pause_during_the_warm_up_holds() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.draft("held", 10, |_| {}).await;
        overtaken(&world, &sale, Act::Warm, "paused").await.unwrap();
        assert!(is(&world, &sale, "paused").await);
        assert_eq!(in_redis(&world, &sale).await, "paused", "its units are there, and not for sale");
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(10));
        world.finish().await;
    });
}
