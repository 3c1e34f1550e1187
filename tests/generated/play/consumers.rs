//! P4, one step at a time: deliver, one transaction, ack; or a confirmed copy, then the ack.

use super::relays::{RelayHand, switched_off};
use super::stage::Stage;
use crate::state::REQUESTS;
use crate::support::world::World;
use crate::support::world::fault_injection::channel;
use amqprs::channel::{BasicAckArguments, BasicGetArguments, BasicNackArguments, Channel};
use amqprs::connection::Connection;
use amqprs::{BasicProperties, FieldTable, FieldValue};
use diesel_async::SimpleAsyncConnection;
use seckill::domain::message::{OrderMessage, decode, decode_lines, encode};
use seckill::domain::outcome::Verdict;
use seckill::store::mysql::DbError;
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::{ATTEMPT_HEADER, HeaderValue, Outgoing, PublishRoute, send_all};

/// A message that a consumer has and has not acknowledged.
struct HeldMessage {
    tag: u64,
    attempts: u32,
    orders: Vec<OrderMessage>,
}

/// One consumer.
pub struct ConsumerHand {
    channel: Channel,
    held: Option<HeldMessage>,
    _connection: Connection,
}

impl ConsumerHand {
    /// A consumer that has nothing.
    pub async fn new(world: &World) -> Self {
        let (connection, channel) = channel(&world.servers.rabbit).await;
        Self { channel, held: None, _connection: connection }
    }

    /// What it has is gone with the broker that gave it.
    pub async fn throw_away(&mut self) {
        if let Some(held) = self.held.take() {
            self.channel.basic_ack(BasicAckArguments::new(held.tag, false)).await.expect("acknowledged");
        }
    }
}

fn attempts(properties: &BasicProperties) -> u32 {
    let name = ATTEMPT_HEADER.try_into().expect("a short text");
    match properties.headers().and_then(|table: &FieldTable| table.get(&name)) {
        Some(FieldValue::I(value)) => u32::try_from(*value).unwrap_or(0),
        Some(FieldValue::l(value)) => u32::try_from(*value).unwrap_or(0),
        _ => 0,
    }
}

/// The orders of a message, in lines or alone.
fn orders_of(body: &[u8]) -> Vec<OrderMessage> {
    decode(body).map_or_else(|_| decode_lines(body).expect("orders in lines"), |order| vec![order])
}

impl Stage {
    /// Gives a consumer the message of a request that was tried this often. `false`: there is none.
    pub async fn delivers(&mut self, at: usize, tried: usize, consumer: usize) -> bool {
        let (wanted, queue) = (self.scene.request_id(at), self.orders_queue.clone());
        let hand = &mut self.consumers[consumer];
        let mut others = Vec::new();
        while let Some((got, properties, body)) =
            hand.channel.basic_get(BasicGetArguments::new(&queue)).await.expect("a message")
        {
            let (orders, attempts) = (orders_of(&body), attempts(&properties));
            let is_it = orders.iter().any(|order| order.purchase.request_id == wanted);
            if is_it && attempts as usize == tried {
                hand.held = Some(HeldMessage { tag: got.delivery_tag(), attempts, orders });
                break;
            }
            others.push(got.delivery_tag());
        }
        for tag in others {
            hand.channel.basic_nack(BasicNackArguments::new(tag, false, true)).await.expect("put back");
        }
        hand.held.is_some()
    }

    fn order_held(&self, at: usize, consumer: usize) -> (OrderMessage, u32) {
        let held = self.consumers[consumer].held.as_ref().expect("a message in hand");
        let wanted = self.scene.request_id(at);
        let order = held.orders.iter().find(|order| order.purchase.request_id == wanted);
        (order.expect("its order").clone(), held.attempts)
    }

    /// The transaction of a request whose message a consumer has.
    pub async fn persists(&mut self, at: usize, consumer: usize) -> Result<Verdict, DbError> {
        let (order, _) = self.order_held(at, consumer);
        let persister = &self.world.servers.rows.persister;
        let mut verdicts = persister.persist_all(&[order], PersistSource::Relay).await;
        verdicts.pop().expect("a verdict")
    }

    /// The same, and the database ends it with an error: behind all of its statements, or at the first one.
    pub async fn fails_to_persist(&mut self, at: usize, consumer: usize, late: bool) -> Result<(), String> {
        let curse = format!("INSERT INTO curses VALUES ('{}', {})", self.scene.sale, u8::from(late));
        self.database.batch_execute(&curse).await.expect("cursed");
        let verdict = self.persists(at, consumer).await;
        self.database.batch_execute("DELETE FROM curses").await.expect("not cursed");
        match verdict {
            Ok(verdict) => Err(format!("the database has refused it, and the verdict is {verdict:?}")),
            Err(_) => Ok(()),
        }
    }

    /// Copies an order to the retry queue, or to the MQ DLQ, and waits for the confirm.
    pub async fn copies(&mut self, at: usize, consumer: usize, parks: bool) {
        let (order, attempts) = self.order_held(at, consumer);
        self.copy(&order, attempts, parks).await;
    }

    async fn copy(&mut self, order: &OrderMessage, attempts: u32, parks: bool) {
        let exchange = if parks { self.topology.dlq() } else { self.topology.retry_exchange(attempts + 1) };
        let route = PublishRoute { exchange: &exchange, key: "0" };
        let copy = Outgoing::new(route, order.purchase.request_id.to_string(), encode(order))
            .header(ATTEMPT_HEADER, HeaderValue::Int(i64::from(attempts) + 1));
        send_all(&self.world.servers.rabbit, &mut self.sender, vec![copy]).await.expect("copied");
    }

    /// Acknowledges what a consumer has, and marks in the ledger what is decided of it.
    pub async fn acknowledges(&mut self, consumer: usize) {
        let hand = &mut self.consumers[consumer];
        if let Some(held) = hand.held.take() {
            hand.channel.basic_ack(BasicAckArguments::new(held.tag, false)).await.expect("acknowledged");
        }
    }

    /// A consumer dies: what it has comes again.
    pub async fn consumer_dies(&mut self, consumer: usize) {
        let hand = &mut self.consumers[consumer];
        let Some(held) = hand.held.take() else { return };
        if switched_off("ack_after_commit") {
            hand.channel.basic_ack(BasicAckArguments::new(held.tag, false)).await.expect("acknowledged");
        } else {
            hand.channel.basic_nack(BasicNackArguments::new(held.tag, false, true)).await.expect("put back");
        }
    }

    /// A message of the retry queue is old enough: the broker gives it back to its order queue.
    pub async fn expires(&mut self, at: usize) {
        let (wanted, queue) = (self.scene.request_id(at), self.retry_queue.clone());
        let (mut last, mut found) = (None, None);
        while let Some((got, properties, body)) =
            self.admin.basic_get(BasicGetArguments::new(&queue)).await.expect("a message")
        {
            last = Some(got.delivery_tag());
            let order = orders_of(&body).remove(0);
            if order.purchase.request_id == wanted {
                found = Some((got.delivery_tag(), order, attempts(&properties)));
                break;
            }
        }
        let (tag, order, attempts) = found.expect("a message of it in the retry queue");
        let exchange = self.topology.orders_exchange();
        let back = Outgoing::new(PublishRoute { exchange: &exchange, key: "0" }, wanted.to_string(), encode(&order))
            .header(ATTEMPT_HEADER, HeaderValue::Int(attempts.into()));
        send_all(&self.world.servers.rabbit, &mut self.sender, vec![back]).await.expect("back");
        self.admin.basic_ack(BasicAckArguments::new(tag, false)).await.expect("acknowledged");
        if last.is_some_and(|last| last > 1) {
            self.admin.basic_nack(BasicNackArguments::new(0, true, true)).await.expect("put back");
        }
    }

    /// The broker comes back empty: whatever a consumer has is gone, too.
    pub async fn broker_loses_data(&mut self) {
        for at in 0..self.consumers.len() {
            self.consumers[at].throw_away().await;
        }
        self.relays.iter_mut().for_each(RelayHand::loses_answers);
        self.empty_the_broker().await;
    }
}

const _: () = assert!(REQUESTS < 8, "ids of a path are eight apart");
