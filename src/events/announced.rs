//! What is published of a sale: one event, encoded in one place, wherever it goes.
//!
//! Input: what is so of a sale. Output: JSON with a version of its own; the exchange and the webhooks get the same bytes. Nothing here
//! waits or fails, so a crash leaves nothing.

use crate::domain::announcement::SaleEvent;
use crate::domain::ids::SaleId;
use crate::domain::webhook::OF_A_SALE;
use crate::events::published::WaitingEvents;
use serde::Serialize;
use std::borrow::Cow;

/// The version of the form: fields are added, none changes its meaning.
const VERSION: u8 = 1;

/// One event of a sale. Its fields are those of the JSON, in this order; one without a value is left out.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct AnnouncedEvent<'a> {
    v: u8,
    event: &'static str,
    sale_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    drop_id: Option<&'a str>,
    state: &'static str,
    version: u32,
    at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<i64>,
}

impl<'a> AnnouncedEvent<'a> {
    /// `event` of a sale, its `version`th. `at`: Unix milliseconds by the database's clock; `remaining`: units on sale, where they are
    /// known.
    pub(crate) fn new(
        (sale_id, drop_id): (&'a SaleId, Option<&'a str>),
        (event, version): (SaleEvent, u32),
        at: i64,
        remaining: Option<i64>,
    ) -> Self {
        let (key, state) = (event.key(), event.state().code());
        Self { v: VERSION, event: key, sale_id: sale_id.as_str(), drop_id, state, version, at, remaining }
    }

    /// As it is published.
    pub(crate) fn encoded(&self) -> WaitingEvents {
        // Texts and numbers only: they always are JSON.
        let bodies = serde_json::to_vec(self).unwrap_or_default();
        WaitingEvents { request_id: OF_A_SALE, key: Cow::Borrowed(self.event), count: 1, bodies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_published_byte_by_byte_as_receivers_know_it() {
        let sale = SaleId::parse("s").unwrap();
        let text = |event: AnnouncedEvent<'_>| String::from_utf8(event.encoded().bodies).unwrap();
        let of_drop = AnnouncedEvent::new((&sale, Some("d")), (SaleEvent::SoldOut, 2), 7, Some(0));
        assert_eq!(of_drop.encoded().key, "sale.sold_out");
        assert_eq!(
            text(of_drop),
            r#"{"v":1,"event":"sale.sold_out","sale_id":"s","drop_id":"d","state":"SOLD_OUT","version":2,"at":7,"remaining":0}"#
        );
        let plain = AnnouncedEvent::new((&sale, None), (SaleEvent::Ended, 3), 7, None);
        assert_eq!(text(plain), r#"{"v":1,"event":"sale.ended","sale_id":"s","state":"ENDED","version":3,"at":7}"#);
    }
}
