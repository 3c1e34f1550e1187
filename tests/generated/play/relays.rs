//! P3, one step at a time: what a relay reads, sends, deletes, counts and parks, by the product's own calls.

use super::stage::Stage;
use crate::state::{ATTEMPTS_MAX, REQUESTS};
use crate::support::world::World;
use seckill::domain::message::{decode_lines, encode};
use seckill::store::rabbit::{Confirms, Outgoing, PublishEvent, PublishResult, PublishRoute, Publisher};
use seckill::store::redis::{OutboxEntry, PageFrom, ParkReason, ParkedOrder, SentEntry};
use std::time::{Duration, Instant};

/// Longest wait for the broker.
const BROKER: Duration = Duration::from_secs(20);

/// An entry that a relay has read.
#[derive(Clone)]
struct HeldEntry {
    entry: OutboxEntry,
    /// The broker's answer, and whether the relay has read it.
    answer: Option<PublishResult>,
    is_seen: bool,
    attempts: u32,
}

/// One relay.
pub struct RelayHand {
    name: String,
    publisher: Publisher,
    held: [Option<HeldEntry>; REQUESTS],
}

impl RelayHand {
    /// A relay that has read nothing.
    pub async fn new(world: &World, number: usize) -> Self {
        let publisher = Publisher::connect(&world.servers.rabbit).await.expect("a publisher");
        Self { name: format!("relay-{number}"), publisher, held: Default::default() }
    }

    /// The connection to the broker is gone, and with it all answers that it has not read.
    pub fn loses_answers(&mut self) {
        for held in self.held.iter_mut().flatten().filter(|held| !held.is_seen) {
            held.answer = None;
        }
    }

    /// What was in its memory is gone.
    pub fn forget(&mut self) {
        self.held = Default::default();
    }
}

/// What is to become of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Stored,
    Lost,
    Returned,
}

/// The id just before this one.
fn before(id: &str) -> String {
    let (ms, number) = id.split_once('-').expect("an id of a stream");
    let (ms, number): (u64, u64) = (ms.parse().expect("ms"), number.parse().expect("a number"));
    if number > 0 { format!("{ms}-{}", number - 1) } else { format!("{}-{}", ms - 1, u64::MAX) }
}

impl Stage {
    /// The relay reads the entry of a request: a new one, its own, or another relay's.
    pub async fn relay_reads(&mut self, (at, relay): (usize, usize)) {
        let outbox = &self.world.servers.redis.outbox;
        let hand = &mut self.relays[relay];
        let entry = self.scene.entries.iter().find(|entry| entry.requests.contains(&at)).expect("its entry");
        let (id, owner) = (entry.id.clone(), entry.owner.as_deref());
        let read = if owner.is_none() {
            outbox.new_entries(0, &hand.name, 1).await.expect("redis")
        } else if owner == Some(&hand.name) {
            outbox.own_entries(0, &hand.name, &before(&id), 1).await.expect("redis").0
        } else {
            let from = PageFrom { start: &id, count: 1 };
            outbox.take_over(0, &hand.name, 0, from).await.expect("redis").entries
        };
        let entry = read.into_iter().next().filter(|entry| entry.id == id);
        hand.held[at] = entry.map(|entry| HeldEntry { entry, answer: None, is_seen: false, attempts: 0 });
    }

    /// The relay sends what it holds of a request; the broker's answer waits until it is read.
    pub async fn relay_publishes(&mut self, (at, relay): (usize, usize), fate: Fate) {
        let exchange = self.topology.orders_exchange();
        let hand = &mut self.relays[relay];
        let Some(held) = &mut hand.held[at] else { return };
        if fate == Fate::Lost {
            return;
        }
        let lines = held.entry.field("o").expect("orders in lines").to_vec();
        let orders = decode_lines(&lines).expect("orders in lines");
        let key = if fate == Fate::Returned { "nowhere" } else { "0" };
        let route = PublishRoute { exchange: &exchange, key };
        let message = Outgoing::lines(route, &orders[0].purchase.request_id.to_string(), lines);
        let message = if switched_off("mandatory") { message.optional() } else { message };
        let mut confirms = Confirms::new();
        confirms.sent(hand.publisher.publish(message).await.expect("sent"), (), Instant::now());
        while !confirms.is_empty() {
            let event = hand.publisher.next_event(Instant::now() + BROKER).await.expect("an answer of the broker");
            assert!(!matches!(event, PublishEvent::Closed(_)), "{event:?}");
            held.answer = confirms.apply(event).pop().map(|(_, result)| result).or(held.answer.take());
        }
    }

    /// The confirm is lost: nothing of it counts.
    pub fn relay_loses_the_confirm(&mut self, (at, relay): (usize, usize)) {
        if let Some(held) = &mut self.relays[relay].held[at] {
            held.answer = None;
        }
    }

    /// A confirmed entry is deleted; another one is counted, and parked when its attempts are spent.
    pub async fn relay_finishes(&mut self, (at, relay): (usize, usize), step: Finish) {
        let servers = &self.world.servers.redis;
        let hand = &mut self.relays[relay];
        let Some(held) = &mut hand.held[at] else { return };
        let id = held.entry.id.clone();
        match step {
            Finish::Notice => held.is_seen = true,
            Finish::Delete => {
                assert_eq!(held.answer, Some(PublishResult::Confirmed), "the broker has it");
                let sent = [SentEntry { id, orders: held.entry.orders() }];
                servers.outbox.done(0, &hand.name, &sent).await.expect("redis");
                hand.held[at] = None;
            }
            Finish::Count => {
                assert_ne!(held.answer, Some(PublishResult::Confirmed), "the broker does not have it");
                (held.answer, held.is_seen) = (None, false);
                held.attempts = servers.outbox.failed(0, &hand.name, &[id]).await.expect("redis")[0];
            }
            Finish::Park => {
                let why = ParkReason { reason: "attempts spent", attempts: held.attempts.max(ATTEMPTS_MAX.into()) };
                let orders = decode_lines(held.entry.field("o").expect("lines")).expect("orders in lines");
                let parked = |order: &seckill::domain::message::OrderMessage| ParkedOrder {
                    request_id: order.purchase.request_id,
                    message: encode(order),
                };
                let orders: Vec<ParkedOrder> = orders.iter().map(parked).collect();
                servers.outbox.park_orders(0, &hand.name, &id, (why, &orders)).await.expect("redis");
                hand.held[at] = None;
            }
        }
    }
}

/// What a relay does with an entry that it has sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    Notice,
    Delete,
    Count,
    Park,
}

/// Whether a mechanism is left out, for what this test does in place of a loop of the product.
pub fn switched_off(mechanism: &str) -> bool {
    fail::eval(mechanism, |_| ()).is_some()
}
