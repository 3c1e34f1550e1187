//! Two rebuilds of one sale: a leader stands still in the middle of its own, loses the lead, and goes on later.

use crate::harms_without;
use crate::scene::{QUICK, found_at_last, held, lose_the_keys, rebuilt, with_queues};
use crate::support::links::link::Link;
use crate::support::links::port_of;
use crate::support::world::fault_injection::ExtraRoles;
use crate::support::world::parts::reserve_model::Ask;
use crate::support::world::parts::script_model::reserve;
use crate::support::world::{World, eventually, time_passes};
use seckill::config::ServerUrl;
use seckill::domain::ids::SaleId;
use seckill::domain::sale::MetaState;
use seckill::faults::{Armed, Hold, Mechanism};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// Ends the connection that makes a reconciler the leader: the next one that asks leads.
async fn takes_the_lead_from_who_has_it(world: &World) {
    let lock = "CONCAT('seckill.', LEFT(SHA2(CONCAT(DATABASE(), '.', 'reconcile'), 256), 40))";
    let leader = world.number(&format!("SELECT CAST(COALESCE(IS_USED_LOCK({lock}), 0) AS SIGNED) AS n")).await;
    assert_ne!(leader, 0, "no process leads");
    world.sql(&format!("KILL {leader}")).await;
}

/// A sale that lost its keys, and a leader who is held in the rebuild of it, with its way to the broker. The broker has given its
/// connections up: as long as it watches the retry queues, no other leader rebuilds.
async fn held_at(hold: Hold, world: &World, sale: &SaleId) -> (Armed, ExtraRoles, Link) {
    lose_the_keys(world, sale).await;
    let armed = hold.hold();
    let direct = world.settings.rabbitmq.url.expose();
    let link = Link::before(port_of(direct)).await;
    let leader = world.extra_roles(&[Reconcile], |settings| settings.rabbitmq.url = ServerUrl::new(link.url(direct)));
    held(1).await;
    armed.let_others_pass();
    takes_the_lead_from_who_has_it(world).await;
    link.reset();
    (armed, leader, link)
}

async fn ends(world: World, sale: &SaleId) -> Vec<String> {
    let rest = world.extra_roles(&[Relay, Consumer], |_| {});
    eventually("nothing on its way", async || {
        world.outbox().await == (0, 0) && world.waiting_in("seckill.").await == 0
    })
    .await;
    rebuilt(&world, sale, 1).await;
    let found = found_at_last(&world, sale).await;
    rest.stop().await;
    world.stop().await;
    found
}

#[test]
fn a_rebuild_that_was_overtaken_marks_a_grant_that_no_process_gives() {
    harms_without(Mechanism::SnapshotEpoch, async |_| {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("overtaken", 10, Some(1)).await;
        world.ordered(&sale, "alice").await;
        let (armed, slept, _link) = held_at(Hold::LeaderCounted, &world, &sale).await;
        let second = world.extra_roles(&[Reconcile], |_| {});
        rebuilt(&world, &sale, 2).await;
        second.stop().await;
        // A unit comes and is not given yet, another one is sold: the stock is as it was counted.
        assert!(world.servers.rows.grants.top_up(&sale, "late", 1).await.unwrap());
        eventually("bob buys", async || world.buy(&sale, "bob", 1, None).await.status == 202).await;
        eventually("bob's order", async || world.orders(&sale).await == 2).await;
        world.stop_roles().await;
        drop(armed);
        eventually("given", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
        let found = found_at_last(&world, &sale).await;
        slept.stop().await;
        world.stop().await;
        found
    });
}

#[test]
fn a_rebuild_that_judged_before_it_had_its_epoch_does_not_see_what_was_sold_since() {
    harms_without(Mechanism::EpochBeforeJudging, async |_| {
        let world = with_queues(&[Api], QUICK).await;
        let sale = world.sale("judged", 10, Some(1)).await;
        // One has its epoch; another one leads, finds nothing on its way, and sleeps.
        let (numbered, first, _link) = held_at(Hold::LeaderNumbered, &world, &sale).await;
        let judged = Hold::LeaderJudged.hold();
        let second = world.extra_roles(&[Reconcile], |_| {});
        held(2).await;
        drop(numbered);
        rebuilt(&world, &sale, 1).await;
        first.stop().await;
        eventually("alice buys", async || world.buy(&sale, "alice", 1, None).await.status == 202).await;
        lose_the_keys(&world, &sale).await;
        drop(judged);
        time_passes(2_000).await;
        let found = ends(world, &sale).await;
        second.stop().await;
        found
    });
}

#[test]
fn a_rebuild_that_replaces_other_keys_than_it_judged_sells_units_again() {
    harms_without(Mechanism::JudgedKeys, async |_| {
        let world = with_queues(&[Api], QUICK).await;
        let sale = world.sale("keys", 10, Some(1)).await;
        let (marked, first, _link) = held_at(Hold::LeaderMarked, &world, &sale).await;
        let numbered = Hold::LeaderNumbered.hold();
        let second = world.extra_roles(&[Reconcile], |_| {});
        held(2).await;
        // The first one opens what the second one has judged as closed; a buyer is quicker than the freeze.
        drop(marked);
        let keys = &world.servers.redis.sale_keys;
        let open = async || keys.meta(&sale, 0).await.unwrap().is_some_and(|meta| meta.state == MetaState::Open);
        eventually("opened", open).await;
        reserve(&world.servers.redis, &sale, 2, &[Ask { id: 2, user: 0, quantity: 1 }]).await;
        keys.freeze(&sale, 0, 3).await.unwrap();
        first.stop().await;
        drop(numbered);
        time_passes(1_000).await;
        let found = ends(world, &sale).await;
        second.stop().await;
        found
    });
}
