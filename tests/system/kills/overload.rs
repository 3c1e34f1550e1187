//! Redis stands still, and more comes in than one process may hold (A9, A10).

use crate::support::basics::answer::Answer;
use crate::support::processes::programs::signal;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run_waiting};
use futures::StreamExt;
use seckill::dev::ServerKind;
use seckill::dev::ports::free_port;
use seckill::roles::Role;

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
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let mut world = World::on_breakable(&servers, "in-flight", &[], &[]).await;
        let sale = world.sale("held", 10_000, Some(1)).await;
        let listen = format!("127.0.0.1:{}", free_port().expect("a port"));
        let (listens, places) = (format!("http.listen={listen}"), format!("p1_entry.in_flight_max={PLACES}"));
        // Redis is down for less than this: the held requests get their outcome.
        let patient = ["redis.command_timeout_ms=25000", "p2_reserve.deadline_ms=25000"];
        let mut api = world.process("api", "", &[&patient[..], &[&listens, &places]].concat());
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
            assert!((1..=3).contains(&answer.retry_after_s()), "{answer:?}");
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
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        let accepted = held.iter().filter(|answer| answer.status == 202).count() + 2;
        let ordered = usize::try_from(rest.settled(&sale).await.counted.ordered).unwrap();
        assert!((accepted..=PLACES + 2).contains(&ordered), "{accepted} were promised, {ordered} are ordered");
        rest.finish().await;
        world.stop().await;
    });
}
