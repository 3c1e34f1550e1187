//! A ground that works is the first thing every run needs.

use super::{Ground, Options};
use crate::time::{eventually, run_waiting};
use seckill::roles::Role;
use std::time::Duration;

#[test]
fn every_process_has_links_of_its_own_and_a_partition_is_felt_by_one_alone() {
    run_waiting(async {
        let ground = Ground::start("ground", Options::default()).await;
        ground.create_sale("one", 10, Some(1)).await;
        for process in &ground.processes {
            let of_role = match process.recipe.role {
                Role::Api => [&process.links.redis, &process.links.mysql],
                Role::Relay => [&process.links.redis, &process.links.amqp],
                Role::Consumer => [&process.links.amqp, &process.links.mysql],
                Role::Reconcile => [&process.links.redis, &process.links.mysql],
            };
            assert!(of_role.iter().all(|link| link.passed_bytes() > 0), "{}", process.name());
        }
        let relay = ground.of(Role::Relay).next().expect("a relay");
        relay.links.amqp.change(|weather| weather.cut = true);
        eventually("the relay without a broker", async || !relay.is_ready().await).await;
        let others = ground.processes.iter().filter(|process| process.name() != relay.name());
        for other in others {
            assert!(other.is_ready().await, "{}", other.name());
        }
        relay.kill();
        eventually("a second life", async || relay.lives() == 2).await;
        ground.heal().await;
        assert!(relay.unordered_ends().is_empty());
        ground.drained(Duration::from_secs(30)).await.expect("nothing is open");
        ground.finish().await;
    });
}
