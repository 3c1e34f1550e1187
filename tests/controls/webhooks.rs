//! Deliveries of webhooks: what a try comes to, who sends, receivers that are closed, replays.

use crate::support::buyers::orders::LONG;
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, webhook};
use crate::support::world::database_sessions::{Session, connections};
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, harms_without};
use seckill::domain::ids::RequestId;
use seckill::events::webhooks::rows::{TriedDelivery, WebhookRows};
use seckill::faults::Mechanism;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::json;

/// What is sent is sent within this time.
const SOON_MS: u64 = 1_000;
const CLOSED: &str = "webhook = 'shop' AND disabled_at IS NOT NULL";

/// One delivery that waits, in a database without a leader, and its number.
async fn a_delivery() -> (World, WebhookRows, u64) {
    let world = World::with(&[], &[]).await;
    let row =
        "INSERT INTO webhook_deliveries (webhook, request_id, event_key, body) VALUES ('shop', 1, 'order.paid', '{}')";
    world.sql(row).await;
    let rows = WebhookRows::new(world.servers.db.clone());
    let delivery_id = rows.due("shop", 1).await.unwrap()[0].delivery_id;
    (world, rows, delivery_id)
}

fn again(delivery_id: u64) -> TriedDelivery {
    TriedDelivery::Again { delivery_id, attempts: 0, after_ms: 1, problem: "answers 500".to_owned() }
}

fn found(is_harm: bool, what: &str) -> Vec<String> {
    if is_harm { vec![what.to_owned()] } else { Vec::new() }
}

/// Nothing is found if the only delivery is in this state.
async fn other_than(world: World, state: &str) -> Vec<String> {
    let harm = world.deliveries(state).await != 1;
    world.stop().await;
    found(harm, &format!("the delivery is not {state}"))
}

#[test]
fn a_late_failure_undoes_a_delivery_when_it_is_recorded_whatever_the_row_says() {
    harms_without(Mechanism::FailureOfWaitingRow, async |_| {
        let (world, rows, delivery_id) = a_delivery().await;
        // Two processes had it under way.
        rows.record_tries(&[TriedDelivery::Delivered { delivery_id, keep_s: 60 }]).await.unwrap();
        rows.record_tries(&[again(delivery_id)]).await.unwrap();
        other_than(world, "DELIVERED").await
    });
}

#[test]
fn a_try_that_is_recorded_twice_costs_a_delivery_two_tries() {
    harms_without(Mechanism::TryCountsOnce, async |_| {
        let (world, rows, delivery_id) = a_delivery().await;
        // The first answer of the database was lost.
        for _ in 0..2 {
            rows.record_tries(&[again(delivery_id)]).await.unwrap();
        }
        let attempts = world.number("SELECT CAST(attempts AS SIGNED) AS n FROM webhook_deliveries").await;
        world.stop().await;
        found(attempts != 1, &format!("{attempts} tries of one call"))
    });
}

#[test]
fn a_delivery_that_arrived_stays_dead_when_late_successes_are_not_recorded() {
    harms_without(Mechanism::LateSuccess, async |_| {
        let (world, rows, delivery_id) = a_delivery().await;
        let problem = "answers 500".to_owned();
        rows.record_tries(&[TriedDelivery::Dead { delivery_id, attempts: 0, problem }]).await.unwrap();
        rows.record_tries(&[TriedDelivery::Delivered { delivery_id, keep_s: 60 }]).await.unwrap();
        other_than(world, "DELIVERED").await
    });
}

#[test]
fn a_delivery_that_is_replayed_is_deleted_when_old_ones_are_deleted_by_id() {
    harms_without(Mechanism::DeletesDeliveredOnly, async |_| {
        let (world, rows, _) = a_delivery().await;
        world.sql("UPDATE webhook_deliveries SET state = 'DELIVERED'").await;
        // It is replayed when its row was found old, and before that is deleted.
        let mut person = Session::open(&world).await;
        person.run("BEGIN; UPDATE webhook_deliveries SET state = 'WAITING', attempts = 0").await;
        let deletion = tokio::spawn(async move { rows.delete_old("shop").await });
        let waits = async || connections(&world, "info LIKE 'DELETE%webhook_deliveries%'").await != 0;
        eventually("a deletion that waits for the row", waits).await;
        person.run("COMMIT").await;
        deletion.await.unwrap().unwrap();
        other_than(world, "WAITING").await
    });
}

/// A receiver that answers this, and a world without a leader with an order of alice's; two tries are all that a delivery has.
async fn a_hook(name: &str, answer: &str) -> (HookReceiver, World, RequestId) {
    let receiver = HookReceiver::start().await;
    receiver.answers(answer, "");
    let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
    let set = ["webhook_delivery.retry_ms=50", "webhook_delivery.in_flight_each_max=1"];
    let world = World::with_config(&[Api, Relay, Consumer], &set, &text).await;
    let sale = world.paying_sale(name, 10, Some(1), LONG).await;
    let alice = world.ordered(&sale, "alice").await;
    (receiver, world, alice)
}

/// Whether the receiver gets the event of the order; nothing is found if it does.
async fn missed(plays: Plays, receiver: &HookReceiver, id: RequestId) -> Vec<String> {
    match plays {
        Plays::With => receiver.receives("order.confirmed", id).await,
        Plays::Without => time_passes(SOON_MS).await,
    }
    found(receiver.taken().is_empty(), "the receiver has no event")
}

#[test]
fn an_event_that_is_recorded_before_the_answer_never_gets_to_a_receiver_that_refuses_it_once() {
    harms_without(Mechanism::DeliveredAfterAnswer, async |plays| {
        let (receiver, world, alice) = a_hook("answer", "500 Internal Server Error").await;
        let leader = world.extra_roles(&[Reconcile], |settings| settings.webhook_delivery.in_flight_each_max = 1);
        eventually("a call", async || !receiver.calls().is_empty()).await;
        receiver.answers("204 No Content", "");
        let missed = missed(plays, &receiver, alice).await;
        leader.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn a_delivery_that_a_dead_leader_had_read_is_never_sent_when_it_is_left_to_that_one() {
    harms_without(Mechanism::ChosenAgain, async |plays| {
        let (receiver, world, alice) = a_hook("chosen", "204 No Content").await;
        receiver.falls_silent();
        let dies = world.extra_roles(&[Reconcile], |_| {});
        eventually("a call", async || !receiver.calls().is_empty()).await;
        dies.kill().await;
        receiver.answers("204 No Content", "");
        let leader = world.extra_roles(&[Reconcile], |_| {});
        let missed = missed(plays, &receiver, alice).await;
        leader.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn a_receiver_that_answered_410_is_called_again_when_it_is_not_left_alone() {
    harms_without(Mechanism::StopsWhenGone, async |_| {
        let (receiver, world, alice) = a_hook("gone", "410 Gone").await;
        world.admin_port().pay(alice, "p").await;
        assert_eq!(world.deliveries("WAITING").await, 2);
        let leader = world.extra_roles(&[Reconcile], |_| {});
        eventually("it is closed", async || world.rows("webhook_subscriptions", CLOSED).await == 1).await;
        time_passes(SOON_MS).await;
        let calls = receiver.calls().len();
        leader.stop().await;
        world.stop().await;
        found(calls > 1, &format!("{calls} calls of a receiver that answered 410 to the first"))
    });
}

#[test]
fn a_receiver_that_answered_410_is_taken_for_open_when_that_is_not_written_down() {
    harms_without(Mechanism::GoneIsWritten, async |_| {
        let (receiver, world, _) = a_hook("written", "410 Gone").await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        eventually("a call", async || !receiver.calls().is_empty()).await;
        time_passes(2 * SOON_MS).await;
        let calls = receiver.calls().len();
        leader.stop().await;
        world.stop().await;
        found(calls > 1, &format!("{calls} calls of a receiver that answered 410 to the first"))
    });
}

/// A person replays the only delivery.
async fn replayed(world: &World) {
    let id = world.number("SELECT CAST(delivery_id AS SIGNED) AS n FROM webhook_deliveries").await;
    let answer = world.admin_port().post("/webhooks/replay", json!({ "delivery_ids": [id] })).await;
    assert_eq!((answer.status, &answer.json["replayed"]), (200, &json!(1)), "{answer:?}");
}

#[test]
fn a_replayed_delivery_is_dead_before_its_tries_are_spent_when_they_stay_counted() {
    harms_without(Mechanism::ReplayResetsTries, async |_| {
        let (receiver, world, _) = a_hook("tries", "500 Internal Server Error").await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        let dead = async || world.deliveries("DEAD").await == 1;
        eventually("it is dead", dead).await;
        leader.stop().await;
        let before = receiver.calls().len();
        assert_eq!(before, 2, "as many as the schedule has");
        replayed(&world).await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        eventually("it is dead again", dead).await;
        let calls = receiver.calls().len() - before;
        leader.stop().await;
        world.stop().await;
        found(calls < before, &format!("it is dead after {calls} of {before} calls"))
    });
}

#[test]
fn a_replayed_delivery_is_never_sent_when_its_receiver_stays_closed() {
    harms_without(Mechanism::ReplayOpens, async |plays| {
        let (receiver, world, alice) = a_hook("opens", "410 Gone").await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        eventually("it is closed", async || world.rows("webhook_subscriptions", CLOSED).await == 1).await;
        receiver.answers("204 No Content", "");
        replayed(&world).await;
        let missed = missed(plays, &receiver, alice).await;
        leader.stop().await;
        world.stop().await;
        missed
    });
}
