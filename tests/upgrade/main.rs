//! The version before and this one on the same servers: `make upgrade`. Needs a build of the version before, so it is no part of
//! `make test`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, unused_imports, reason = "each binary uses a part of the harness")]
#[path = "../support/mod.rs"]
mod support;

use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use support::processes::fleet::{BEFORE, Fleet, THIS, build_before};
use support::processes::programs::seckill;
use support::world::{World, eventually, run};

/// What a file of 0.2.0 may have: one order an entry. This version takes it, and writes and reads on.
const OLD_FORM: &str = "redis.outbox_format=1";

/// A command of the version before, which must succeed.
fn before(world: &World, args: &[&str]) {
    let output = world.binary(&build_before(), "", args).output().expect("the version before runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A database of the version before, and a sale that it has made and warmed.
async fn old_world(sale: &str) -> (World, SaleId) {
    let world = World::with(&[], &[]).await;
    let name = world.database().to_owned();
    world.sql(&format!("DROP DATABASE {name}; CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")).await;
    before(&world, &["migrate"]);
    let (starts, ends) = ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
    let what = ["sale", "create", "--id", sale, "--product", "p", "--title", "t", "--stock", "1000000", "--limit", "1"];
    before(&world, &[what.as_slice(), &["--starts-at", starts, "--ends-at", ends, "--warm"]].concat());
    (world, SaleId::parse(sale).unwrap())
}

/// The migrations of this version, while the version before sells.
fn migrate(world: &World) {
    let this = std::path::PathBuf::from(seckill(&[]).get_program());
    let output = world.binary(&this, "", &["migrate"]).output().expect("migrate runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// An operator cancels an order with the version before, which may know no states of orders.
async fn cancel_before(world: &World) {
    const STANDING: &str = "cancelled_at IS NULL";
    eventually("an order", async || world.rows("orders", STANDING).await > 0).await;
    let order = format!("SELECT CAST(MIN(request_id) AS SIGNED) AS n FROM orders WHERE {STANDING}");
    let order = world.number(&order).await.to_string();
    before(world, &["order", "cancel", &order, "--reason", "a test"]);
}

/// As docs/operations.md says, "Upgrade". Orders that the version before cancels, on its tables and on those of this one, are
/// cancelled for the books of this one, too.
#[test]
fn an_upgrade_under_load_loses_and_parks_nothing() {
    run(async {
        let (world, sale) = old_world("upgrade").await;
        let mut fleet = Fleet::start_version(world, &sale, 1, (&[OLD_FORM], BEFORE)).await;
        cancel_before(&fleet.world).await;
        migrate(&fleet.world);
        cancel_before(&fleet.world).await;
        fleet.sells_on().await;
        for role in [Consumer, Relay, Reconcile, Api] {
            fleet.replace(role, 0, THIS).await;
        }
        assert_eq!(fleet.world.rows("orders", "cancelled_at IS NOT NULL").await, 2);
        fleet.finish_unnoticed().await;
    });
}

/// The same in reverse.
#[test]
fn going_back_in_the_right_order_loses_and_parks_nothing() {
    run(async {
        let (world, sale) = old_world("back").await;
        migrate(&world);
        let mut fleet = Fleet::start(world, &sale, 1, &[]).await;
        for role in [Api, Reconcile, Relay, Consumer] {
            fleet.replace(role, 0, BEFORE).await;
        }
        fleet.finish_unnoticed().await;
    });
}

/// The api first on the way up, half of the way back, and all of it: each version meets what the other one wrote.
#[test]
fn the_wrong_order_loses_and_parks_nothing() {
    run(async {
        let (world, sale) = old_world("wrong").await;
        migrate(&world);
        let mut fleet = Fleet::start_version(world, &sale, 1, (&[OLD_FORM], BEFORE)).await;
        for (role, version) in
            [(Api, THIS), (Relay, THIS), (Relay, BEFORE), (Reconcile, THIS), (Consumer, THIS), (Consumer, BEFORE)]
        {
            fleet.replace(role, 0, version).await;
        }
        for role in [Reconcile, Api, Consumer, Relay] {
            fleet.replace(role, 0, THIS).await;
        }
        fleet.finish_unnoticed().await;
    });
}
