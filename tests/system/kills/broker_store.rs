//! The store for RabbitMQ when the broker is killed or stands still. Nothing may hang, nothing may be believed.

use crate::support::world::fault_injection::{breakable_servers, port_of};
use crate::support::world::parts::rabbit_store::{config_on, order, send, send_many, until_closed, until_gone};
use crate::support::world::{eventually, run_waiting};
use seckill::dev::ServerKind;
use seckill::store::rabbit::{Consumer, PublishResult, Publisher, RabbitConfig, RabbitError, broker_info, declare};
use std::time::{Duration, Instant};

#[test]
fn a_killed_broker_is_noticed_at_once() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let config = config_on(&servers, "kill").await;
        let mut publisher = Publisher::connect(&config).await.unwrap();
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        assert_eq!(send(&mut publisher, order(&config, "0", 1)).await, PublishResult::Confirmed);
        servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
        let (one, two) = tokio::join!(until_closed(&mut publisher, &config), until_gone(&mut consumer));
        assert!(one < Duration::from_secs(3) && two < Duration::from_secs(3), "{one:?} {two:?}");
        assert!(matches!(broker_info(&config).await, Err(RabbitError::Connect { .. })));
    });
}

#[test]
fn a_frozen_broker_is_noticed_after_two_heartbeats() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let config = RabbitConfig { connect_timeout_ms: 8_000, ..config_on(&servers, "freeze").await };
        let mut publisher = Publisher::connect(&config).await.unwrap();
        let mut flooding = Publisher::connect(&config).await.unwrap();
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        servers.server(ServerKind::Rabbitmq).unwrap().pause().unwrap();
        // Fills the socket and the library's queue until a publish has to wait, and gives up in bounded time.
        let flood = async {
            let start = Instant::now();
            let body = vec![b'x'; 60_000];
            let error = loop {
                let big = seckill::store::rabbit::Outgoing::new(
                    seckill::store::rabbit::PublishRoute { exchange: "seckill.orders", key: "0" },
                    "1",
                    body.clone(),
                );
                if let Err(error) = flooding.publish(big).await {
                    break error;
                }
            };
            assert!(matches!(error, RabbitError::Timeout { .. } | RabbitError::Closed(_)), "{error}");
            assert!(!flooding.is_open());
            start.elapsed()
        };
        let (one, two, three) = tokio::join!(until_closed(&mut publisher, &config), until_gone(&mut consumer), flood);
        assert!(one.max(two).max(three) < Duration::from_secs(9), "{one:?} {two:?} {three:?}");
        drop((publisher, flooding, consumer));
        let start = Instant::now();
        let short = RabbitConfig { connect_timeout_ms: 500, ..config.clone() };
        assert!(matches!(declare(&short).await, Err(RabbitError::Timeout { .. })));
        assert!(start.elapsed() < Duration::from_secs(2));
        servers.server(ServerKind::Rabbitmq).unwrap().resume().unwrap();
        let mut publisher = Publisher::connect(&config).await.unwrap();
        assert_eq!(send(&mut publisher, order(&config, "0", 1)).await, PublishResult::Confirmed);
    });
}

#[test]
fn dropped_connections_leave_neither_tasks_nor_sockets_behind() {
    // Nothing else has tasks in this runtime, or connections to this broker while it is held.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut held = None;
    run_waiting(async {
        let servers = breakable_servers().await;
        held = Some((config_on(&servers, "drop").await, servers));
    });
    let (config, _servers) = held.unwrap();
    runtime.block_on(async {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        for _ in 0..5 {
            let mut publisher = Publisher::connect(&config).await.unwrap();
            let consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
            send_many(&mut publisher, (0..20).map(|n| order(&config, "0", n)), 5).await;
            drop((publisher, consumer));
        }
        eventually("no task and no socket", async || tasks() <= before && sockets(&config.urls[0]) == 0).await;
    });
}

/// Established connections to the broker's port.
fn sockets(url: &str) -> usize {
    let port: u16 = port_of(url);
    let peer = format!("0100007F:{port:04X} 01");
    std::fs::read_to_string("/proc/net/tcp").unwrap().lines().filter(|line| line.contains(&peer)).count()
}
