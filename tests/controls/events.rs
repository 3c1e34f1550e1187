//! Events of orders: their rows, who publishes them, and what their receivers go by.

use crate::scene::{PIPELINE, bought_in_a_message, held, parked, with_queues};
use crate::support::buyers::orders::LONG;
use crate::support::outside::downstream::{Downstream, a_full_queue, without_the_full_queue};
use crate::support::world::fault_injection::delete_order_queue;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, alone, harms_without};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::faults::{Hold, Mechanism};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::declare;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What is certain to come comes within this time.
const SOON_MS: u64 = 1_000;

/// Whether a subscriber gets an event; nothing is found if it does.
async fn missed(plays: Plays, downstream: &mut Downstream, id: RequestId, event: &str) -> Vec<String> {
    match plays {
        Plays::With => downstream.receives(id, event, 1).await,
        Plays::Without => {
            time_passes(SOON_MS).await;
            downstream.read().await;
        }
    }
    let got = downstream.counts.contains_key(&(id.to_string(), event.to_owned()));
    if got { Vec::new() } else { vec![format!("{event} of {id} was not published")] }
}

/// A world with a subscriber and an order of alice that has to be paid; what publishes waiting events is stopped.
async fn an_order(name: &str) -> (World, Downstream, SaleId, RequestId) {
    let world = World::with(&[Api, Relay], &[]).await;
    let mut downstream = Downstream::listen(&world).await;
    let sale = world.paying_sale(name, 10, Some(1), LONG).await;
    let consumer = world.extra_roles(&[Consumer], |_| {});
    let alice = world.ordered(&sale, "alice").await;
    downstream.receives(alice, "CONFIRMED", 1).await;
    consumer.stop().await;
    (world, downstream, sale, alice)
}

#[test]
fn an_event_that_is_not_written_with_its_change_is_never_published() {
    harms_without(Mechanism::OrderEventRow, async |plays| {
        let (world, mut downstream, _, alice) = an_order("change").await;
        assert_eq!(world.admin_port().pay(alice, "p").await.status, 200);
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let missed = missed(plays, &mut downstream, alice, "PAID").await;
        consumer.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn an_outcome_of_p5_is_never_published_when_its_event_is_left_to_the_message() {
    harms_without(Mechanism::OutcomeEventRow, async |plays| {
        let world = World::with(&[Api], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("left", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        world.lose_the_outbox().await;
        let both = world.extra_roles(&[Reconcile, Consumer], |settings| settings.p5_reconcile.window_ms = 500);
        eventually("P5 writes the order", async || world.orders(&sale).await == 1).await;
        let missed = missed(plays, &mut downstream, alice, "CONFIRMED").await;
        both.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn an_event_is_lost_with_a_consumer_that_acknowledged_its_message_before() {
    harms_without(Mechanism::EventBeforeAck, async |plays| {
        let world = World::with(&[Api, Relay], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("acked", 10, Some(1)).await;
        let committed = Hold::GroupCommitted.hold();
        let dies = world.extra_roles(&[Consumer], |_| {});
        let alice = world.bought(&sale, "alice").await;
        held(1).await;
        dies.kill().await;
        drop(committed);
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let missed = missed(plays, &mut downstream, alice, "CONFIRMED").await;
        consumer.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn an_event_that_the_broker_does_not_take_is_lost_when_it_is_not_stored() {
    harms_without(Mechanism::EventsStored, async |plays| {
        let world = World::with(&[Api, Relay], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        a_full_queue(&world).await;
        let sale = world.sale("stored", 10, Some(1)).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let alice = world.ordered(&sale, "alice").await;
        consumer.stop().await;
        assert_eq!(world.waiting_in("seckill.orders").await, 0, "it was acknowledged");
        without_the_full_queue(&world).await;
        let mut downstream = Downstream::listen(&world).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let missed = missed(plays, &mut downstream, alice, "CONFIRMED").await;
        consumer.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn an_event_is_lost_with_the_queue_of_a_consumer_that_had_committed_its_order() {
    harms_without(Mechanism::EventsOutliveQueue, async |plays| {
        let world = with_queues(&[Api, Relay], &["p4_persist.group_max=1", "p4_persist.writers_count=1"]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("deleted", 10, Some(1)).await;
        bought_in_a_message(&world, &sale, "alice", 1).await;
        let bob = bought_in_a_message(&world, &sale, "bob", 2).await;
        let committed = Hold::GroupCommitted.hold();
        let consumer = world.extra_roles(&[Consumer], |_| {});
        // The second one is written while the event of the first is held.
        eventually("both are orders", async || world.orders(&sale).await == 2).await;
        delete_order_queue(&world.servers.rabbit).await;
        time_passes(SOON_MS).await;
        drop(committed);
        let missed = missed(plays, &mut downstream, bob, "CONFIRMED").await;
        consumer.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn an_event_is_lost_with_the_dead_letter_of_a_decided_request_when_it_is_not_stored() {
    harms_without(Mechanism::EventOfDeadLetter, async |plays| {
        let world = World::with(&[Api], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("late", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        world.lose_the_outbox().await;
        // What a last try leaves whose commit was not answered: the order, and its message in the MQ DLQ.
        let accepted = world.accepted(&sale, alice).await;
        world.servers.rows.persister.persist_one(&accepted, PersistSource::Relay).await.unwrap();
        world.park_request_in_mq(&sale, alice).await;
        let both = world.extra_roles(&[Reconcile, Consumer], |_| {});
        eventually("no dead letter", async || world.waiting_in("seckill.dlq").await == 0).await;
        let missed = missed(plays, &mut downstream, alice, "CONFIRMED").await;
        both.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn a_subscriber_gets_an_order_that_never_was_when_events_come_before_their_commit() {
    harms_without(Mechanism::CommitBeforeEvent, async |_| {
        let world = World::with(&PIPELINE, &["p4_persist.attempts_max=1"]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("early", 10, Some(1)).await;
        let alice = parked(&world, &sale, "alice").await;
        let bob = world.bought(&sale, "bob").await;
        downstream.receives(bob, "CONFIRMED", 1).await;
        let untrue = downstream.counts.contains_key(&(alice.to_string(), "CONFIRMED".to_owned()));
        let orders = world.rows("orders", &format!("request_id = {alice}")).await;
        world.stop().await;
        if untrue && orders == 0 {
            vec!["alice's order was published, and there is none".to_owned()]
        } else {
            Vec::new()
        }
    });
}

#[test]
fn an_event_is_lost_with_a_publisher_that_deleted_its_row_before() {
    harms_without(Mechanism::ConfirmedEventsOnly, async |plays| {
        let (world, mut downstream, _, alice) = an_order("deleted").await;
        assert_eq!(world.admin_port().pay(alice, "p").await.status, 200);
        let read = Hold::EventsRead.hold();
        let dies = world.extra_roles(&[Consumer], |_| {});
        held(1).await;
        dies.kill().await;
        drop(read);
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let missed = missed(plays, &mut downstream, alice, "PAID").await;
        consumer.stop().await;
        world.stop().await;
        missed
    });
}

#[test]
fn an_event_that_came_since_a_page_was_read_is_lost_when_whatever_is_there_is_deleted() {
    harms_without(Mechanism::OwnEventRows, async |plays| {
        let (world, mut downstream, _, alice) = an_order("page").await;
        let admin = world.admin_port();
        assert_eq!(admin.pay(alice, "p").await.status, 200);
        let read = Hold::EventsRead.hold();
        let consumer = world.extra_roles(&[Consumer], |_| {});
        held(1).await;
        cancelled(&admin, alice).await;
        drop(read);
        downstream.receives(alice, "PAID", 1).await;
        let missed = missed(plays, &mut downstream, alice, "CANCELLED").await;
        consumer.stop().await;
        world.stop().await;
        missed
    });
}

async fn cancelled(admin: &crate::support::world::admin_port::AdminPort, id: RequestId) {
    assert_eq!(admin.post(&format!("/orders/{id}/cancel"), json!({ "reason": "r" })).await.status, 200);
}

/// A rule of `docs/asyncapi.yaml` for receivers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReceiverRule {
    OlderVersionsDropped,
    RefundsKept,
}

/// What a receiver knows of an order.
#[derive(Debug, Default, PartialEq, Eq)]
struct KnownOrder {
    version: u64,
    state: String,
    /// Payments that have to go back.
    refunds: BTreeSet<String>,
}

/// What a receiver knows of orders in the end, by the rules, or without one of them.
fn known(events: &[Value], without: Option<ReceiverRule>) -> BTreeMap<String, KnownOrder> {
    let mut orders: BTreeMap<String, KnownOrder> = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for event in events {
        let known = orders.entry(text(&event["rid"])).or_default();
        let version = event["version"].as_u64().unwrap();
        let is_newer = version > known.version;
        if event["status"] == "REFUND_NEEDED" {
            if is_newer || without != Some(ReceiverRule::RefundsKept) {
                known.refunds.insert(text(&event["payment_id"]));
            }
        } else if is_newer || without == Some(ReceiverRule::OlderVersionsDropped) {
            (known.version, known.state) = (version, text(&event["status"]));
        }
    }
    orders
}

#[test]
fn a_receiver_that_takes_whatever_comes_last_has_an_order_paid_that_is_cancelled() {
    alone(async {
        let (world, mut downstream, _, alice) = an_order("last").await;
        let admin = world.admin_port();
        assert_eq!(admin.pay(alice, "p").await.status, 200);
        let read = Hold::EventsRead.hold();
        let late = world.extra_roles(&[Consumer], |_| {});
        held(1).await;
        read.let_others_pass();
        let consumer = world.extra_roles(&[Consumer], |_| {});
        cancelled(&admin, alice).await;
        downstream.receives(alice, "CANCELLED", 1).await;
        drop(read);
        downstream.receives(alice, "PAID", 2).await;
        let state = |without| known(&downstream.events, without)[&alice.to_string()].state.clone();
        assert!(world.order_in("CANCELLED", alice).await);
        assert_eq!(state(None), "CANCELLED");
        assert_eq!(state(Some(ReceiverRule::OlderVersionsDropped)), "PAID");
        late.stop().await;
        consumer.stop().await;
        world.stop().await;
    });
}

#[test]
fn a_receiver_that_drops_refunds_of_older_versions_keeps_money_that_has_to_go_back() {
    alone(async {
        let (world, mut downstream, _, alice) = an_order("refunds").await;
        let admin = world.admin_port();
        for payment in ["p", "again"] {
            admin.pay(alice, payment).await;
        }
        cancelled(&admin, alice).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        for event in ["CANCELLED", "PAID", "REFUND_NEEDED ALREADY_PAID", "REFUND_NEEDED CANCELLED"] {
            downstream.receives(alice, event, 1).await;
        }
        let refunds = |without| known(&downstream.events, without)[&alice.to_string()].refunds.len();
        assert_eq!(world.rows("payments", "state = 'REFUND_NEEDED'").await, 2);
        assert_eq!(refunds(None), 2);
        assert!(refunds(Some(ReceiverRule::RefundsKept)) < 2);
        consumer.stop().await;
        world.stop().await;
    });
}
