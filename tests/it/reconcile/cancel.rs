//! A cancelled order's units are sold again exactly once (E8, D9), the books still add up, and a rebuild knows it.

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::orders::rows::{CancelRequest, Cancelled};
use seckill::p5_reconcile::Window;
use seckill::roles::Role;

#[test]
fn a_cancelled_orders_units_are_sold_again_once_and_everything_adds_up() {
    run(async {
        let set = ["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=1000", "p1_entry.cache_ttl_ms=50"];
        let world = World::with(&Role::ALL, &set).await;
        let sale = world.sale("cancel", 2, Some(1)).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        eventually("sold out", async || world.buy(&sale, "carol", 1, None).await.status == 410).await;

        let rid = alice.to_string();
        world.cli(&["order", "cancel", &rid]).exits(64);
        world.cli(&["order", "cancel", "4711", "--reason", "x"]).exits(1);
        let said = world.cli(&["order", "cancel", &rid, "--reason", "never paid"]).exits(0);
        assert!(said.out.contains("to sell again: 1"), "{said:?}");
        let again = world.cli(&["order", "cancel", &rid, "--reason", "never paid"]).exits(0);
        assert!(again.out.contains("before"), "{again:?}");
        let row =
            "cancelled_at IS NOT NULL AND cancel_reason = 'never paid' AND cancelled_by <> '' AND state = 'CANCELLED'";
        assert_eq!(world.rows("orders", row).await, 1);
        assert_eq!(world.rows("stock_flow", "kind = 'cancel' AND delta = 1").await, 1);
        let shown = world.cli(&["order", "show", &rid, "--json"]).exits(0).json();
        assert_eq!(shown["order"]["cancel_reason"], "never paid", "{shown:#}");

        // Sold again to somebody else, once; the one who cancelled has had his chance.
        eventually("her quota stays used", async || world.buy(&sale, "alice", 1, None).await.status == 409).await;
        let mut carol = String::new();
        eventually("it sells again", async || {
            carol = world.buy(&sale, "carol", 1, None).await.text("request_id");
            !carol.is_empty()
        })
        .await;
        eventually("and is sold out again", async || world.buy(&sale, "dave", 1, None).await.status == 410).await;
        let carol = RequestId::parse(&carol).unwrap();
        eventually("carol's order", async || world.status_of(&sale, "carol", carol).await.0 == "CONFIRMED").await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent(), "{audit:#?}");
        let c = audit.counted;
        assert_eq!((c.granted, c.ordered, c.database_stock, c.redis_stock), (2, 2, 0, 0));

        // Cancelled in the database only: P5 brings the unit to Redis. Two operators at once are one.
        let orders = &world.servers.rows.orders;
        let of_bob = |by: &'static str| CancelRequest { request_id: bob, buyer: None, reason: "twice", by, act: None };
        let (one, two) = tokio::join!(orders.cancel(of_bob("a")), orders.cancel(of_bob("b")));
        let now =
            [one.unwrap(), two.unwrap()].into_iter().filter(|done| matches!(done, Cancelled::Now(_, 1, _))).count();
        assert_eq!(now, 1);
        eventually("p5 finished it", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(1));

        // Redis loses the sale: what it may sell is the same one unit.
        let redis = &world.servers.redis;
        let keys = redis.keys.of_warmed(0, &sale);
        world.redis(&[&["DEL"], keys.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat()).await;
        eventually("rebuilt", async || {
            let meta = redis.sale_keys.meta(&sale, 0).await.unwrap();
            meta.is_some_and(|meta| meta.epoch == 2 && meta.state.code() == "open")
        })
        .await;
        assert_eq!(redis.stock.units(&sale, 0).await.unwrap(), Some(1));
        let mut erin = 0;
        eventually("the last one", async || {
            erin = world.buy(&sale, "erin", 1, None).await.status;
            erin == 202
        })
        .await;
        eventually("nothing is left", async || world.buy(&sale, "frank", 1, None).await.status == 410).await;
        world.finish().await;
    });
}
