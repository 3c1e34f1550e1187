//! A withdrawal from a Redis that went back in time: an older copy was loaded, and no purchase has come to the boot fence since.

use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn units_that_only_an_older_redis_calls_unsold_are_not_taken() {
    run(async {
        let quick = ["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];
        let mut world = World::with(&[Api, Relay, Consumer], &quick).await;
        let sale = world.sale("rewound", 10, None).await;
        drop(world.sell(&sale, 6).await);
        assert_eq!(world.settled(&sale).await.counted.ordered, 6);
        let keys = &world.servers.redis.keys;
        let (meta, stock) = (keys.meta(0, &sale), keys.stock(0, &sale));
        world.redis(&["HSET", &meta, "number", "1"]).await;
        world.redis(&["SET", &stock, "9"]).await;
        let refused = world.cli(&["sale", "withdraw", "rewound", "9", "--name", "n"]).exits(1);
        assert!(refused.err.contains("until it is rebuilt"), "{refused:?}");
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(9), "nothing left");
        world.cli(&["sale", "rebuild", "rewound"]).exits(0);
        world.start_roles(&[Reconcile]).await;
        let open = async || world.rows("stock_withdrawals", "taken IS NULL").await;
        eventually("p5 finished it after the rebuild", async || open().await == 0).await;
        let audit = world.settled(&sale).await;
        assert!(audit.consistent(), "{audit:#?}");
        assert_eq!((audit.counted.withdrawn, audit.counted.database_stock), (4, 0), "what was really unsold");
        world.finish().await;
    });
}
