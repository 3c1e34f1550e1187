//! Units that come back while a rebuild is under way: they end no attempt, are sold once, and their buyers' limits come back once.

use super::rebuild_and_grants::{QUICK, epoch, lose_the_keys, stock};
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::order_life::PaymentTerms;
use seckill::faults::{Stepped, Stepwise};
use seckill::orders::rows::CancelRequest;
use seckill::p5_reconcile::single_steps::{self, SharedWatch};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// One attempt at a rebuild, step by step.
struct Attempt(Stepwise<Result<bool, String>>);

impl Attempt {
    async fn new(world: &World, sale: &SaleId) -> Self {
        let context = world.reconcile_context();
        let sale = world.servers.rows.sales.get(sale).await.unwrap().unwrap();
        let backlog_max = world.settings.p1_entry.backlog_max;
        Self(Stepwise::new(async move {
            let done = single_steps::attempt_rebuild(&context, &sale, backlog_max, &SharedWatch::default()).await;
            done.map_err(|error| error.to_string())
        }))
    }

    async fn comes_to(&mut self, place: &'static str) {
        loop {
            match self.0.step().await {
                Stepped::At(reached) if reached == place => return,
                Stepped::At(_) => {}
                Stepped::Ended(ended) => panic!("it ended before {place}: {ended:?}"),
            }
        }
    }

    async fn opens(mut self) {
        loop {
            match self.0.step().await {
                Stepped::At(_) => {}
                Stepped::Ended(ended) => return assert_eq!(ended, Ok(true), "the first attempt opens the sale"),
            }
        }
    }
}

async fn cancel(world: &World, request_id: RequestId) {
    let request = CancelRequest { request_id, buyer: None, reason: "r", by: "test", act: None };
    world.servers.rows.orders.cancel(request).await.unwrap();
}

#[test]
fn returns_between_the_steps_of_a_rebuild_do_not_end_it_and_give_units_and_limits_back_once() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let terms = PaymentTerms { limit_returns: true, ..LONG };
        let sale = world.paying_sale("between", 10, Some(3), terms).await;
        world.ordered(&sale, "alice").await;
        let mut orders = Vec::new();
        for user in ["alice", "bob", "carol", "dave"] {
            orders.push(world.ordered(&sale, user).await);
        }
        assert!(world.settled(&sale).await.consistent());
        lose_the_keys(&world, &sale).await;

        // Each of them ends an order at another place; a top-up comes, too.
        let mut attempt = Attempt::new(&world, &sale).await;
        for (place, order) in
            ["rebuild: numbered", "rebuild: begun", "rebuild: loaded", "rebuild: snapped"].into_iter().zip(&orders)
        {
            attempt.comes_to(place).await;
            cancel(&world, *order).await;
            if place == "rebuild: loaded" {
                assert!(world.servers.rows.grants.top_up(&sale, "more", 2).await.unwrap());
            }
        }
        attempt.opens().await;
        assert_eq!(epoch(&world).await, 2);
        world.start_roles(&[Reconcile]).await;
        eventually("all is given", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
        assert_eq!(stock(&world, &sale).await, Some(11), "12 less one order");

        // Alice has one of three, the others have none.
        eventually("alice buys", async || world.buy(&sale, "alice", 2, None).await.status == 202).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 409);
        for user in ["bob", "carol", "dave"] {
            assert_eq!(world.buy(&sale, user, 3, None).await.status, 202, "{user}");
            assert_eq!(world.buy(&sale, user, 1, None).await.status, 409, "{user}");
        }
        assert_eq!(stock(&world, &sale).await, Some(0));
        world.finish().await;
    });
}

/// A dead attempt leaves returns of its own epoch; the next one counts them.
#[test]
fn returns_in_the_epoch_of_a_dead_attempt_are_among_the_units_of_the_next_one() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let terms = PaymentTerms { limit_returns: true, ..LONG };
        let sale = world.paying_sale("dead", 2, Some(1), terms).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        assert!(world.settled(&sale).await.consistent());
        lose_the_keys(&world, &sale).await;
        let mut dies = Attempt::new(&world, &sale).await;
        dies.comes_to("rebuild: loaded").await;
        cancel(&world, alice).await;
        dies.comes_to("rebuild: snapped").await;
        drop(dies);
        let mut attempt = Attempt::new(&world, &sale).await;
        attempt.comes_to("rebuild: begun").await;
        cancel(&world, bob).await;
        attempt.comes_to("rebuild: snapped").await;
        assert_eq!(world.rows("stock_grants", "applied_at IS NULL").await, 1, "bob's is given when the sale is open");
        attempt.opens().await;
        // Not the stock: an api process gives bob's as soon as it reads that the sale is open.
        let opened_with = "SELECT CAST(quantity AS SIGNED) AS n FROM stock_grants WHERE grant_id LIKE 'rebuild-%' \
             ORDER BY epoch DESC LIMIT 1";
        assert_eq!(world.number(opened_with).await, 1);
        world.start_roles(&[Reconcile]).await;
        eventually("all is given", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
        assert_eq!(stock(&world, &sale).await, Some(2));
        eventually("alice buys", async || world.buy(&sale, "alice", 1, None).await.status == 202).await;
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 202);
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 409);
        world.finish().await;
    });
}
