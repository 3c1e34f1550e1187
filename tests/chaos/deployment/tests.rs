//! Tests of the deployment itself: links, partitions and restarts do what a run relies on.

use super::{Deployment, Options};
use crate::clients::SaleSpec;
use crate::time::{eventually, run_waiting};
use seckill::roles::Role;
use std::time::Duration;

#[test]
fn every_process_has_links_of_its_own_and_a_partition_is_felt_by_one_alone() {
    run_waiting(async {
        let deployment = Deployment::start("deployment", Options::default()).await;
        let sale = SaleSpec { id: "one".to_owned(), stock: 10, limit: Some(1), pay_within_s: None };
        deployment.create_sale(&sale).await;
        for process in &deployment.processes {
            let of_role = match process.recipe.role {
                Role::Api => [&process.links.redis, &process.links.mysql],
                Role::Relay => [&process.links.redis, &process.links.amqp],
                Role::Consumer => [&process.links.amqp, &process.links.mysql],
                Role::Reconcile => [&process.links.redis, &process.links.mysql],
            };
            assert!(of_role.iter().all(|link| link.passed_bytes() > 0), "{}", process.name());
        }
        let relay = deployment.of(Role::Relay).next().expect("a relay");
        relay.links.amqp.change(|conditions| conditions.cut = true);
        eventually("the relay without a broker", async || !relay.reaches("rabbitmq").await).await;
        assert!(relay.is_ready().await, "a shared server's trouble takes no role out of service");
        let others = deployment.processes.iter().filter(|process| process.name() != relay.name());
        for other in others {
            assert!(other.is_ready().await && other.reaches("rabbitmq").await, "{}", other.name());
        }
        relay.kill();
        eventually("a second life", async || relay.lives() == 2).await;
        deployment.heal().await;
        assert!(relay.unordered_ends().is_empty());
        deployment.drained(Duration::from_secs(30)).await.expect("nothing is open");
        deployment.finish().await;
    });
}
