//! Units that are offered again, and grants that meet a rebuild.

use crate::scene::{
    PIPELINE, QUICK, ROUNDS_MS, epoch, found, found_at_last, given_up, held, lose_the_keys, rebuilt, units, with_queues,
};
use crate::support::world::fault_injection::ExtraRoles;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, harms_without};
use seckill::domain::ids::SaleId;
use seckill::faults::{Hold, Mechanism};
use seckill::roles::Role::{Api, Reconcile};

async fn nothing_waits(world: &World) {
    eventually("grants are given", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
}

#[test]
fn units_of_failures_that_a_reclaim_does_not_mark_are_there_twice() {
    harms_without(Mechanism::ReclaimMarks, async |_| {
        let world = World::with(&PIPELINE, &[]).await;
        let sale = world.sale("marks", 10, Some(1)).await;
        given_up(&world, &sale, "alice").await;
        world.sale_control().reclaim(&sale).await.unwrap().expect("a unit");
        let found = found_at_last(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn a_reclaim_that_takes_every_failure_offers_units_that_never_were() {
    harms_without(Mechanism::ReclaimWithUnit, async |_| {
        let mut world = World::with(&PIPELINE, QUICK).await;
        let sale = world.sale("units", 1, Some(1)).await;
        world.ordered(&sale, "alice").await;
        // Redis gives away what the database does not have; a rebuild ends that.
        world.redis(&["INCRBY", &world.servers.redis.keys.stock(0, &sale), "1"]).await;
        let bob = world.bought(&sale, "bob").await;
        eventually("SOLD_OUT", async || world.status_of(&sale, "bob", bob).await.1 == "SOLD_OUT").await;
        world.sql(&format!("INSERT INTO closed_findings (sale_id, code, epoch, units, reason, closed_by) VALUES ('{sale}', 'REFUSED', 1, 1, 'r', 'test')")).await;
        lose_the_keys(&world, &sale).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        world.sale_control().top_up(&sale, "more", 1).await.unwrap();
        drop(world.sale_control().reclaim(&sale).await.unwrap());
        nothing_waits(&world).await;
        let found = found_at_last(&world, &sale).await;
        world.stop().await;
        found
    });
}

/// A process that withdraws dies between Redis and the database, and another one goes on.
#[test]
fn a_withdrawal_that_redis_takes_twice_shows_in_the_books() {
    harms_without(Mechanism::WithdrawOnce, async |_| {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("withdrawn", 10, None).await;
        let died = world.cli_with_faults("F46=return", &["sale", "withdraw", "withdrawn", "3", "--name", "n"]);
        assert_eq!(died.code, None, "{died:?}");
        world.sale_control().withdraw(&sale, "n", 3).await.unwrap();
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

/// A world whose sale of ten units is being rebuilt, and who rebuilds it is held. Grants are given by operators and P5.
async fn held_at(hold: Hold, name: &str) -> (World, SaleId, seckill::faults::Armed, ExtraRoles) {
    let world = with_queues(&[Api], QUICK).await;
    let sale = world.sale(name, 10, Some(1)).await;
    lose_the_keys(&world, &sale).await;
    let armed = hold.hold();
    let leader = world.extra_roles(&[Reconcile], |_| {});
    held(1).await;
    (world, sale, armed, leader)
}

async fn ends(world: World, sale: &SaleId, leader: ExtraRoles) -> Vec<String> {
    rebuilt(&world, sale, 1).await;
    nothing_waits(&world).await;
    let found = found(&world, sale).await;
    leader.stop().await;
    world.stop().await;
    found
}

#[test]
fn a_grant_into_frozen_keys_is_overwritten_by_their_rebuild() {
    harms_without(Mechanism::GrantNotFrozen, async |_| {
        let (world, sale, armed, leader) = held_at(Hold::LeaderMarked, "frozen").await;
        drop(world.sale_control().top_up(&sale, "late", 5).await);
        drop(armed);
        ends(world, &sale, leader).await
    });
}

#[test]
fn a_grant_between_the_units_and_the_marks_of_a_rebuild_is_lost() {
    harms_without(Mechanism::OneSnapshot, async |_| {
        let (world, sale, armed, leader) = held_at(Hold::LeaderCounted, "snapshot").await;
        assert!(world.servers.rows.grants.top_up(&sale, "between", 5).await.unwrap());
        drop(armed);
        rebuilt(&world, &sale, 1).await;
        assert_eq!(epoch(&world).await, 2, "the attempt is not begun again");
        ends(world, &sale, leader).await
    });
}

#[test]
fn a_grant_that_a_rebuild_counts_and_does_not_mark_is_given_again() {
    harms_without(Mechanism::RebuildMarks, async |_| {
        let (world, sale, armed, leader) = held_at(Hold::LeaderLoaded, "unmarked").await;
        assert!(world.servers.rows.grants.top_up(&sale, "counted", 5).await.unwrap());
        drop(armed);
        ends(world, &sale, leader).await
    });
}

/// Who gives has read a grant that the rebuild counts, and gives it when the sale sells again.
#[test]
fn a_grant_whose_id_is_not_in_the_new_keys_is_given_again_by_who_had_read_it() {
    harms_without(Mechanism::GrantIds, async |_| {
        let (world, sale, armed, leader) = held_at(Hold::LeaderLoaded, "ids").await;
        let reading = Hold::GiverRead.hold();
        let (giver, of) = (world.sale_control(), sale.clone());
        let giving = tokio::spawn(async move { giver.top_up(&of, "read", 5).await.is_ok() });
        held(2).await;
        drop(armed);
        rebuilt(&world, &sale, 1).await;
        drop(reading);
        giving.await.unwrap();
        ends(world, &sale, leader).await
    });
}

/// Who gives read a grant, and slept through two rebuilds: the first of them marked it, and died.
#[test]
fn a_grant_is_given_again_by_who_reads_the_epoch_after_the_list() {
    harms_without(Mechanism::EpochBeforeList, async |_| {
        let world = with_queues(&[Api], QUICK).await;
        let sale = world.sale("list", 10, Some(1)).await;
        let reading = Hold::GiverRead.hold();
        let (giver, of) = (world.sale_control(), sale.clone());
        let giving = tokio::spawn(async move { giver.top_up(&of, "read", 5).await.is_ok() });
        held(1).await;
        reading.let_others_pass();
        lose_the_keys(&world, &sale).await;
        let marked = Hold::LeaderMarked.hold();
        let dies = world.extra_roles(&[Reconcile], |_| {});
        held(2).await;
        dies.kill().await;
        drop(marked);
        // The marks of before are older than the next attempt, by the clock of the database.
        time_passes(100).await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        rebuilt(&world, &sale, 2).await;
        drop(reading);
        giving.await.unwrap();
        ends(world, &sale, leader).await
    });
}

/// The same where the second attempt goes on in the epoch of the first one.
#[test]
fn a_grant_is_given_again_when_an_attempt_goes_on_in_a_dead_ones_epoch() {
    harms_without(Mechanism::OwnEpoch, async |_| {
        let (world, sale, armed, dies) = held_at(Hold::LeaderLoaded, "epoch").await;
        let reading = Hold::GiverRead.hold();
        let (giver, of) = (world.sale_control(), sale.clone());
        let giving = tokio::spawn(async move { giver.top_up(&of, "read", 5).await.is_ok() });
        held(2).await;
        reading.let_others_pass();
        let marked = Hold::LeaderMarked.hold();
        drop(armed);
        eventually("marked", async || world.rows("stock_grants", "kind = 'rebuild'").await == 1).await;
        held(2).await;
        dies.kill().await;
        drop(marked);
        time_passes(100).await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        rebuilt(&world, &sale, 1).await;
        drop(reading);
        giving.await.unwrap();
        ends(world, &sale, leader).await
    });
}

#[test]
fn a_sale_of_another_epoch_sells_nothing_for_ever_when_epochs_are_not_compared() {
    harms_without(Mechanism::EpochsCompared, async |plays| {
        let world = with_queues(&[Api], QUICK).await;
        let sale = world.sale("epochs", 10, Some(1)).await;
        // What an attempt leaves that took its epoch and died, when the one before it opened the sale.
        world.sql("UPDATE sales SET epoch = 2").await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        let buys = async || world.buy(&sale, "alice", 1, None).await.status == 202;
        match plays {
            Plays::With => eventually("alice buys", buys).await,
            Plays::Without => time_passes(ROUNDS_MS).await,
        }
        let sells = plays == Plays::With || buys().await;
        leader.stop().await;
        let (epoch, units) = (epoch(&world).await, units(&world, &sale).await);
        world.stop().await;
        if sells { Vec::new() } else { vec![format!("nothing is sold: epoch {epoch}, {units} units in Redis")] }
    });
}
