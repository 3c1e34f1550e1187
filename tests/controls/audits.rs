//! What the audit compares, and at which moments.

use crate::scene::{PIPELINE, QUICK, details, found, found_at_last, given_up, held, lose_the_keys, rebuilt};
use crate::support::world::World;
use crate::{blind_without, harms_without};
use seckill::domain::ids::SaleId;
use seckill::faults::{Hold, Mechanism};
use seckill::orders::rows::CancelRequest;
use seckill::p5_reconcile::{Window, audit_sale};
use seckill::roles::Role::Reconcile;

#[test]
fn units_without_a_grant_hide_behind_a_grant_that_was_not_given() {
    blind_without(Mechanism::GrantsByName, async |_| {
        let world = World::with(&PIPELINE, &[]).await;
        let sale = world.sale("names", 10, Some(1)).await;
        // One is written and not given yet; Redis has as many units of a grant that the database has forgotten.
        assert!(world.servers.rows.grants.top_up(&sale, "late", 2).await.unwrap());
        let keys = &world.servers.redis.keys;
        world.redis(&["HSET", &keys.grants(0, &sale), "forgotten", "2"]).await;
        world.redis(&["INCRBY", &keys.stock(0, &sale), "2"]).await;
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn a_grant_that_redis_forgot_is_taken_for_one_that_is_still_to_be_given() {
    blind_without(Mechanism::MarksCompared, async |_| {
        let world = World::with(&PIPELINE, &[]).await;
        let sale = world.sale("marks", 10, Some(1)).await;
        world.sale_control().top_up(&sale, "more", 3).await.unwrap();
        let keys = &world.servers.redis.keys;
        world.redis(&["HDEL", &keys.grants(0, &sale), "more"]).await;
        world.redis(&["DECRBY", &keys.stock(0, &sale), "3"]).await;
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn failures_of_a_former_epoch_are_missed_in_the_books_of_the_next_one() {
    harms_without(Mechanism::FailuresOfAllEpochs, async |_| {
        let mut world = World::with(&PIPELINE, QUICK).await;
        let sale = world.sale("former", 10, Some(1)).await;
        given_up(&world, &sale, "alice").await;
        lose_the_keys(&world, &sale).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        let found = found_at_last(&world, &sale).await;
        world.stop().await;
        found
    });
}

/// What an audit finds that counts Redis, and reads the database when `meanwhile` has happened.
async fn found_later(world: &World, sale: &SaleId, meanwhile: impl Future<Output = ()>) -> Vec<String> {
    let counted = Hold::AuditCounted.hold();
    let (context, row) = (world.reconcile_context(), world.servers.rows.sales.get(sale).await.unwrap().unwrap());
    let audit = tokio::spawn(async move { audit_sale(&context, &row, Window::Now).await.unwrap() });
    held(1).await;
    counted.let_others_pass();
    meanwhile.await;
    drop(counted);
    details(&audit.await.unwrap())
}

#[test]
fn an_order_that_came_and_was_cancelled_since_redis_was_counted_is_a_false_alarm() {
    harms_without(Mechanism::CancelledAbove, async |_| {
        let world = World::with(&PIPELINE, &[]).await;
        let sale = world.sale("cancelled", 10, Some(1)).await;
        let found = found_later(&world, &sale, async {
            let alice = world.ordered(&sale, "alice").await;
            let request = CancelRequest { request_id: alice, buyer: None, reason: "r", by: "test", act: None };
            world.servers.rows.orders.cancel(request).await.unwrap();
        });
        let found = found.await;
        world.stop().await;
        found
    });
}

#[test]
fn a_failure_that_came_and_was_reclaimed_since_redis_was_counted_is_a_false_alarm() {
    harms_without(Mechanism::ReclaimedAbove, async |_| {
        let world = World::with(&PIPELINE, &[]).await;
        let sale = world.sale("reclaimed", 10, Some(1)).await;
        let found = found_later(&world, &sale, async {
            given_up(&world, &sale, "alice").await;
            world.servers.rows.grants.reclaim(&sale).await.unwrap().expect("a unit");
        });
        let found = found.await;
        world.stop().await;
        found
    });
}
