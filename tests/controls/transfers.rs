//! Transfers between two buckets, on one server: what each side remembers, and what fence and audit compare.

use crate::scene::{PIPELINE, ROUNDS_MS, found, lose_the_keys, rebuilt, take, units, with_queues};
use crate::support::processes::own_redis;
use crate::support::world::parts::buckets::buyer_of;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, blind_without, harms_without};
use seckill::domain::ids::SaleId;
use seckill::faults::Mechanism;
use seckill::p5_reconcile::finish_transfers;
use seckill::roles::Role::{Api, Reconcile};
use seckill::store::rabbit::declare;
use seckill::store::redis::Transfer;

const TWO: &[&str] = &["redis.shards=2", "p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];

/// Twenty units in two buckets.
async fn two_buckets(name: &str, roles: &[seckill::roles::Role]) -> (World, SaleId) {
    let world = with_queues(roles, TWO).await;
    let sale = world.sale(name, 20, None).await;
    (world, sale)
}

async fn give(world: &World, sale: &SaleId, transfer: &Transfer) {
    world.servers.redis.transfers.give(sale, transfer).await.unwrap();
}

async fn forget(world: &World, sale: &SaleId, transfer: &Transfer) {
    world.servers.redis.transfers.forget(sale, transfer).await.unwrap();
}

/// What P5 does with the records that it finds.
async fn finished(world: &World, sale: &SaleId) {
    let row = world.servers.rows.sales.get(sale).await.unwrap().unwrap();
    finish_transfers(&world.servers.redis.transfers, 2, &row).await.unwrap();
}

async fn ends(world: World, sale: &SaleId) -> Vec<String> {
    let found = found(&world, sale).await;
    world.stop().await;
    found
}

#[test]
fn units_are_in_no_bucket_when_their_source_keeps_no_record() {
    harms_without(Mechanism::TransferRecord, async |_| {
        let (world, sale) = two_buckets("record", &[]).await;
        take(&world, &sale, 0, 1, 4).await;
        finished(&world, &sale).await;
        ends(world, &sale).await
    });
}

#[test]
fn a_gift_that_is_repeated_gives_units_again_without_its_number() {
    harms_without(Mechanism::GivenOnce, async |_| {
        let (world, sale) = two_buckets("once", &[]).await;
        let transfer = take(&world, &sale, 0, 1, 4).await;
        give(&world, &sale, &transfer).await;
        finished(&world, &sale).await;
        ends(world, &sale).await
    });
}

#[test]
fn a_gift_of_before_a_rebuild_is_taken_when_epochs_are_not_compared() {
    harms_without(Mechanism::EpochOfGift, async |_| {
        let (mut world, sale) = two_buckets("old-gift", &[]).await;
        let transfer = take(&world, &sale, 0, 1, 4).await;
        lose_the_keys(&world, &sale).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        world.stop_roles().await;
        give(&world, &sale, &transfer).await;
        ends(world, &sale).await
    });
}

#[test]
fn a_late_repeat_takes_the_next_transfers_record_away() {
    harms_without(Mechanism::ThatRecord, async |_| {
        let (world, sale) = two_buckets("that", &[]).await;
        let first = take(&world, &sale, 0, 1, 4).await;
        give(&world, &sale, &first).await;
        forget(&world, &sale, &first).await;
        take(&world, &sale, 0, 1, 2).await;
        forget(&world, &sale, &first).await;
        finished(&world, &sale).await;
        ends(world, &sale).await
    });
}

#[test]
fn units_between_two_buckets_stay_there_when_p5_gives_no_record() {
    harms_without(Mechanism::RecordsFinished, async |plays| {
        let (world, sale) = two_buckets("stay", &[Reconcile]).await;
        take(&world, &sale, 0, 1, 4).await;
        match plays {
            Plays::With => eventually("given", async || units(&world, &sale).await == 20).await,
            Plays::Without => time_passes(ROUNDS_MS).await,
        }
        let there = units(&world, &sale).await;
        let mut found = found(&world, &sale).await;
        world.stop().await;
        if there < 20 {
            found.push(format!("{there} of 20 units can be bought"));
        }
        found
    });
}

/// The source goes back behind its first transfer, and takes other units under the same number.
async fn source_goes_back(world: &World, sale: &SaleId) {
    let keys = &world.servers.redis.keys;
    let (meta, stock, transfers) =
        (keys.meta(0, sale), keys.stock(0, sale), keys.grants(0, sale).replace(":grants:", ":transfers:"));
    world.redis(&["HDEL", &meta, "to:1", "out"]).await;
    world.redis(&["SET", &stock, "10"]).await;
    world.redis(&["DEL", &transfers]).await;
}

#[test]
fn a_record_is_forgotten_whose_units_no_bucket_got_when_only_its_number_is_remembered() {
    harms_without(Mechanism::UnitsRemembered, async |plays| {
        let (mut world, sale) = two_buckets("units", &[]).await;
        let lost = take(&world, &sale, 0, 1, 5).await;
        give(&world, &sale, &lost).await;
        source_goes_back(&world, &sale).await;
        assert_ne!(take(&world, &sale, 0, 1, 8).await.units, lost.units);
        finished(&world, &sale).await;
        world.start_roles(&[Reconcile]).await;
        match plays {
            // The audit freezes it, and the rebuild counts the units once.
            Plays::With => rebuilt(&world, &sale, 1).await,
            Plays::Without => time_passes(ROUNDS_MS).await,
        }
        ends(world, &sale).await
    });
}

#[test]
fn units_of_two_buckets_are_sold_when_the_fence_compares_numbers_only() {
    harms_without(Mechanism::PairsInFence, async |_| {
        let (_server, world) = own_redis::world("two-buckets", &[Api], TWO).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("fence", 20, None).await;
        let transfer = take(&world, &sale, 0, 1, 5).await;
        give(&world, &sale, &transfer).await;
        source_goes_back(&world, &sale).await;
        world.redis(&["SCRIPT", "FLUSH"]).await;
        let mut accepted = 0;
        for n in 0..40 {
            let user = buyer_of(n % 2, 2, usize::from(n));
            accepted += i64::from(world.buy(&sale, &user, 1, None).await.status == 202);
        }
        world.stop().await;
        if accepted <= 20 { Vec::new() } else { vec![format!("{accepted} of 20 units were sold")] }
    });
}

#[test]
fn what_one_pair_has_too_much_hides_behind_what_another_one_lacks() {
    blind_without(Mechanism::EachPair, async |_| {
        let (world, sale) = two_buckets("pairs", &PIPELINE).await;
        let keys = &world.servers.redis.keys;
        // From 0 to 1: the source forgot. From 1 to 0: as many units left and never came.
        let one = take(&world, &sale, 0, 1, 5).await;
        give(&world, &sale, &one).await;
        source_goes_back(&world, &sale).await;
        let two = take(&world, &sale, 1, 1, one.units).await;
        forget(&world, &sale, &two).await;
        let more = two.units - one.units;
        world.redis(&["INCRBY", &keys.stock(1, &sale), &more.to_string()]).await;
        world.redis(&["HINCRBY", &keys.meta(1, &sale), "out", &(-more).to_string()]).await;
        ends(world, &sale).await
    });
}

#[test]
fn a_lost_gift_that_a_later_one_covers_is_seen_by_the_sums_only() {
    blind_without(Mechanism::TransferSums, async |_| {
        let (world, sale) = two_buckets("sums", &PIPELINE).await;
        let lost = take(&world, &sale, 0, 1, 4).await;
        forget(&world, &sale, &lost).await;
        let next = take(&world, &sale, 0, 1, 2).await;
        give(&world, &sale, &next).await;
        forget(&world, &sale, &next).await;
        ends(world, &sale).await
    });
}

#[test]
fn a_record_that_was_given_is_a_false_alarm_when_the_sums_count_it() {
    harms_without(Mechanism::GivenRecords, async |_| {
        let (world, sale) = two_buckets("given", &PIPELINE).await;
        let transfer = take(&world, &sale, 0, 1, 4).await;
        give(&world, &sale, &transfer).await;
        // The sums are asked for while units are on their way.
        take(&world, &sale, 1, 1, 4).await;
        ends(world, &sale).await
    });
}
