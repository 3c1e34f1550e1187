//! What becomes of messages and entries: keys, acks, dead letters, names of relays.

use crate::scene::{PIPELINE, QUICK, ROUNDS_MS, found, found_at_last, given_up, held, message_of};
use crate::support::world::fault_injection::unbind_order_queue;
use crate::support::world::parts::reserve_model::Ask;
use crate::support::world::parts::script_model::{request_id, reserve};
use crate::support::world::relay_state::read_and_die;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, harms_without};
use seckill::domain::ids::SaleId;
use seckill::domain::message::encode;
use seckill::faults::{Hold, Mechanism};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{Outgoing, PublishRoute, Topology, send_all};

/// Until an order that is sent now is landed: what was in the queue before it is handled.
async fn handled(world: &World, sale: &SaleId, user: &str) {
    world.ordered(sale, user).await;
}

#[test]
fn a_message_that_comes_twice_takes_two_units_without_the_outcomes_key() {
    harms_without(Mechanism::OutcomeKey, async |_| {
        let world = World::with(&PIPELINE, &[]).await;
        let sale = world.sale("key", 10, Some(1)).await;
        let alice = world.ordered(&sale, "alice").await;
        let message = message_of(&world, &sale, alice).await;
        world.publish(&[encode(&message).into_bytes()]).await;
        handled(&world, &sale, "bob").await;
        let found = found_at_last(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn a_late_message_of_a_failed_request_becomes_an_order_when_failed_is_not_final() {
    harms_without(Mechanism::FailedIsFinal, async |_| {
        let world = World::with(&PIPELINE, &[]).await;
        let sale = world.sale("final", 10, Some(1)).await;
        let (_, message) = given_up(&world, &sale, "alice").await;
        world.publish(&[encode(&message).into_bytes()]).await;
        handled(&world, &sale, "bob").await;
        let found = found_at_last(&world, &sale).await;
        world.stop().await;
        found
    });
}

/// Two requests in one entry: plain's and another buyer's.
async fn two_in_one_entry(world: &World, sale: &SaleId) {
    let asks = [Ask { id: 2, user: 0, quantity: 1 }, Ask { id: 4, user: 1, quantity: 1 }];
    reserve(&world.servers.redis, sale, 1, &asks).await;
    let entries = world.servers.redis.outbox.page(0, "-", 10).await.unwrap();
    assert_eq!(entries.len(), 1, "one entry");
}

#[test]
fn an_order_that_is_sent_back_is_lost_when_the_first_one_acknowledges_its_message() {
    harms_without(Mechanism::AckAfterLastOrder, async |plays| {
        let mut world = World::with(&[Api, Relay], &[]).await;
        let sale = world.sale("first", 10, Some(1)).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        handled(&world, &sale, "alice").await;
        world.stop_roles().await;
        two_in_one_entry(&world, &sale).await;
        world.redis(&["DEL", &world.servers.redis.keys.outbox(0)]).await;
        world.sql("CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW IF NEW.user_id = 'plain' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'; END IF").await;
        // It dies when one of the two orders is landed and the other one is not sent back yet.
        let acked = Hold::OrdersAcked.hold();
        let mut orders = Vec::new();
        for id in [2, 4] {
            let message = message_of(&world, &sale, request_id(id)).await;
            orders.push((message.purchase.request_id.to_string(), encode(&message)));
        }
        let exchange = Topology::new(&world.servers.rabbit).orders_exchange();
        let bodies = orders.iter().map(|(id, body)| (id.as_str(), body.as_bytes()));
        let both = Outgoing::bundle(PublishRoute { exchange: &exchange, key: "0" }, bodies);
        send_all(&world.servers.rabbit, &mut None, vec![both]).await.unwrap();
        held(1).await;
        time_passes(500).await;
        consumer.kill().await;
        drop(acked);
        world.sql("DROP TRIGGER curse").await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        match plays {
            Plays::With => eventually("the other one is landed", async || world.orders(&sale).await == 3).await,
            Plays::Without => time_passes(ROUNDS_MS).await,
        }
        consumer.stop().await;
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn the_second_order_of_an_entry_is_lost_when_the_first_one_is_parked_for_both() {
    harms_without(Mechanism::ParkEachOrder, async |_| {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("both", 10, Some(1)).await;
        let relay = world.extra_roles(&[Relay], |settings| settings.p3_relay.attempts_max = 1);
        handled(&world, &sale, "first").await;
        unbind_order_queue(&world.servers.rabbit).await;
        two_in_one_entry(&world, &sale).await;
        eventually("parked", async || world.outbox().await == (0, 0)).await;
        relay.stop().await;
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn entries_of_a_relay_whose_name_is_deleted_stay_for_ever() {
    harms_without(Mechanism::EmptyNames, async |plays| {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("names", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        read_and_die(&world, "dead", 1).await;
        world.servers.redis.outbox.forget_relays(0, "another", 0, 10).await.unwrap();
        // Who searches entries without an owner would find it (window 30): that is the other net.
        let orphans = Mechanism::OrphanSearch.leave_out();
        let rest = world.extra_roles(&[Relay, Consumer], |settings| settings.p3_relay.claim_idle_ms = 1_000);
        world.ordered(&sale, "bob").await;
        let status = async || world.status_of(&sale, "alice", alice).await.0;
        match plays {
            Plays::With => eventually("alice's order", async || status().await == "CONFIRMED").await,
            Plays::Without => time_passes(2 * ROUNDS_MS).await,
        }
        let status = status().await;
        rest.stop().await;
        drop(orphans);
        world.stop().await;
        if status == "CONFIRMED" { Vec::new() } else { vec![format!("alice's request is {status}")] }
    });
}

#[test]
fn a_request_whose_number_is_anothers_stays_undecided_when_p5_leaves_it() {
    harms_without(Mechanism::ReusedNumberFails, async |plays| {
        let world = World::with(&[Api, Relay, Consumer, Reconcile], QUICK).await;
        let sale = world.sale("twice", 10, Some(1)).await;
        let alice = world.ordered(&sale, "alice").await.to_string();
        world.settled(&sale).await;
        // Redis went back: number 1 is given once more.
        let keys = &world.servers.redis.keys;
        world.redis(&["HSET", &keys.meta(0, &sale), "number", "0", "accepted", "0 0"]).await;
        world.redis(&["HDEL", &keys.ledger(0, &sale), &alice]).await;
        world.redis(&["HDEL", &keys.buyers(0, &sale), "alice"]).await;
        world.redis(&["INCRBY", &keys.stock(0, &sale), "1"]).await;
        let bob = world.bought(&sale, "bob").await;
        let outcome = async || world.status_of(&sale, "bob", bob).await.0;
        match plays {
            Plays::With => eventually("bob's outcome", async || outcome().await == "FAILED").await,
            Plays::Without => time_passes(2 * ROUNDS_MS).await,
        }
        let status = outcome().await;
        world.stop().await;
        if status == "FAILED" { Vec::new() } else { vec![format!("bob's request is {status}")] }
    });
}
