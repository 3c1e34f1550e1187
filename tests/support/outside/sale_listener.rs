//! A shop that switches its pages by the events of sales; each message has to be as `docs/asyncapi.yaml` says.

use crate::support::basics::asyncapi;
use crate::support::world::{World, eventually};
use amqprs::channel::{BasicGetArguments, Channel, QueueBindArguments, QueueDeclareArguments};
use amqprs::connection::Connection;
use seckill::domain::ids::SaleId;
use seckill::store::rabbit::{Topology, declare};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashSet;

const QUEUE: &str = "sale-events";

/// A queue on the events exchange, for events of sales.
pub struct SaleListener {
    _connection: Connection,
    channel: Channel,
    events: RefCell<Vec<Value>>,
}

impl SaleListener {
    /// Subscribes to the events of sales and of their lines: those from now on are kept for it.
    pub async fn listen(world: &World) -> Self {
        declare(&world.servers.rabbit).await.unwrap();
        let (connection, channel) = crate::support::world::fault_injection::channel(&world.servers.rabbit).await;
        let exchange = Topology::new(&world.servers.rabbit).events_exchange();
        channel.queue_declare(QueueDeclareArguments::durable_client_named(QUEUE)).await.unwrap();
        for keys in ["sale.*", "line.*"] {
            channel.queue_bind(QueueBindArguments::new(QUEUE, &exchange, keys)).await.unwrap();
        }
        Self { _connection: connection, channel, events: RefCell::default() }
    }

    /// The events of a sale that have arrived, as they came, with repeats: version and name without `sale.`.
    pub async fn events_of(&self, sale: &SaleId) -> Vec<(u64, String)> {
        let mut get = BasicGetArguments::new(QUEUE);
        get.no_ack(true);
        while let Some((got, _, body)) = self.channel.basic_get(get.clone()).await.unwrap() {
            let message: Value = serde_json::from_slice(&body).unwrap();
            asyncapi::assert_message(got.routing_key(), &message);
            self.events.borrow_mut().extend(message["events"].as_array().unwrap().iter().cloned());
        }
        let events = self.events.borrow();
        let of_sale = events.iter().filter(|event| event["sale_id"] == sale.as_str() && !event["version"].is_null());
        of_sale.map(named).collect()
    }

    /// How many events of its line have arrived: drawn, offered, lapsed.
    pub async fn of_line(&self, sale: &SaleId) -> [usize; 3] {
        self.events_of(sale).await;
        let events = self.events.borrow();
        let count = |key: &str| {
            let of_line = events.iter().filter(|event| event["sale_id"] == sale.as_str() && event["event"] == key);
            of_line.map(|event| event["entry_id"].as_str()).collect::<HashSet<_>>().len()
        };
        ["line.drawn", "line.offered", "line.lapsed"].map(count)
    }

    /// Waits for these events of a sale, which begin with version 1; the order of messages is not promised, that of versions is.
    pub async fn receives(&self, sale: &SaleId, events: &[&str]) {
        let expected: Vec<(u64, String)> = (1..).zip(events.iter().map(|event| (*event).to_owned())).collect();
        eventually(&format!("{events:?} of {sale}"), async || {
            let mut got = self.events_of(sale).await;
            got.sort();
            got.dedup();
            got == expected
        })
        .await;
    }

    /// The last of these events as it came.
    pub fn last(&self, sale: &SaleId, event: &str) -> Value {
        let events = self.events.borrow();
        let mut of_sale = events.iter().filter(|one| one["sale_id"] == sale.as_str());
        of_sale.rfind(|one| one["event"] == format!("sale.{event}")).expect("it came").clone()
    }
}

/// Version and name without `sale.` of an event.
pub fn named(event: &Value) -> (u64, String) {
    let name = event["event"].as_str().unwrap().trim_start_matches("sale.").to_owned();
    (event["version"].as_u64().unwrap(), name)
}
