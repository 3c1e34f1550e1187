//! An api that may have few files open, and more buyers than that: it keeps what it needs for itself.

use crate::support::buyers::raw_http::{purchase_head, send_on};
use crate::support::processes::killable::ProcessOptions;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role;
use std::time::Duration;
use tokio::net::TcpStream;

/// As many as the api may have open; far more connections come.
const OPEN_FILES: u64 = 256;
const BODY: &str = "Content-Length: 14\r\n\r\n{\"quantity\":1}";

#[test]
fn more_connections_than_open_files_leave_the_operators_port_and_the_buyers_inside_served() {
    run(async {
        let world = World::with(&[Role::Relay, Role::Consumer], &[]).await;
        let sale = world.sale("crowded", 10, None).await;
        let sets = ["http.workers_count=2", "http.head_timeout_ms=60000", "http.keep_alive_s=60"];
        let options = ProcessOptions { sets: &sets, open_files: Some(OPEN_FILES), ..ProcessOptions::default() };
        let api = world.spawn("api", options);
        api.serves_buyers().await;
        let address = api.api_url().replace("http://", "");
        let mut crowd = Vec::new();
        for _ in 0..2 * OPEN_FILES {
            crowd.push(TcpStream::connect(&address).await.unwrap());
        }
        let inside = purchase_head(&world, sale.as_str(), "inside", BODY);
        assert_eq!(send_on(&mut crowd[0], inside.as_bytes()).await.status, 202);
        let operators = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().unwrap();
        for _ in 0..3 {
            let alive = operators.get(format!("http://{}/livez", api.admin())).send().await;
            assert!(alive.as_ref().is_ok_and(|answer| answer.status().is_success()), "{alive:?}");
        }
        drop(crowd);
        eventually("room for the next buyer", async || {
            world.buy_at(&api, sale.as_str(), "outside", None).await == Some(202)
        })
        .await;
        drop(api);
        world.finish().await;
    });
}
