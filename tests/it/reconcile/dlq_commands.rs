//! The dead-letter desk (E5) through the real command line, over entries of every sort in both DLQs.

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::message;
use seckill::domain::operator::Actor;
use seckill::domain::policy::Quantity;
use seckill::p5_reconcile::dlq::{DlqAction, DlqActionResult, DlqSelection, DlqService};
use seckill::roles::Role::{Api, Consumer};
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::declare;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Who is parked where.
struct Parked {
    healthy_relay: RequestId,
    refused: RequestId,
    both: RequestId,
    healthy_mq: RequestId,
    ordered: RequestId,
    conflict: RequestId,
    damaged: RequestId,
}

/// One entry of every sort in each DLQ.
async fn parked(world: &World, sale: &SaleId) -> Parked {
    declare(&world.servers.rabbit).await.unwrap();
    let (healthy_relay, refused) = (world.bought(sale, "alice").await, world.bought(sale, "bob").await);
    let both = world.bought(sale, "gina").await;
    world.foreign_order(sale, "bob", 7).await;
    world.park_the_outbox().await;
    world.redis(&["XADD", &world.servers.redis.keys.relay_dlq(0), "*", "reason", "unreadable"]).await;

    let (healthy_mq, ordered) = (world.bought(sale, "carol").await, world.bought(sale, "dave").await);
    let (conflict, damaged) = (world.bought(sale, "eve").await, world.bought(sale, "frank").await);
    world.lose_the_outbox().await;
    for id in [ordered, conflict] {
        let accepted = world.accepted(sale, id).await;
        world.servers.rows.persister.persist_one(&accepted, PersistSource::Relay).await.unwrap();
    }
    for id in [healthy_mq, ordered, both] {
        world.park_request_in_mq(sale, id).await;
    }
    let mut forged = world.accepted(sale, conflict).await;
    forged.purchase.quantity = Quantity::new(2).unwrap();
    world
        .park_in_mq([
            (conflict.to_string(), message::encode(&forged).into_bytes(), "CONFLICT"),
            (damaged.to_string(), b"{\"v\":1,".to_vec(), "UNDECODABLE"),
            (String::new(), b"hello".to_vec(), "UNDECODABLE"),
        ])
        .await;
    Parked { healthy_relay, refused, both, healthy_mq, ordered, conflict, damaged }
}

fn entries(list: &Value) -> &Vec<Value> {
    list["entries"].as_array().unwrap()
}

/// Results by request id; those without one under an empty name.
fn results(report: &Value) -> Vec<(String, String)> {
    let done = report["done"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    done.map(|done| (text(&done["request_id"]), text(&done["result"]))).collect()
}

#[test]
fn entries_of_every_sort_are_listed_shown_and_replayed_exactly_once() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("desk", 100, Some(1)).await;
        let who = parked(&world, &sale).await;

        let list = world.cli(&["dlq", "list", "--json"]).exits(0).json();
        assert_eq!(entries(&list).len(), 10, "{list:#}");
        let outcome = |id: RequestId| {
            let of = entries(&list).iter().find(|entry| entry["request_id"] == id.to_string()).expect("listed");
            of["fate"].clone()
        };
        assert_eq!((outcome(who.ordered), outcome(who.healthy_mq)), (Value::from("ORDER"), Value::Null));
        let of_relay = world.cli(&["dlq", "list", "--json", "--source", "relay"]).exits(0).json();
        assert_eq!(entries(&of_relay).len(), 4, "{of_relay:#}");
        let table = world.cli(&["dlq", "list"]).exits(0).out;
        assert!(table.contains("alice") && table.contains("UNDECODABLE") && table.contains("unreadable"), "{table}");
        let shown = world.cli(&["dlq", "show", &who.damaged.to_string()]).exits(0).out;
        assert!(shown.contains("{\\\"v\\\":1,") && shown.contains("undecided"), "{shown}");
        world.cli(&["dlq", "show", "4711"]).exits(1);

        // A dry run prints the same and changes nothing.
        let before = world.dump(&sale).await;
        let dry = world.cli(&["dlq", "replay", "--all", "--dry-run", "--json"]).exits(1).json();
        assert!(results(&dry).contains(&(who.healthy_mq.to_string(), "would_land".to_owned())), "{dry:#}");
        assert!(results(&dry).contains(&(who.ordered.to_string(), "would_remove".to_owned())), "{dry:#}");
        assert_eq!(world.dump(&sale).await, before, "a dry run changes nothing");
        assert_eq!(world.rows("operator_acts", "action LIKE 'dlq.%'").await, 0);

        let done = world.cli(&["dlq", "replay", "--all", "--json"]).exits(1).json();
        for (id, result) in [
            (who.healthy_relay, "landed"),
            (who.refused, "refused"),
            (who.both, "landed"),
            (who.healthy_mq, "landed"),
            (who.ordered, "decided_before"),
            (who.conflict, "conflict"),
            (who.damaged, "landed"),
        ] {
            let mine: Vec<_> = results(&done).into_iter().filter(|(of, _)| *of == id.to_string()).collect();
            assert_eq!(mine, [(id.to_string(), result.to_owned())], "{done:#}");
        }
        let unreadable = results(&done).iter().filter(|(_, result)| result == "unreadable").count();
        assert_eq!(unreadable, 2, "{done:#}");
        assert_eq!(world.orders(&sale).await, 7, "six of ours and bob's other one");
        assert_eq!(world.status_of(&sale, "bob", who.refused).await, ("FAILED".into(), "DUPLICATE_BUYER".into()));
        assert_eq!(world.status_of(&sale, "frank", who.damaged).await.0, "CONFIRMED");

        // Three times the same is once: what had to stay stays, everything else is where it was.
        let after = world.dump(&sale).await;
        for _ in 0..2 {
            let again = world.cli(&["dlq", "replay", "--all", "--json"]).exits(1).json();
            assert_eq!(results(&again).len(), 3, "{again:#}");
            let named = world.cli(&["dlq", "replay", "--json", &who.both.to_string()]).exits(0).json();
            assert_eq!(results(&named), [(who.both.to_string(), "nothing_to_do".to_owned())]);
            assert_eq!(world.dump(&sale).await, after, "a repeated replay changes nothing");
        }
        audited(&world, &who).await;
        unknown_ones_go_by_name_only(&world, &sale).await;
        world.finish().await;
    });
}

/// Who did what to which request, and what came of it.
async fn audited(world: &World, who: &Parked) {
    let by = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let by = if by.is_empty() { "operator".to_owned() } else { by };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let by = format!("{by}@{}", host.trim());
    let of = |id: RequestId, code: &str| {
        format!(
            "action = 'dlq.replay' AND target_type = 'request' AND target_id = '{id}' AND code = '{code}' \
             AND actor_kind = 'person' AND actor_id = '{by}' AND auth_method = 'shell' AND sale_id = 'desk'"
        )
    };
    assert_eq!(world.rows("operator_acts", &of(who.both, "landed")).await, 1);
    let refused = format!("{} AND outcome = 'ok'", of(who.refused, "refused"));
    assert_eq!(world.rows("operator_acts", &refused).await, 1);
    let conflict = format!("{} AND outcome = 'failed'", of(who.conflict, "conflict"));
    assert_eq!(world.rows("operator_acts", &conflict).await, 3, "one each time it was tried");
    assert_eq!(world.rows("audit_runs", "TRUE").await, 0, "no run of the audit");
}

/// An entry that is no request of ours is given up by its exact name, and the act is recorded.
async fn unknown_ones_go_by_name_only(world: &World, sale: &SaleId) {
    world.cli(&["dlq", "give-up", "--all", "--reason", "clean up"]).exits(1);
    let list = world.cli(&["dlq", "list", "--json"]).exits(0).json();
    let names: Vec<String> = entries(&list).iter().map(|entry| entry["entry"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), 3, "{list:#}");
    for name in &names {
        world.cli(&["dlq", "give-up", name, "--reason", "not ours"]).exits(0);
    }
    let kept = "action = 'dlq.give_up' AND code = 'dropped' AND reason = 'not ours'";
    let hello = format!("{kept} AND target_type = 'entry' AND before_json LIKE '%\"message\":\"hello\"%'");
    assert_eq!((world.rows("operator_acts", kept).await, world.rows("operator_acts", &hello).await), (3, 1));
    assert!(world.cli(&["dlq", "list"]).exits(0).out.contains("nothing is parked"));
    assert_eq!(world.orders(sale).await, 7);
}

#[test]
fn what_was_given_up_is_failed_for_good_and_a_late_message_cannot_overturn_it() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("given-up", 10, Some(1)).await;
        declare(&world.servers.rabbit).await.unwrap();
        let id = world.bought(&sale, "henry").await;
        let late = message::encode(&world.accepted(&sale, id).await).into_bytes();
        world.lose_the_outbox().await;
        world.park_request_in_mq(&sale, id).await;
        assert_eq!(world.status_of(&sale, "henry", id).await.0, "QUEUED");
        world.cli(&["dlq", "give-up", &id.to_string()]).exits(64);
        world.cli(&["dlq", "give-up", &id.to_string(), "--reason", ""]).exits(64);
        world.cli(&["dlq", "give-up", &id.to_string(), "--reason", "refunded, ticket 4711"]).exits(0);
        let row = "status = 'failed_final' AND reason = 'GIVEN_UP' AND detail = 'refunded, ticket 4711'";
        assert_eq!(world.rows("failed_request", row).await, 1);
        assert_eq!(world.status_of(&sale, "henry", id).await, ("FAILED".into(), "GIVEN_UP".into()));
        assert!(world.mq_dlq().await.is_empty());

        // Windows 75 and 45: the message was on its way all the time, and a person replays a copy of it.
        let consumer = world.extra_roles(&[Consumer], |_| {});
        world.publish(&[late.clone(), late]).await;
        eventually("the late messages are gone", async || world.waiting_in("seckill.").await == 0).await;
        world.park_request_in_mq(&sale, id).await;
        let report = world.cli(&["dlq", "replay", "--all", "--json"]).exits(0).json();
        assert_eq!(results(&report), [(id.to_string(), "decided_before".to_owned())]);
        consumer.stop().await;
        assert_eq!((world.orders(&sale).await, world.rows("request_outcome", "kind = 'FAILED'").await), (0, 1));
        assert_eq!(world.status_of(&sale, "henry", id).await.0, "FAILED");
        assert_eq!(world.number("SELECT stock AS n FROM sales").await, 10, "the database never lost the unit");
        let left = world.servers.redis.stock.units(&sale, 0).await.unwrap();
        assert_eq!(left, Some(9), "nor was it given back to redis by itself (E4, window 90)");
        world.finish().await;
    });
}

#[test]
fn the_desk_goes_no_faster_than_its_rate() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("paced", 10, Some(1)).await;
        declare(&world.servers.rabbit).await.unwrap();
        let id = world.bought(&sale, "ida").await;
        let accepted = world.accepted(&sale, id).await;
        let unknown = (1..=600u64).map(|number| {
            let mut other = accepted.clone();
            other.purchase.request_id = RequestId::new(number).unwrap();
            (number.to_string(), message::encode(&other).into_bytes(), "ATTEMPTS_SPENT")
        });
        world.park_in_mq(unknown).await;
        let desk = DlqService { context: world.reconcile_context(), actor: Actor::at_the_terminal("test") };
        let all = DlqSelection { all: true, dry_run: true, ..DlqSelection::default() };
        let begun = Instant::now();
        let report = desk.apply(&DlqAction::Replay, &all, &|_, _| {}).await.unwrap();
        assert_eq!(report.done.iter().filter(|done| done.result == DlqActionResult::WouldLand).count(), 600);
        // 200 at once, then 200 a second.
        assert!(begun.elapsed() >= Duration::from_millis(1_900), "{:?}", begun.elapsed());
        world.servers.rows.persister.persist_one(&accepted, PersistSource::Replay).await.unwrap();
        world.finish().await;
    });
}
