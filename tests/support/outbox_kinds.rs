//! Both kinds of outbox (C8): what the relay promises it promises with either, so the tests of its promises run with both.

use super::world::World;
use seckill::config::OutboxKind;

/// The kinds, as settings.
pub const OUTBOX_KINDS: [&str; 2] = ["redis.outbox=stream", "redis.outbox=list"];

impl World {
    /// The kind of the outbox, as a setting.
    pub fn outbox_set(&self) -> &'static str {
        match self.settings.redis.outbox {
            OutboxKind::Stream => OUTBOX_KINDS[0],
            OutboxKind::List => OUTBOX_KINDS[1],
        }
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
