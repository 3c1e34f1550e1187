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
use support::world::relay_state::parked;
use support::world::{World, eventually, run};

/// What the first version with the setting is started with beside others, and what is its own.
const OLD_FORM: &str = "redis.outbox_format=1";
const NEW_FORM: &str = "redis.outbox_format=2";
/// A retry or two, so that what nobody can read is parked within the test.
const FEW_ATTEMPTS: &str = "p4_persist.attempts_max=3";

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
        // The version before is gone.
        fleet.set_for_later(NEW_FORM);
        fleet.replace(Api, 0, THIS).await;
        fleet.finish_unnoticed().await;
    });
}

/// The same in reverse: the old form first, until no entry and no message of the new one is left.
#[test]
fn going_back_in_the_right_order_loses_and_parks_nothing() {
    run(async {
        let (world, sale) = old_world("back").await;
        migrate(&world);
        let mut fleet = Fleet::start(world, &sale, 1, &[NEW_FORM]).await;
        fleet.set_for_later(OLD_FORM);
        fleet.replace(Api, 0, THIS).await;
        eventually("nothing of the new form", async || {
            fleet.world.outbox().await == (0, 0) && fleet.world.waiting_in("seckill.").await == 0
        })
        .await;
        for role in [Api, Reconcile, Relay, Consumer] {
            fleet.replace(role, 0, BEFORE).await;
        }
        fleet.finish_unnoticed().await;
    });
}

/// The wrong order: a relay, a consumer and a reconciler of the version before meet the new form.
#[test]
fn entries_that_the_version_before_cannot_read_are_parked_and_persisted_from_the_ledger() {
    run(async {
        let (world, sale) = old_world("wrong").await;
        migrate(&world);
        let mut fleet = Fleet::start(world, &sale, 1, &[NEW_FORM, FEW_ATTEMPTS]).await;
        fleet.replace(Relay, 0, BEFORE).await;
        eventually("entries that the old relay parked", async || parked(&fleet.world).await > 0).await;
        fleet.replace(Consumer, 0, BEFORE).await;
        // Also when nobody of this version is left but the api.
        fleet.replace(Reconcile, 0, BEFORE).await;
        fleet.sells_on().await;
        let reports = fleet.all_confirmed().await;
        assert!(reports.iter().all(|report| report.accepted > 100), "too few to show anything");
        for role in [Consumer, Relay, Reconcile] {
            fleet.replace_quietly(role, 0, THIS).await;
        }
        eventually("a closed register", async || fleet.world.rows("failed_request", "status = 'open'").await == 0)
            .await;
        fleet.finish().await;
    });
}
