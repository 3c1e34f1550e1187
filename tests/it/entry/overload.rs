//! Group A: more comes in at once than one process may hold (A10, A9), and clients that are slow on purpose. Whoever is one
//! too many hears so at once; nobody else notices.

use super::answer::Answer;
use super::hands::breakable;
use super::procs::signal;
use super::wire::purchase_head;
use super::world::{World, eventually, run};
use futures::StreamExt;
use seckill::crowd;
use seckill::dev::ServerKind;
use seckill::dev::ports::free_port;
use seckill::roles::Role;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Places of the processes under test.
const PLACES: usize = 32;

/// Memory of a process, KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.split_whitespace().next().and_then(|size| size.parse().ok()).expect("a number")
}

#[test]
fn while_redis_stands_still_a_process_holds_what_it_may_and_refuses_the_rest_at_once() {
    run(async {
        let mut servers = breakable().await;
        let mut world = World::on_breakable(&servers, "in-flight", &[], &[]).await;
        let sale = world.sale("held", 10_000, Some(1)).await;
        let listen = format!("127.0.0.1:{}", free_port().expect("a port"));
        let (listens, places) = (format!("http.listen={listen}"), format!("p1_entry.in_flight_max={PLACES}"));
        // Redis is away for less than this: the ones that are held hear what became of them.
        let patient = ["redis.command_timeout_ms=25000", "p2_reserve.deadline_ms=25000"];
        let mut api = world.mortal("api", "", &[&patient[..], &[&listens, &places]].concat());
        world.api = format!("http://{listen}");
        eventually("it sells", async || {
            let bought = world.request(reqwest::Method::POST, "/v1/sales/held/orders", "first");
            bought
                .json(&serde_json::json!({}))
                .send()
                .await
                .is_ok_and(|answer| matches!(answer.status().as_u16(), 202 | 409))
        })
        .await;
        let before_kib = resident_kib(api.program.pid());

        servers.server(ServerKind::Redis).unwrap().pause().expect("it stands still");
        let buyers = (0..4_000).map(|n| {
            let (world, sale) = (&world, &sale);
            async move { world.buy(sale, &format!("crowd-{n}"), 1, None).await }
        });
        let mut flood = futures::stream::iter(buyers).buffer_unordered(128);
        for n in 0..4_000 - PLACES {
            let answer = flood.next().await.expect("an answer");
            assert_eq!((answer.status, answer.code().as_str()), (503, "P1-S8"), "{n}: {answer:?}");
            assert_eq!(answer.header("retry-after"), "1", "{answer:?}");
        }
        let grown_kib = resident_kib(api.program.pid()).saturating_sub(before_kib);
        assert!(grown_kib < 64 * 1024, "{grown_kib} KiB for 4,000 requests of which it holds {PLACES}");
        servers.server(ServerKind::Redis).unwrap().resume().expect("it goes on");
        let held: Vec<Answer> = flood.collect().await;
        assert_eq!(held.len(), PLACES);
        for answer in &held {
            assert!(matches!(answer.status, 202 | 504), "{answer:?}");
        }
        assert_eq!(world.buy(&sale, "late", 1, None).await.status, 202, "there is room again");

        signal(api.program.pid(), libc::SIGTERM);
        assert_eq!(api.program.ended().await, Some(0));
        let rest = world.beside(&[Role::Relay, Role::Consumer], &[]).await;
        let told = held.iter().filter(|answer| answer.status == 202).count() + 2;
        let ordered = usize::try_from(rest.settled(&sale).await.counted.ordered).unwrap();
        assert!((told..=PLACES + 2).contains(&ordered), "{told} were promised, {ordered} are ordered");
        rest.finish().await;
        world.stop().await;
    });
}

#[test]
fn ten_thousand_requests_on_a_few_places_are_answered_and_what_is_promised_is_kept() {
    run(async {
        let world = World::with(&Role::ALL, &["p1_entry.in_flight_max=4"]).await;
        let sale = world.sale("flooded", 500, Some(1)).await;
        let mut plan = world.crowd(&sale, 10_000);
        (plan.connections, plan.max_retries, plan.timeout_ms) = (256, 0, 60_000);
        let report = crowd::run(plan).await.expect("a run");
        assert_eq!((report.unresolved, report.accepted_twice), (0, 0), "{report:?}");
        let mut answers = BTreeMap::new();
        for row in report.by_status.rows() {
            answers.insert((row.status, row.code.clone()), row.count);
            assert!(matches!((row.status, row.code.as_str()), (202 | 410, _) | (503, "P1-S8")), "{row:?}");
        }
        assert!(report.by_status.code(503, "P1-S8") > 0, "{answers:?}");
        assert_eq!(answers.values().sum::<u64>(), 10_000, "{answers:?}");
        let counted = world.settled(&sale).await.counted;
        assert_eq!(counted.ordered.unsigned_abs(), report.accepted, "{answers:?}");
        world.finish().await;
    });
}

#[test]
fn bodies_that_never_come_hold_no_place() {
    run(async {
        let set = ["p1_entry.in_flight_max=1", "http.body_timeout_ms=60000"];
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &set).await;
        let sale = world.sale("lazy", 10, None).await;
        let address = world.api.strip_prefix("http://").unwrap();
        let mut lazy = Vec::new();
        for n in 0..50 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = purchase_head(&world, sale.as_str(), &format!("lazy-{n}"), "Content-Length: 14\r\n\r\n{\"quan");
            stream.write_all(head.as_bytes()).await.unwrap();
            lazy.push(stream);
        }
        for n in 0..5 {
            assert_eq!(world.buy(&sale, &format!("quick-{n}"), 1, None).await.status, 202);
        }
        // And one of them was under way all the time.
        lazy[7].write_all(b"tity\":1}").await.unwrap();
        let mut answer = [0; 12];
        lazy[7].read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 202");
        drop(lazy);
        world.finish().await;
    });
}

#[test]
fn silent_connections_keep_nobody_out_for_longer_than_a_head_may_take() {
    run(async {
        let set =
            ["http.workers_count=1", "http.connections_max=8", "http.head_timeout_ms=1500", "http.keep_alive_s=1"];
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &set).await;
        let sale = world.sale("silent", 10, None).await;
        let address = world.api.strip_prefix("http://").unwrap();
        let mut silent = Vec::new();
        for n in 0..32 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if n % 2 == 0 {
                stream.write_all(b"POST /v1/sales/silent/orders HTTP/1.1\r\nHost: sec").await.unwrap();
            }
            silent.push(stream);
        }
        // A client of its own: the world's may have a connection from before.
        let fresh = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        let begun = Instant::now();
        let buy = fresh.post(format!("{}/v1/sales/{sale}/orders", world.api)).bearer_auth(world.access("patient"));
        let answer = Answer::of(buy.json(&serde_json::json!({}))).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        assert!(begun.elapsed() >= Duration::from_millis(1_000), "the bound held him back: {:?}", begun.elapsed());
        for stream in &mut silent {
            let mut rest = Vec::new();
            let closed = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await;
            assert!(closed.is_ok(), "a silent connection is closed");
        }
        world.finish().await;
    });
}

#[test]
fn a_process_that_takes_in_its_rate_says_when_to_come_back() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &["p1_entry.global_rate_per_s=3"]).await;
        let sale = world.sale("rated-all", 1_000, Some(1)).await;
        let mut refused = 0;
        let begun = Instant::now();
        for n in 0..30 {
            let answer = world.buy(&sale, &format!("buyer-{n}"), 1, None).await;
            if answer.status != 202 {
                assert_eq!((answer.code().as_str(), answer.header("retry-after")), ("RATE_LIMITED", "1"), "{answer:?}");
                refused += 1;
            }
        }
        assert!(30 - refused <= 3 + 3 * (1 + begun.elapsed().as_secs()), "{refused} of 30 refused");
        world.finish().await;
    });
}
