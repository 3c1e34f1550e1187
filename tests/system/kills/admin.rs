//! The admin API while a server is down.

use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run_waiting};
use seckill::dev::ServerKind;
use seckill::roles::Role::{self, Api};
use seckill::store::rabbit::declare;
use serde_json::Value;

#[test]
fn the_pipeline_shows_what_is_where_and_which_server_is_down() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "picture", &[Api], &[]).await;
        let admin = world.admin_port();
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("picture", 10, Some(1)).await;
        for user in ["a", "b", "c"] {
            world.bought(&sale, user).await;
        }
        let read = async || admin.get("/pipeline").await.json;
        eventually("three in the outbox", async || read().await["shards"][0]["outbox"] == 3).await;
        let seen = read().await;
        assert!(seen["servers"].as_array().unwrap().iter().all(|server| server["ok"] == true), "{seen:#}");
        let flow = &seen["sales"][0];
        assert_eq!(
            [&flow["granted"], &flow["admitted"], &flow["remaining"], &flow["landed"], &flow["accepted_requests"]]
                .map(Value::as_i64),
            [10, 3, 7, 0, 3].map(Some)
        );
        assert!(
            seen["leases"].as_array().is_some_and(|leases| !leases.is_empty()),
            "the api role has a node id: {seen:#}"
        );
        assert!(seen["leader"].is_null(), "no process reconciles");
        let away = async |name: &str| {
            let seen = read().await;
            let server = seen["servers"].as_array().unwrap().iter().find(|server| server["name"] == name).cloned();
            server.is_some_and(|server| server["ok"] == false && server["problem"].is_string())
        };

        let more = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], |_| {});
        eventually("all landed", async || read().await["sales"][0]["landed"] == 3).await;
        eventually("a leader", async || read().await["leader"]["connection"].is_i64()).await;
        servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
        eventually("the broker shown away", async || away("rabbitmq").await).await;
        let seen = read().await;
        assert!(seen["queues"].is_null() && seen["sales"][0]["landed"] == 3, "the others still answer: {seen:#}");
        servers.server(ServerKind::Rabbitmq).unwrap().restart().await.unwrap();
        eventually("the broker back", async || !away("rabbitmq").await && read().await["queues"].is_array()).await;
        more.stop().await;
        world.finish().await;
    });
}
