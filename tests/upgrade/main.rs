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
use support::world::{World, run};

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

/// As docs/operations.md says, "Upgrade".
#[test]
fn an_upgrade_under_load_loses_and_parks_nothing() {
    run(async {
        let (world, sale) = old_world("upgrade").await;
        let mut fleet = Fleet::start_version(world, &sale, 1, (&[OLD_FORM], BEFORE)).await;
        migrate(&fleet.world);
        fleet.sells_on().await;
        for role in [Consumer, Relay, Reconcile, Api] {
            fleet.replace(role, 0, THIS).await;
        }
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
