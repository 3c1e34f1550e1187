//! The reconciler dies at each of its crash points (F19, F20, F21), and the next one does the rest; and what giving
//! units back would do, were it not left out (window 90).

use crate::support::processes::programs::{Folder, Program};
use crate::support::world::{World, eventually, run};
use seckill::p5_reconcile::{FindingKind, Window};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::declare;

/// A reconciler with fault points armed.
fn armed(world: &World, folder: &Folder, faults: &str, set: &[&str]) -> Program {
    let mut args = world.sets();
    for set in ["admin.listen=127.0.0.1:0", "p5_reconcile.interval_ms=100"].iter().chain(set) {
        args.extend(["--set".to_owned(), (*set).to_owned()]);
    }
    args.extend(["--role", "reconcile"].map(str::to_owned));
    Program::armed(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>(), faults)
}

/// It kills itself: no exit code.
async fn dies(mut program: Program) {
    assert_eq!(program.ended().await, None, "{}", program.stderr());
}

#[test]
fn a_reconciler_that_dies_in_the_middle_of_a_repair_leaves_it_done_or_not_done() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let folder = Folder::new("crash");
        let sale = world.sale("dies", 100, Some(1)).await;
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        world.foreign_order(&sale, "bob", 7).await;
        world.lose_the_outbox().await;
        let before = world.dump(&sale).await;
        dies(armed(&world, &folder, "F19=return", &[])).await;
        assert_eq!(world.dump(&sale).await, before, "it had only read");

        dies(armed(&world, &folder, "F20=return", &[])).await;
        assert_eq!((world.orders(&sale).await, world.rows("request_outcome", "epoch > 0").await), (2, 2));
        let ledger = world.redis(&["HGET", &world.servers.redis.keys.ledger(0, &sale), &alice.to_string()]).await;
        assert!(ledger.as_str().unwrap().starts_with('Q'), "written, the ledger unchanged: {ledger}");

        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        eventually("alice's ledger record", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED")
            .await;
        eventually("bob's ledger record", async || world.status_of(&sale, "bob", bob).await.0 == "FAILED").await;
        reconcile.stop().await;
        assert_eq!((world.orders(&sale).await, world.rows("request_outcome", "epoch > 0").await), (2, 2), "once");
        world.finish().await;
    });
}

#[test]
fn a_reconciler_that_dies_after_trimming_leaves_sums_that_hold() {
    run(async {
        let trims = ["p1_entry.token_ttl_s=1", "p5_reconcile.ledger_retention_s=6"];
        let world = World::with(&[Api, Relay, Consumer], &trims).await;
        let sale = world.sale("trims", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        eventually("an order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        let folder = Folder::new("trims");
        // Passes while the record is too young, dies behind the trimming that took it.
        let left = async || world.servers.redis.ledger.page(&sale, 0, "0", 10).await.unwrap().records.len();
        let mut deaths = 0;
        while left().await > 0 {
            dies(armed(&world, &folder, "F21=return", &trims)).await;
            deaths += 1;
        }
        assert!(deaths > 0);
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.accepted == 1, "{audit:#?}");
        world.finish().await;
    });
}

#[test]
fn giving_parked_units_back_is_what_the_audit_would_find() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let folder = Folder::new("back");
        let sale = world.sale("back", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        world.park_the_outbox().await;
        let armed = armed(&world, &folder, "no_give_back=return", &[]);
        eventually("the forbidden thing", async || {
            world.servers.redis.stock.units(&sale, 0).await.unwrap() == Some(10)
        })
        .await;
        eventually("the order all the same", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED")
            .await;
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(audit.findings.first().map(|finding| finding.kind), Some(FindingKind::Unbalanced), "{audit:#?}");
        drop(armed);
        // As it should have been.
        world.redis(&["DECRBY", &world.servers.redis.keys.stock(0, &sale), "1"]).await;
        world.finish().await;
    });
}
