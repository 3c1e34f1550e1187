//! A downstream system that gets the events of orders; each message has to be as `docs/asyncapi.yaml` says.

use crate::support::basics::asyncapi;
use crate::support::world::{World, pause};
use amqprs::channel::{BasicGetArguments, Channel, QueueBindArguments, QueueDeclareArguments, QueueDeleteArguments};
use amqprs::connection::Connection;
use amqprs::{FieldTable, FieldValue, ShortStr};
use seckill::domain::ids::RequestId;
use seckill::store::rabbit::{Topology, declare};
use serde_json::Value;
use std::collections::BTreeMap;

/// A downstream system: a queue on the events exchange.
pub struct Downstream {
    _connection: Connection,
    channel: Channel,
    /// How often each outcome of each request was received.
    pub counts: BTreeMap<(String, String), u32>,
    /// The events as they came.
    pub events: Vec<Value>,
    /// Outcomes in the largest message.
    pub largest: usize,
}

impl Downstream {
    /// Subscribes: events from now on are kept for it.
    pub async fn listen(world: &World) -> Self {
        declare(&world.servers.rabbit).await.unwrap();
        let (connection, channel) = crate::support::world::fault_injection::channel(&world.servers.rabbit).await;
        let exchange = Topology::new(&world.servers.rabbit).events_exchange();
        channel.queue_declare(QueueDeclareArguments::durable_client_named("downstream")).await.unwrap();
        channel.queue_bind(QueueBindArguments::new("downstream", &exchange, "order.*")).await.unwrap();
        Self { _connection: connection, channel, counts: BTreeMap::new(), events: Vec::new(), largest: 0 }
    }

    /// Reads the events that have arrived.
    pub async fn read(&mut self) {
        let mut get = BasicGetArguments::new("downstream");
        get.no_ack(true);
        while let Some((got, _, body)) = self.channel.basic_get(get.clone()).await.unwrap() {
            let bundle: Value = serde_json::from_slice(&body).unwrap();
            asyncapi::assert_message(got.routing_key(), &bundle);
            let events = bundle["events"].as_array().unwrap();
            self.largest = self.largest.max(events.len());
            for event in events {
                let id = event["rid"].as_str().unwrap().to_owned();
                let outcome =
                    format!("{} {}", event["status"].as_str().unwrap(), event["reason"].as_str().unwrap_or(""))
                        .trim()
                        .to_owned();
                let status = event["status"].as_str().unwrap().to_lowercase();
                assert_eq!(*got.routing_key(), format!("order.{status}"), "{event}");
                self.events.push(event.clone());
                *self.counts.entry((id, outcome)).or_default() += 1;
            }
        }
    }

    /// Waits until an outcome was received `times` times.
    pub async fn receives(&mut self, id: RequestId, outcome: &str, times: u32) {
        let key = (id.to_string(), outcome.to_owned());
        for _ in 0..1_500 {
            self.read().await;
            if self.counts.get(&key).is_some_and(|count| *count >= times) {
                return;
            }
            pause().await;
        }
        panic!("{key:?} was not received {times} times: {:?}", self.counts);
    }
}

/// A queue of another subscriber.
const FULL: &str = "full";

/// Another subscriber, whose queue is full: the broker takes no event as long as it is there.
pub async fn a_full_queue(world: &World) {
    let mut arguments = FieldTable::new();
    arguments.insert(ShortStr::try_from("x-max-length").unwrap(), FieldValue::l(0));
    arguments.insert(ShortStr::try_from("x-overflow").unwrap(), FieldValue::from("reject-publish"));
    let (connection, channel) = crate::support::world::fault_injection::channel(&world.servers.rabbit).await;
    let declare = QueueDeclareArguments::durable_client_named(FULL).arguments(arguments).finish();
    channel.queue_declare(declare).await.unwrap();
    let exchange = Topology::new(&world.servers.rabbit).events_exchange();
    channel.queue_bind(QueueBindArguments::new(FULL, &exchange, "order.*")).await.unwrap();
    connection.close().await.unwrap();
}

/// It is gone.
pub async fn without_the_full_queue(world: &World) {
    let (connection, channel) = crate::support::world::fault_injection::channel(&world.servers.rabbit).await;
    channel.queue_delete(QueueDeleteArguments::new(FULL)).await.unwrap();
    connection.close().await.unwrap();
}
