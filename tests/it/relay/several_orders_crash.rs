//! Entries with several orders and processes that die over them: none of the orders is lost and none is doubled, whatever
//! form the entries before and after them have.

use super::several_orders::{EntryForm, accepted};
use crate::support::world::fault_injection::unbind_order_queue;
use crate::support::world::relay_state::{nothing_is_left, parked};
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::declare;

/// One transaction for each message, so that a death is over one.
const ONE_WRITER: &str = "p4_persist.writers_count=1";
/// The third of the orders of a message.
const THIRD_IS_REFUSED: &str = "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW \
    IF NEW.user_id LIKE '%\"3\"%' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'; END IF";

async fn ordered(world: &World, sale: &SaleId, count: i64) {
    eventually(&format!("{count} orders"), async || world.orders(sale).await == count).await;
}

/// The books of the end: every order once, and no unit too many.
async fn adds_up(world: &World, sale: &SaleId, count: i64) {
    ordered(world, sale, count).await;
    nothing_is_left(world).await;
    assert_eq!(world.redis(&["EXISTS", &world.servers.redis.keys.outbox_more(0)]).await, 0);
    let units = world.number("SELECT SUM(quantity) AS n FROM orders").await;
    assert_eq!(world.number("SELECT stock AS n FROM sales").await, 1_000 - units);
    assert_eq!(world.settled(sale).await.counted.ordered, units);
}

#[test]
fn a_relay_that_dies_at_any_line_over_both_forms_loses_and_doubles_nothing() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("both", 1_000, Some(9)).await;
        let mut buyers = 0_u64;
        // What an upgrade and its roll back leave in one backlog: the old form, the new one, and the old one again.
        let mut switched_twice = async || {
            for (form, count) in [(EntryForm::Old, 2), (EntryForm::Lines, 10), (EntryForm::Old, 1)] {
                accepted(&world, &sale, form, buyers..buyers + count).await;
                buyers += count;
            }
            i64::try_from(buyers).unwrap()
        };
        for point in ["F3", "F4", "F5", "F7", "F8"] {
            switched_twice().await;
            world.process("relay", &format!("{point}=return"), &[]).dies_at(point).await;
        }
        // What the last one left is another relay's to take over; it dies over that, too.
        let all = switched_twice().await;
        world.process("relay", "F3=return", &[]).dies_at("F3").await;
        world.process("relay", "F10=return", &["runtime.node=another"]).dies_at("F10").await;
        let relay = world.extra_roles(&[Relay], |_| {});
        adds_up(&world, &sale, all).await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn an_entry_of_several_orders_is_parked_as_a_whole_or_not_at_all() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("whole", 1_000, Some(9)).await;
        let mut orders = 0;
        for (at, (point, dead_letters)) in [("F9", 0), ("F9a", 5)].into_iter().enumerate() {
            let first = u64::try_from(at).unwrap() * 10;
            // It has declared the topology for the first one; what comes then is returned.
            let relay = world.process("relay", &format!("{point}=return"), &["p3_relay.attempts_max=1"]);
            accepted(&world, &sale, EntryForm::Lines, first..first + 1).await;
            orders += 6;
            nothing_is_left(&world).await;
            // No consumer runs here: one declares the topology in the background, at any time after its start.
            unbind_order_queue(&world.servers.rabbit).await;
            accepted(&world, &sale, EntryForm::Lines, first + 1..first + 6).await;
            relay.dies_at(point).await;
            assert_eq!(parked(&world).await, dead_letters, "{point}");
            if dead_letters == 0 {
                let next = world.extra_roles(&[Relay, Consumer], |_| {});
                ordered(&world, &sale, orders).await;
                nothing_is_left(&world).await;
                next.stop().await;
            }
        }
        let others = world.extra_roles(&[Relay, Consumer, Reconcile], |_| {});
        adds_up(&world, &sale, orders).await;
        eventually("an empty relay DLQ", async || parked(&world).await == 0).await;
        others.stop().await;
        world.finish().await;
    });
}

/// A world whose messages are at the broker: one of each count of orders.
async fn messages_of(counts: &[u64]) -> (World, SaleId) {
    let world = World::with(&[Api], &["p3_relay.bundle_max=1"]).await;
    declare(&world.servers.rabbit).await.unwrap();
    let sale = world.sale("letters", 1_000, Some(9)).await;
    let mut buyers = 0;
    for count in counts {
        accepted(&world, &sale, EntryForm::Lines, buyers..buyers + count).await;
        buyers += count;
    }
    let relay = world.extra_roles(&[Relay], |_| {});
    nothing_is_left(&world).await;
    relay.stop().await;
    assert_eq!(world.waiting_in("seckill.orders").await, u64::try_from(counts.len()).unwrap());
    (world, sale)
}

/// The consumer that comes after those that died: it empties the queues, and the books add up.
async fn another_consumer_lands(world: World, sale: &SaleId, count: i64) {
    let consumer = world.extra_roles(&[Consumer], |_| {});
    eventually("no message left", async || world.waiting_in("seckill.").await == 0).await;
    adds_up(&world, sale, count).await;
    consumer.stop().await;
    world.finish().await;
}

#[test]
fn a_consumer_that_dies_over_a_message_of_several_orders_loses_and_doubles_nothing() {
    run(async {
        let (world, sale) = messages_of(&[8]).await;
        // What is committed when the process is gone: nothing until COMMIT is sent, everything from then on.
        for (point, committed) in [("F11", 0), ("F12", 0), ("F13", 0), ("F14", 0), ("F15", 8)] {
            world.process("consumer", &format!("{point}=return"), &[ONE_WRITER]).dies_at(point).await;
            ordered(&world, &sale, committed).await;
            assert_eq!(world.rows("request_outcome", "1 = 1").await, committed, "{point}");
            eventually("the message back", async || world.waiting_in("seckill.orders").await == 1).await;
        }
        another_consumer_lands(world, &sale, 8).await;
    });
}

#[test]
fn groups_that_end_in_the_middle_of_a_message_and_deaths_over_them_double_nothing() {
    run(async {
        let (world, sale) = messages_of(&[8, 8]).await;
        // Committed, and the process is gone before it acknowledges the message, of which the rest is still to come.
        let set = [ONE_WRITER, "p4_persist.group_max=3", "p4_persist.prefetch=3"];
        let mut before = 0;
        while before < 8 {
            world.process("consumer", "F16=return", &set).dies_at("F16").await;
            let now = world.orders(&sale).await;
            assert!(now > before && now <= before + 3, "{before} and then {now}");
            before = now;
        }
        another_consumer_lands(world, &sale, 16).await;
    });
}

#[test]
fn of_a_message_only_the_refused_order_is_sent_back_and_a_death_over_it_doubles_nothing() {
    run(async {
        let (world, sale) = messages_of(&[5]).await;
        world.sql(THIRD_IS_REFUSED).await;
        world.process("consumer", "F18=return", &[ONE_WRITER]).dies_at("F18").await;
        ordered(&world, &sale, 4).await;
        // The copy of one order in the retry queue (or back from it already), and the message of five.
        eventually("two messages", async || world.waiting_in("seckill.").await == 2).await;
        world.sql("DROP TRIGGER curse").await;
        another_consumer_lands(world, &sale, 5).await;
    });
}
