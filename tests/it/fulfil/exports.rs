//! All orders in one answer (L4): by HTTP as by command, whatever pages they are read in, and a few at once.

use crate::support::world::admin_port::{AdminPort, TOKEN};
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill_bench::baseline::mysql_bulk::{self as bulk, Bulk};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

/// A sale with this many orders.
async fn filled(world: &World, orders: u64) -> SaleId {
    let sale = world.sale("many", 100_000, Some(1)).await;
    bulk::prepare(&world.servers.db, &sale).await.unwrap();
    let bulk = Bulk { sale: &sale, shard: 0, number: 1, request_id: 1_000, count: orders };
    bulk::write(&world.servers.db, bulk).await.unwrap();
    sale
}

#[test]
fn all_orders_are_exported_newest_first_whatever_pages_they_are_read_in() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        filled(&world, 1_201).await;
        let answer = admin.get("/orders/export?sale=many").await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, "application/x-ndjson"),
            "{:.200}",
            answer.body
        );
        assert!(answer.header("content-disposition").contains("orders.ndjson"));
        let lines: Vec<Value> = answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ids: Vec<u64> = lines.iter().map(|line| line["request_id"].as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(ids, (1_000..2_201).rev().collect::<Vec<_>>());
        let listed = admin.get("/orders?sale=many&limit=1").await;
        assert_eq!(listed.json["orders"][0], lines[0], "the fields of the list");
        assert_eq!(world.cli(&["order", "export", "--sale", "many"]).exits(0).out, answer.body);

        let rest = admin.get("/orders/export?sale=many&cursor=1500").await;
        assert_eq!(rest.body.lines().count(), 500, "where an export was cut off, with a full page as its last");
        assert_eq!(world.cli(&["order", "export", "--cursor", "1500"]).exits(0).out, rest.body);
        let none = admin.get("/orders/export?buyer=nobody").await;
        assert_eq!((none.status, none.body.as_str()), (200, ""));
        for (query, status) in [("state=PAID", 422), ("cursor=0", 400), ("limit=5", 400)] {
            assert_eq!(admin.get(&format!("/orders/export?{query}")).await.status, status, "{query}");
        }
        world.stop_roles().await;
    });
}

/// A client that asks for everything and reads nothing.
async fn that_does_not_read(admin: &AdminPort) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let address = admin.url.trim_start_matches("http://").parse().unwrap();
    let mut client = socket.connect(address).await.unwrap();
    let request = format!("GET /admin/v1/orders/export HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    client.readable().await.unwrap();
    client
}

#[test]
fn two_exports_are_all_at_once_and_one_ends_when_its_client_goes() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        // More than the buffers of two sockets hold.
        filled(&world, 30_000).await;
        let slow = [that_does_not_read(&admin).await, that_does_not_read(&admin).await];
        let refused = admin.get("/orders/export?buyer=nobody").await;
        assert_eq!((refused.status, refused.code()), (429, "RATE_LIMITED".to_owned()), "{refused:?}");
        assert!((5..=10).contains(&refused.retry_after_s()), "{refused:?}");
        drop(slow);
        eventually("a place is free", async || admin.get("/orders/export?buyer=nobody").await.status == 200).await;
        world.stop_roles().await;
    });
}
