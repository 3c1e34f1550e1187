//! Where a page of a list ended, as callers get and return it: letters, digits, dots and dashes, which a URL and a shell leave as
//! they are. Callers do not take it apart.
//!
//! Input: the last row of a page, or such a text. Output: the text, or the place. Keeps nothing.

use crate::events::webhooks::rows::{DeliveryPlace, ListedDelivery};
use crate::http::bad_form::{BadForm, bad};
use crate::orders::rows::{Payment, RefundPlace};

/// Longest cursor, bytes: the id of a payment in hexadecimal digits, and its time.
const CURSOR_BYTES_MAX: usize = 300;

/// The last row of a page behind which there may be more: of a full one.
pub(crate) fn last_of_full<T>(page: &[T], limit: u16) -> Option<&T> {
    page.last().filter(|_| page.len() == usize::from(limit))
}

/// The page of refunds ended with this payment.
pub(crate) fn after_payment(payment: &Payment) -> String {
    let id: String = payment.payment_id.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{id}", payment.state_at_ms)
}

/// The page of deliveries ended with this one.
pub(crate) fn after_delivery(last: &ListedDelivery) -> String {
    format!("{}-{}-{}-{}", last.next_at_ms, last.created_at_ms, last.delivery_id, last.webhook)
}

fn no_cursor<T>() -> Result<T, BadForm> {
    bad("cursor", "next of the page before", "上一页的 next")
}

/// Where a page of refunds ended.
pub(crate) fn refund_place(cursor: &str) -> Result<RefundPlace, BadForm> {
    let read = || {
        let (state_at, id) = cursor.split_once('-')?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let id = id.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
        Some(RefundPlace { state_at_ms: time(state_at)?, payment_id: String::from_utf8(id).ok()? })
    };
    match read() {
        Some(place) if cursor.len() <= CURSOR_BYTES_MAX => Ok(place),
        Some(_) | None => no_cursor(),
    }
}

/// Where a page of deliveries ended.
pub(crate) fn delivery_place(cursor: &str) -> Result<DeliveryPlace, BadForm> {
    let read = || {
        let mut parts = cursor.splitn(4, '-');
        Some(DeliveryPlace {
            next_at_ms: time(parts.next()?)?,
            created_at_ms: time(parts.next()?)?,
            delivery_id: parts.next()?.parse().ok()?,
            webhook: parts.next()?.to_owned(),
        })
    };
    match read() {
        Some(place) if cursor.len() <= CURSOR_BYTES_MAX => Ok(place),
        Some(_) | None => no_cursor(),
    }
}

/// A time that the database can hold, Unix milliseconds: up to the year 9999.
fn time(text: &str) -> Option<i64> {
    text.parse().ok().filter(|ms| (0..=253_402_300_799_999).contains(ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;
    use crate::domain::payment::PaymentState;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let payment = Payment {
            payment_id: "pi_3&#%-'".to_owned(),
            request_id: RequestId::new(7).unwrap(),
            amount_cents: 1,
            currency: "CNY".to_owned(),
            state: PaymentState::RefundNeeded,
            reason: None,
            created_at_ms: 1,
            state_at_ms: 1_763_720_000_123,
        };
        let cursor = after_payment(&payment);
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{cursor}");
        let place = refund_place(&cursor).unwrap();
        assert_eq!((place.state_at_ms, place.payment_id), (payment.state_at_ms, payment.payment_id));
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
        for text in
            ["", "7", "x-70", "-1-70", "7-7g", "7-é", "7-ff", "253402300800000-70", &format!("7-{}", "70".repeat(150))]
        {
            assert_eq!(refund_place(text).unwrap_err().field, "cursor", "{text}");
        }
        for text in ["", "7-7-7", "x-7-7-a", "7-7--1-a", &format!("7-7-7-{}", "a".repeat(300))] {
            assert_eq!(delivery_place(text).unwrap_err().field, "cursor", "{text}");
        }
    }
}
