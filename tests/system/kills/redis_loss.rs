//! Redis loses data: rewound to an older file, and emptied. The sale closes, is rebuilt from the database under its next
//! epoch, and goes on with its buyers, limits and replays (A6, E7, boot fence).

use crate::support::buyers::winners::{buy_at_last, sells_again};
use crate::support::processes::programs::scratch;
use crate::support::world::{ALONE, World, eventually, run_waiting};
use seckill::dev::{PrivateServers, ServerKind};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::Window;
use seckill::roles::Role;
use std::path::Path;

/// Replaces a folder by a copy of another.
fn copy(from: &Path, to: &Path) {
    std::fs::remove_dir_all(to).ok();
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

async fn buy_all(world: &World, sale: &SaleId, buyers: std::ops::Range<u32>) -> Vec<(String, String, String)> {
    let mut bought = Vec::new();
    for n in buyers {
        let user = format!("buyer-{n}");
        let (token, request_id) = world.token(sale, &user).await;
        let answer = world.buy(sale, &user, 1, Some(&token)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        bought.push((user, token, request_id));
    }
    for (user, _, request_id) in &bought {
        let status = world.status(sale, user, request_id, 20).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
    }
    bought
}

#[test]
fn a_rewound_and_an_emptied_redis_sell_nothing_twice() {
    run_waiting(async {
        let dir = scratch("redis-loss");
        let mut servers = PrivateServers::start(&dir, &|_progress| {}).await.unwrap();
        let urls = servers.urls();
        let world = World::on(
            (&urls.redis_url, &urls.amqp_url, &urls.mysql_url),
            "loss",
            &Role::ALL,
            &["p5_reconcile.quiet_ms=1000", "p1_entry.cache_ttl_ms=50"],
        )
        .await;
        let sale = world.sale("rewound", 12, Some(1)).await;
        let mut winners = buy_all(&world, &sale, 0..3).await;

        // An old state of the disk is kept, selling goes on, the old state comes back.
        let data = servers.dir().join("redis").join("appendonlydir");
        let old = scratch("redis-loss-old");
        servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
        copy(&data, &old);
        servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
        eventually("redis is back", async || world.servers.redis.health.ping().await.is_ok()).await;
        winners.push(buy_at_last(&world, &sale, "buyer-3").await);
        winners.extend(buy_all(&world, &sale, 4..6).await);
        servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
        copy(&old, &data);
        servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
        eventually("redis is back", async || world.servers.redis.health.ping().await.is_ok()).await;
        assert_eq!(world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().unwrap().number, 3, "it was rewound");
        eventually("the fence closes the sale", async || world.buy(&sale, "late", 1, None).await.code() == "P1-S7")
            .await;
        sells_again(&world, &sale, &winners, 2).await;

        // Emptied: nothing is left at all.
        winners.extend(buy_all(&world, &sale, 6..9).await);
        let flushed = std::process::Command::new(
            seckill::dev::server_program(seckill::dev::ServerKind::Redis, "redis-cli").unwrap(),
        )
        .args(["-u", &urls.redis_url, "FLUSHALL"])
        .output()
        .unwrap();
        assert!(flushed.status.success());
        assert!(!world.audit(&sale, Window::Ms(5_000)).await.consistent(), "the audit says so");
        sells_again(&world, &sale, &winners, 3).await;

        // Exactly the rest is sold.
        winners.extend(buy_all(&world, &sale, 9..12).await);
        let over = world.buy(&sale, "too-late", 1, None).await;
        assert_eq!(over.status, 410, "{over:?}");
        let audit = world.settled(&sale).await;
        assert_eq!((audit.counted.ordered, audit.counted.database_stock), (12, 0), "{audit:#?}");
        world.finish().await;
        servers.stop().await.unwrap();
    });
}

#[test]
fn what_was_accepted_before_the_rewind_is_persisted_in_its_old_epoch_before_the_sale_is_rebuilt() {
    run_waiting(async {
        let dir = scratch("redis-loss-epoch");
        let mut servers = PrivateServers::start(&dir, &|_progress| {}).await.unwrap();
        let urls = servers.urls();
        let set = ["p5_reconcile.quiet_ms=1000", "p1_entry.cache_ttl_ms=50", ALONE[0], ALONE[1]];
        let urls = (urls.redis_url.as_str(), urls.amqp_url.as_str(), urls.mysql_url.as_str());
        let world = World::on(urls, "epoch", &[Role::Api, Role::Relay], &set).await;
        let sale = world.sale("epoch", 12, Some(1)).await;
        let data = servers.dir().join("redis").join("appendonlydir");
        let old = scratch("redis-loss-epoch-old");
        servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
        copy(&data, &old);
        servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
        world.redis_is_back().await;
        // Accepted and on the broker; no consumer lands it, and the database has seen one of them only.
        let mut winners = Vec::new();
        for n in 0..5 {
            winners.push(buy_at_last(&world, &sale, &format!("early-{n}")).await);
        }
        eventually("all on the broker", async || {
            world.outbox().await == (0, 0) && world.waiting_in("seckill.orders").await == 5
        })
        .await;
        let landing = world.extra_roles(&[Role::Consumer], |_| {});
        eventually("the database has seen them", async || world.orders(&sale).await == 5).await;
        landing.stop().await;
        winners.push(buy_at_last(&world, &sale, "late").await);
        eventually("the last one too", async || world.waiting_in("seckill.orders").await == 1).await;

        servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
        copy(&old, &data);
        servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
        world.redis_is_back().await;
        eventually("the fence closes the sale", async || world.buy(&sale, "new", 1, None).await.code() == "P1-S7")
            .await;
        // The reconcile role alone must not rebuild: a message of the sale still waits.
        let reconcile = world.extra_roles(&[Role::Reconcile], |_| {});
        crate::support::world::time_passes(4_000).await;
        let meta = world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().unwrap();
        assert_eq!((meta.state.code(), meta.epoch), ("frozen", 1), "not while something is on its way");
        let landing = world.extra_roles(&[Role::Consumer], |_| {});
        sells_again(&world, &sale, &winners, 2).await;
        let old_epoch = world.rows("request_outcome", "kind = 'ORDER' AND epoch = 1").await;
        assert_eq!(old_epoch, 6, "accepted before, landed after, in the epoch they were accepted in");
        for n in 0..6 {
            assert_eq!(world.buy(&sale, &format!("new-{n}"), 1, None).await.status, 202);
        }
        assert_eq!(world.buy(&sale, "too-late", 1, None).await.status, 410, "exactly the rest is sold");
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.ordered, counted.database_stock, counted.redis_stock), (12, 0, 0));
        reconcile.stop().await;
        landing.stop().await;
        world.finish().await;
        servers.stop().await.unwrap();
    });
}
