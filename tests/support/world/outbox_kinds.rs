//! The kinds of outbox (C8): what the relay promises it promises with each, so the tests of its promises run with both: a stream,
//! whose entries have several orders, and a list, whose entries have one.

use super::World;
use seckill::config::OutboxKind;
use seckill::domain::message::OrderMessage;
use seckill::domain::message::{decode, decode_lines, encode};
use seckill::store::redis::{OutboxEntry, ParkedOrder, SentEntry};

/// The kinds, as settings.
pub const OUTBOX_KINDS: [&str; 2] = [STREAM, LIST];
/// An entry is up to 64 orders, in lines.
pub const STREAM: &str = "redis.outbox=stream";
/// An entry is one order, in JSON.
pub const LIST: &str = "redis.outbox=list";

/// The orders of an entry.
pub fn orders_of(entry: &OutboxEntry) -> Vec<OrderMessage> {
    match entry.field("o") {
        Some(lines) => decode_lines(lines).expect("lines of orders"),
        None => vec![decode(entry.field("p").expect("a payload")).expect("a message")],
    }
}

/// Bodies of the first outbox, in order, as the relay would send them.
pub async fn bodies(world: &World) -> Vec<Vec<u8>> {
    let entries = world.servers.redis.outbox.page(0, "-", 1_000).await.expect("the outbox");
    entries.iter().flat_map(orders_of).map(|order| encode(&order).into_bytes()).collect()
}

/// The orders of an entry as the relay parks them: one by one where the entry may have several, else the entry as it is.
pub fn parked_orders(entry: &OutboxEntry) -> Vec<ParkedOrder> {
    let orders = if entry.field("o").is_some() { orders_of(entry) } else { vec![] };
    let parked = |order: &OrderMessage| ParkedOrder { request_id: order.purchase.request_id, message: encode(order) };
    orders.iter().map(parked).collect()
}

/// An entry as the relay deletes it.
pub fn sent(entry: &OutboxEntry) -> SentEntry {
    SentEntry { id: entry.id.clone(), orders: entry.orders() }
}

/// Entries that are only known by their ids.
pub fn sent_by_id(ids: &[String]) -> Vec<SentEntry> {
    ids.iter().map(|id| SentEntry { id: id.clone(), orders: 1 }).collect()
}

impl World {
    /// The kind of the outbox, as a setting.
    pub fn outbox_set(&self) -> &'static str {
        match self.settings.redis.outbox {
            OutboxKind::Stream => STREAM,
            OutboxKind::List => LIST,
        }
    }

    /// Entries that hold these orders: as many, where an entry is one order; else as many as there are.
    pub async fn entries_of(&self, orders: usize) -> usize {
        if self.outbox_set() == LIST {
            return orders;
        }
        let entries = self.servers.redis.outbox.page(0, "-", 1_000).await.expect("redis");
        assert_eq!(entries.iter().map(OutboxEntry::orders).sum::<usize>(), orders);
        entries.len()
    }

    /// Puts something into the outbox that a relay may not be able to read: sale, request id, payload.
    pub async fn put_in_outbox(&self, sale: Option<&str>, rid: &str, payload: Option<&str>) {
        let keys = &self.servers.redis.keys;
        match self.settings.redis.outbox {
            OutboxKind::Stream => {
                let (outbox, all) =
                    (keys.outbox(0), [("who", Some("knows")), ("s", sale), ("r", Some(rid)), ("p", payload)]);
                let fields = all.into_iter().filter_map(|(name, value)| Some([name, value?])).flatten();
                self.redis(&["XADD", &outbox, "*"].into_iter().chain(fields).collect::<Vec<_>>()).await;
            }
            OutboxKind::List => {
                let id = format!("{}-{rid}", rand::random::<u32>());
                let entry = match (sale, payload) {
                    (Some(sale), Some(payload)) => format!("{id} {} {payload}", sale.replace(' ', "!")),
                    (Some(sale), None) => format!("{id} {sale}"),
                    (None, _) => "who knows".to_owned(),
                };
                self.redis(&["LPUSH", &keys.outbox_list(0), &entry]).await;
            }
        }
    }
}
