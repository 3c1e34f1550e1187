//! `rabbitmq.urls`: nodes are tried in turn, and a process stays with one until its connection there fails.

use crate::support::links::link::Link;
use crate::support::world::fault_injection::port_of;
use crate::support::world::parts::rabbit_store::config;
use crate::support::world::{World, eventually, run};
use seckill::config::{ServerUrl, Settings};
use seckill::roles::Role;
use seckill::store::rabbit::{Publisher, RabbitConfig};
use seckill_bench::vanishing_host::VanishingHost;
use std::time::Duration;

fn at(url: &str, port: u16) -> String {
    url.replace(&format!(":{}/", port_of(url)), &format!(":{port}/"))
}

#[test]
fn a_dead_and_a_frozen_node_are_passed_over_once() {
    run(async {
        let alone = config("nodes").await;
        let good = alone.urls[0].clone();
        // As a frozen node: it takes connections and never says a word.
        let frozen = Link::before(port_of(&good)).await;
        frozen.loses_answers(true);
        let urls = vec![at(&good, 1), frozen.url(&good), good];
        let cluster = RabbitConfig { heartbeat_s: 2, connect_timeout_ms: 1_000, ..RabbitConfig::of_nodes(urls) };
        drop(Publisher::connect(&cluster).await.expect("the third one"));
        let tried = frozen.connections();
        assert!(tried > 0, "in turn");
        drop(Publisher::connect(&cluster).await.expect("the one in use"));
        assert_eq!(frozen.connections(), tried, "a process stays with the node that it found");
        // None answers: an error within the time-outs, not a wait.
        let none = RabbitConfig { connect_timeout_ms: 300, ..RabbitConfig::of_nodes(cluster.urls[..2].to_vec()) };
        let answer = tokio::time::timeout(Duration::from_secs(20), Publisher::connect(&none)).await;
        assert!(answer.expect("a deadline").is_err());
    });
}

#[test]
fn orders_go_on_over_the_next_node_when_one_dies_or_falls_silent() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let good = world.settings.rabbitmq.url.expose().to_owned();
        let port = port_of(&good);
        let (first, second) = (VanishingHost::before(port).await.unwrap(), VanishingHost::before(port).await.unwrap());
        let urls = [1, first.port(), second.port()].map(|port| ServerUrl::new(at(&good, port)));
        let through = |settings: &mut Settings| settings.rabbitmq.urls = urls.to_vec().into();
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer], through);
        let sale = world.sale("nodes", 1_000, None).await;
        let lands = async |user: &str| {
            let id = world.bought(&sale, user).await;
            eventually(user, async || world.status_of(&sale, user, id).await.0 == "CONFIRMED").await;
        };
        lands("before").await;
        first.vanish();
        lands("silent").await;
        drop(first);
        lands("dead").await;
        second.vanish();
        lands("again").await;
        rest.stop().await;
        world.finish().await;
    });
}
