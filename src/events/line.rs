//! What is published of a line: drawn, an offer made, an offer lapsed; encoded in one place, wherever it goes.
//!
//! Input: what became of a line or of an entry. Output: JSON with a version of its own; the exchange and the webhooks get the same bytes.
//! Nothing here waits or fails, so a crash leaves nothing.

use crate::domain::draw::{Bytes32, hex};
use crate::domain::ids::{EntryId, RequestId, SaleId};
use crate::domain::line::LineEvent;
use crate::domain::webhook::OF_A_SALE;
use crate::events::published::WaitingEvents;
use serde::Serialize;
use std::borrow::Cow;

/// The version of the form: fields are added, none changes its meaning.
const VERSION: u8 = 1;

/// The draw of a line.
#[derive(Debug, Clone, Copy, Serialize)]
struct DrawnEvent<'a> {
    v: u8,
    event: &'static str,
    sale_id: &'a str,
    entries: u64,
    digest: &'a str,
    seed: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    beacon: Option<&'a str>,
    at: i64,
}

/// An offer of a line, made or lapsed. Its fields are those of the JSON, in this order; one without a value is left out.
#[derive(Debug, Clone, Copy, Serialize)]
struct OfferEvent<'a> {
    v: u8,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rid: Option<RequestId>,
    sale_id: &'a str,
    entry_id: EntryId,
    user: &'a str,
    qty: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    at: i64,
}

/// A line that is drawn.
pub(crate) struct DrawnLine<'a> {
    pub(crate) sale: &'a SaleId,
    pub(crate) entries: u64,
    pub(crate) digest: &'a Bytes32,
    pub(crate) seed: &'a Bytes32,
    pub(crate) beacon: Option<&'a str>,
}

/// An entry whose rank was reached.
pub(crate) struct ReachedEntry<'a> {
    pub(crate) sale: &'a SaleId,
    pub(crate) entry: EntryId,
    pub(crate) user: &'a str,
    pub(crate) quantity: u32,
    pub(crate) rank: Option<u32>,
    pub(crate) request_id: Option<RequestId>,
}

fn encoded(request_id: RequestId, key: &'static str, event: &impl Serialize) -> WaitingEvents {
    // Texts and numbers only: they always are JSON.
    let bodies = serde_json::to_vec(event).unwrap_or_default();
    WaitingEvents { request_id, key: Cow::Borrowed(key), count: 1, bodies }
}

impl DrawnLine<'_> {
    /// Its event. `at`: Unix milliseconds by the database's clock.
    pub(crate) fn event(&self, at: i64) -> WaitingEvents {
        let (digest, seed, key) = (hex(self.digest), hex(self.seed), LineEvent::Drawn.key());
        let (sale_id, entries, beacon) = (self.sale.as_str(), self.entries, self.beacon);
        let event = DrawnEvent { v: VERSION, event: key, sale_id, entries, digest: &digest, seed: &seed, beacon, at };
        encoded(OF_A_SALE, key, &event)
    }
}

impl ReachedEntry<'_> {
    /// Its event. `reason`: why it lapsed; `at`: Unix milliseconds by the database's clock.
    pub(crate) fn event(&self, event: LineEvent, reason: Option<&str>, at: i64) -> WaitingEvents {
        let Self { sale, entry, user, quantity, rank, request_id } = *self;
        let body = OfferEvent {
            v: VERSION,
            event: event.key(),
            rid: request_id,
            sale_id: sale.as_str(),
            entry_id: entry,
            user,
            qty: quantity,
            rank,
            reason,
            at,
        };
        encoded(request_id.unwrap_or(OF_A_SALE), event.key(), &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_published_byte_by_byte_as_receivers_know_it() {
        let sale = SaleId::parse("s").unwrap();
        let text = |event: WaitingEvents| String::from_utf8(event.bodies).unwrap();
        let drawn = DrawnLine { sale: &sale, entries: 2, digest: &[1; 32], seed: &[2; 32], beacon: None };
        let (digest, seed) = (hex(&[1; 32]), hex(&[2; 32]));
        assert_eq!(
            text(drawn.event(7)),
            format!(
                r#"{{"v":1,"event":"line.drawn","sale_id":"s","entries":2,"digest":"{digest}","seed":"{seed}","at":7}}"#
            )
        );
        let mut entry = ReachedEntry {
            sale: &sale,
            entry: EntryId::new(5).unwrap(),
            user: "u",
            quantity: 2,
            rank: Some(3),
            request_id: RequestId::new(9),
        };
        assert_eq!(
            text(entry.event(LineEvent::Offered, None, 7)),
            r#"{"v":1,"event":"line.offered","rid":"9","sale_id":"s","entry_id":"5","user":"u","qty":2,"rank":3,"at":7}"#
        );
        (entry.request_id, entry.rank) = (None, None);
        let lapsed = entry.event(LineEvent::Lapsed, Some("BLOCKED"), 7);
        assert_eq!(lapsed.request_id, OF_A_SALE);
        assert_eq!(
            text(lapsed),
            r#"{"v":1,"event":"line.lapsed","sale_id":"s","entry_id":"5","user":"u","qty":2,"reason":"BLOCKED","at":7}"#
        );
    }
}
