//! Settings of Redis that would lose accepted requests (B6; windows 2, 13, 14). `strict` sells nothing while one is
//! wrong, `warn` says so and goes on; eviction is never sold on.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::own_redis;
use crate::support::world::{World, eventually, run_waiting};
use seckill::admin::ServerProbe;
use seckill::roles::Role;
use seckill::runtime::Stopper;

/// (setting, what breaks it, what it has to be); the last one is never tolerated.
const SETTINGS: [(&str, &str, &str); 4] = [
    ("appendfsync", "everysec", "always"),
    ("no-appendfsync-on-rewrite", "yes", "no"),
    ("appendonly", "no", "yes"),
    ("maxmemory-policy", "allkeys-lru", "noeviction"),
];

async fn probe(world: &World) -> ServerProbe {
    let probes = world.probed(Role::Api).await;
    probes.into_iter().find(|probe| probe.name == "redis").expect("a probe")
}

#[test]
fn strict_sells_nothing_while_a_setting_breaks_the_promise() {
    run_waiting(async {
        let (_server, world) = own_redis::world("strict", &Role::ALL, &["redis.durability=strict"]).await;
        let sale = world.sale("strict", 100_000, None).await;
        let (token, request_id) = world.token(&sale, "alice").await;
        assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202);
        for (name, bad, good) in SETTINGS {
            world.config_set(name, bad).await;
            eventually("the entry refuses", async || world.buy(&sale, "bob", 1, None).await.status == 503).await;
            let refused = world.buy(&sale, "bob", 1, None).await;
            assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"), "{name}: {refused:?}");
            let stock = world.servers.redis.stock.units(&sale, 0).await.unwrap();
            assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 503);
            assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), stock, "{name}: nothing is accepted");
            let replay = world.buy(&sale, "alice", 1, Some(&token)).await;
            assert_eq!((replay.status, replay.text("request_id")), (202, request_id.clone()), "{name}: {replay:?}");
            let redis = probe(&world).await;
            let problem = redis.problem.unwrap_or_default();
            assert!(!redis.ok && problem.contains(&format!("{name} is {bad}, expected {good}")), "{name}: {problem}");
            world.config_set(name, good).await;
            eventually("it sells again", async || world.buy(&sale, "carol", 1, None).await.status == 202).await;
            assert!(probe(&world).await.ok, "{name}");
        }
        world.finish().await;
    });
}

#[test]
fn strict_lets_a_restarted_redis_sell_only_with_its_settings_right() {
    run_waiting(async {
        let (_server, world) = own_redis::world("strict-boot", &Role::ALL, &["redis.durability=strict"]).await;
        let sale = world.sale("boot", 100_000, None).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        for round in 0..5 {
            // As after a restart with another redis.conf: the next purchase comes long before the next reading of the settings.
            let mut raw = RawRedis::of(&world).await;
            raw.call(&["SCRIPT", "FLUSH"]).await;
            raw.call(&["CONFIG", "SET", "appendfsync", "everysec"]).await;
            let refused = world.buy(&sale, "bob", 1, None).await;
            assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"), "round {round}: {refused:?}");
            raw.call(&["CONFIG", "SET", "appendfsync", "always"]).await;
            eventually("it sells again", async || world.buy(&sale, "carol", 1, None).await.status == 202).await;
        }
        world.finish().await;
    });
}

#[test]
fn warn_says_so_and_goes_on() {
    run_waiting(async {
        let (_server, world) = own_redis::world("warn", &Role::ALL, &[]).await;
        let sale = world.sale("warn", 100_000, None).await;
        for (name, bad, good) in &SETTINGS[..3] {
            world.config_set(name, bad).await;
            let gauge = format!("seckill_p2_reserve_unsafe_setting{{setting=\"{name}\"}} 1");
            eventually("the gauge", async || seckill::telemetry::render().contains(&gauge)).await;
            assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202, "{name}");
            let redis = probe(&world).await;
            let warned = redis.warnings.iter().any(|warning| warning.contains(name));
            assert!(redis.ok && warned, "{name}: {redis:?}");
            world.config_set(name, good).await;
        }
        assert!(probe(&world).await.warnings.is_empty());
        let (name, bad, good) = SETTINGS[3];
        world.config_set(name, bad).await;
        eventually("eviction is refused", async || world.buy(&sale, "bob", 1, None).await.status == 503).await;
        assert!(!probe(&world).await.ok);
        world.config_set(name, good).await;
        eventually("it sells again", async || world.buy(&sale, "carol", 1, None).await.status == 202).await;
        world.finish().await;
    });
}

#[test]
fn the_api_does_not_open_before_the_settings_are_right() {
    run_waiting(async {
        let (_server, mut world) = own_redis::world("strict-start", &[], &["redis.durability=strict"]).await;
        world.config_set("appendfsync", "everysec").await;
        let stopper = Stopper::new();
        let running =
            seckill::roles::start(&world.settings, &[Role::Api], Default::default(), &stopper).expect("roles start");
        let address = running.api.expect("an address");
        let task = tokio::spawn(running.until_stopped(std::time::Duration::from_secs(10)));
        // Bound, so that the port is known, but not open.
        crate::support::world::time_passes(1_500).await;
        let refused = std::net::TcpStream::connect(address).map_err(|error| error.kind());
        assert_eq!(refused.err(), Some(std::io::ErrorKind::ConnectionRefused));
        let quick =
            reqwest::Client::builder().no_proxy().timeout(std::time::Duration::from_millis(300)).build().unwrap();
        assert!(quick.get(format!("http://{address}/v1/sales")).send().await.is_err(), "not served yet");
        world.config_set("appendfsync", "always").await;
        eventually("it opens", async || quick.get(format!("http://{address}/v1/sales")).send().await.is_ok()).await;
        stopper.stop();
        task.await.unwrap().unwrap();
        world.start_roles(&[Role::Api]).await;
        world.finish().await;
    });
}
