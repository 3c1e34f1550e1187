//! Where a page of deliveries ended, as a cursor (`http/cursors`).

use super::rows::{DeliveryPlace, ListedDelivery};
use crate::http::bad_form::BadForm;
use crate::http::cursors::{place_of, time};

/// The page of deliveries ended with this one.
pub(super) fn after_delivery(last: &ListedDelivery) -> String {
    format!("{}-{}-{}-{}", last.next_at_ms, last.created_at_ms, last.delivery_id, last.webhook)
}

/// Where a page of deliveries ended.
pub(super) fn delivery_place(cursor: &str) -> Result<DeliveryPlace, BadForm> {
    place_of(cursor, |cursor| {
        let mut parts = cursor.splitn(4, '-');
        Some(DeliveryPlace {
            next_at_ms: time(parts.next()?)?,
            created_at_ms: time(parts.next()?)?,
            delivery_id: parts.next()?.parse().ok()?,
            webhook: parts.next()?.to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let delivery = ListedDelivery {
            delivery_id: 4711,
            webhook: "a-shop.1".to_owned(),
            request_id: RequestId::new(7).unwrap(),
            event_key: "order.paid".to_owned(),
            body: Vec::new(),
            state: "DEAD".to_owned(),
            attempts: 1,
            next_at_ms: 1_763_720_000_123,
            problem: None,
            created_at_ms: 1_763_720_000_001,
        };
        let place = delivery_place(&after_delivery(&delivery)).unwrap();
        let expected = DeliveryPlace {
            webhook: delivery.webhook,
            next_at_ms: delivery.next_at_ms,
            created_at_ms: delivery.created_at_ms,
            delivery_id: delivery.delivery_id,
        };
        assert_eq!(place, expected);
    }

    #[test]
    fn what_is_no_cursor_is_refused_by_name() {
        for text in ["", "7-7-7", "x-7-7-a", "7-7--1-a", &format!("7-7-7-{}", "a".repeat(300))] {
            assert_eq!(delivery_place(text).unwrap_err().field, "cursor", "{text}");
        }
    }
}
