//! L7: a change of a sale while Redis takes no writes: it stays, the operator sees it, and Redis follows when it is back.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::own_redis;
use crate::support::world::{eventually, run_waiting};
use seckill::roles::Role::Api;
use seckill::runtime::now_ms;
use serde_json::json;

#[test]
fn a_change_that_redis_cannot_take_says_so_and_is_followed_later() {
    run_waiting(async {
        let (_server, world) = own_redis::world("not-followed", &[Api], &[]).await;
        let hour = 3_600_000;
        let times = (now_ms() + hour, now_ms() + 2 * hour);
        let sale = world.sale_with("late", 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = times).await;
        let admin = world.admin_port();
        let limit = async || {
            let meta = world.servers.redis.keys.meta(0, &sale);
            RawRedis::of(&world).await.hash(&meta).await["limit"].clone()
        };
        RawRedis::of(&world).await.call(&["CLIENT", "PAUSE", "600000", "WRITE"]).await;
        let edited = admin.post("/sales/late/edit", json!({ "limit": 4 })).await;
        assert_eq!((edited.status, edited.code().as_str()), (503, "UNAVAILABLE"), "{edited:?}");
        assert!(edited.text("detail").contains("changed in the database"), "{edited:?}");
        assert_eq!(world.number("SELECT per_user_limit AS n FROM sales WHERE sale_id = 'late'").await, 4);
        assert_eq!(limit().await, "1");
        RawRedis::of(&world).await.call(&["CLIENT", "UNPAUSE"]).await;
        eventually("the limit in redis", async || limit().await == "4").await;
        let failed = "outcome = 'failed' AND code = 'REDIS' AND action = 'sale.edit'";
        assert_eq!(world.rows("operator_acts", failed).await, 1, "on record, as it went");
        world.finish().await;
    });
}
