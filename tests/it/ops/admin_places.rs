//! Calls of the admin API that wait, and connections that say nothing, keep no probe from its answer.

use crate::support::basics::answer::Answer;
use crate::support::world::admin_port::{AdminPort, VIEWER, named_tokens};
use crate::support::world::database_sessions::Session;
use crate::support::world::{World, eventually, run};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use seckill::roles::Role::Api;
use std::io::ErrorKind;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// More connections than the port had at all before.
const SILENT: usize = 300;

async fn probe(admin: &AdminPort, path: &str) -> u16 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    Answer::of(client.get(format!("{}{path}", admin.url))).await.status
}

#[test]
fn audits_for_callers_do_not_queue_and_probes_pass_them() {
    run(async {
        let world = World::with(&[Api], &[&named_tokens()]).await;
        let admin = world.admin_port();
        world.sale("audited", 5, None).await;
        let audit = async || admin.call("get", "/sales/audited/audit?now=true", Some(VIEWER), None).await;
        let mut other = Session::open(&world).await;
        // The first audit waits for this table, and has the only place.
        other.run("LOCK TABLES request_outcome WRITE").await;
        let mut flood: FuturesUnordered<_> = (0..100).map(|_| audit()).collect();
        // All but the one that has the place are answered while it has it.
        for _ in 0..99 {
            let answer = flood.next().await.unwrap();
            assert_eq!((answer.status, answer.retry_after_s() > 0), (429, true), "{answer:?}");
        }
        for path in ["/livez", "/metrics"] {
            assert_eq!(probe(&admin, path).await, 200, "{path}");
        }
        other.run("UNLOCK TABLES").await;
        assert_eq!(flood.next().await.unwrap().status, 200);
        eventually("an audit for somebody", async || audit().await.status == 200).await;
        world.finish().await;
    });
}

#[test]
fn connections_that_say_nothing_keep_no_probe_from_its_answer() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let admin = world.admin_port();
        let address = admin.url.strip_prefix("http://").unwrap().to_owned();
        let is_open = |stream: &TcpStream| {
            stream.try_read(&mut [0; 1]).err().is_some_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        // Each has a deadline, so those that were opened first may be closed before the last is there.
        eventually("an answer beside them", async || {
            let mut silent = Vec::new();
            for _ in 0..SILENT {
                let mut stream = TcpStream::connect(&address).await.unwrap();
                stream.write_all(b"GET /livez HTTP/1.1\r\nHost: half").await.unwrap();
                silent.push(stream);
            }
            let status = probe(&admin, "/livez").await;
            status == 200 && silent.iter().filter(|stream| is_open(stream)).count() > 256
        })
        .await;
        world.finish().await;
    });
}
