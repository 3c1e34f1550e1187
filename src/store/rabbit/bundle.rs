//! Several orders in one message: what the broker does for a message it then does once for all of them. Pure.
//!
//! One line an order, `<message id> <body>`, and a content type that says so. A body is opaque here and stays byte by byte what
//! it was; whatever does not fit into a line travels alone. Orders that are sent again (retries, dead letters) travel alone,
//! so a bundle is only ever on its first way, or where the broker itself put it: in the dead-letter queue.
//!
//! Orders that are packed here: those of a list outbox, whose entry is one order, and those that 0.2.0 put into a stream with
//! `redis.outbox_format` 1. Entries in lines are put together as they are.

use super::headers::BODY_BYTES_MAX;
use crate::domain::message::{BUNDLE_MAX, OrderMessage, decode_lines};
use amqprs::BasicProperties;

/// The content type of a bundle.
pub(super) const CONTENT_TYPE: &str = "application/vnd.seckill.orders";
/// The content type of orders in lines.
pub(super) const LINES_CONTENT_TYPE: &str = "application/vnd.seckill.orders.lines";
/// Longest body that may share a message, in bytes.
const SHARED_BYTES_MAX: usize = 900;
/// Longest message id that may share a message, in bytes.
const ID_BYTES_MAX: usize = 64;
const _: () = assert!(BUNDLE_MAX * (ID_BYTES_MAX + SHARED_BYTES_MAX + 2) <= BODY_BYTES_MAX, "a full bundle is sent");

/// Whether an order fits into a line.
#[must_use]
pub(crate) fn may_share(message_id: &str, body: &[u8]) -> bool {
    let plain_id =
        (1..=ID_BYTES_MAX).contains(&message_id.len()) && message_id.bytes().all(|byte| byte.is_ascii_graphic());
    plain_id && (1..=SHARED_BYTES_MAX).contains(&body.len()) && !body.contains(&b'\n')
}

/// The body of a message with these orders, (message id, body) each; all of them [`may_share`].
pub(super) fn pack<'a>(orders: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut packed = Vec::with_capacity(4096);
    for (message_id, body) in orders {
        packed.extend_from_slice(message_id.as_bytes());
        packed.push(b' ');
        packed.extend_from_slice(body);
        packed.push(b'\n');
    }
    packed
}

/// One order of a message.
pub(super) struct OpenedOrder {
    /// The request id, if the sender is one of ours; none where the order is read already.
    pub(super) message_id: Option<String>,
    /// Its bytes; none where the order is read already.
    pub(super) body: Vec<u8>,
    /// The order, when it came in lines.
    pub(super) order: Option<OrderMessage>,
}

/// The orders of a message, one or several; at least one. What calls itself several and is not is one order that cannot be read.
pub(super) fn open(properties: &BasicProperties, body: Vec<u8>) -> Vec<OpenedOrder> {
    let unread = |message_id, body| OpenedOrder { message_id, body, order: None };
    let opened: Option<Vec<OpenedOrder>> = match properties.content_type().map(String::as_str) {
        Some(CONTENT_TYPE) => {
            unpack(&body).map(|orders| orders.into_iter().map(|(id, body)| unread(Some(id), body)).collect())
        }
        Some(LINES_CONTENT_TYPE) => decode_lines(&body).ok().map(|orders| orders.into_iter().map(read).collect()),
        Some(_) | None => None,
    };
    opened.unwrap_or_else(|| vec![unread(properties.message_id().cloned(), body)])
}

fn read(order: OrderMessage) -> OpenedOrder {
    OpenedOrder { message_id: None, body: Vec::new(), order: Some(order) }
}

/// The orders of a bundle, (message id, body) each; `None` when it is no bundle of ours, which then is one damaged message.
fn unpack(packed: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let lines = packed.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    let mut orders = Vec::with_capacity(BUNDLE_MAX / 4);
    for line in lines {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let (message_id, body) = (std::str::from_utf8(line.get(..at)?).ok()?, line.get(at + 1..)?);
        if orders.len() == BUNDLE_MAX || !may_share(message_id, body) {
            return None;
        }
        orders.push((message_id.to_owned(), body.to_vec()));
    }
    Some(orders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked_byte_by_byte(
            orders in prop::collection::vec(("[!-~]{1,64}", prop::collection::vec(any::<u8>(), 1..SHARED_BYTES_MAX)), 1..BUNDLE_MAX),
        ) {
            let orders: Vec<(String, Vec<u8>)> = orders.into_iter().filter(|(id, body)| may_share(id, body)).collect();
            prop_assume!(!orders.is_empty());
            let packed = pack(orders.iter().map(|(id, body)| (id.as_str(), body.as_slice())));
            prop_assert_eq!(unpack(&packed), Some(orders));
        }

        #[test]
        fn a_damaged_bundle_is_one_message_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(orders) = unpack(&bytes) {
                prop_assert_eq!(pack(orders.iter().map(|(id, body)| (id.as_str(), body.as_slice()))), bytes);
            }
        }
    }

    #[test]
    fn what_does_not_fit_into_a_line_travels_alone() {
        let long = vec![b'x'; SHARED_BYTES_MAX + 1];
        for (id, body) in
            [("", b"x".as_slice()), ("a b", b"x"), ("a\n", b"x"), ("ä", b"x"), ("1", b""), ("1", b"x\ny"), ("1", &long)]
        {
            assert!(!may_share(id, body), "{id:?}");
        }
        assert!(may_share("1", b"\xff x"), "the body is opaque");
    }

    #[test]
    fn more_than_can_be_noted_is_no_bundle() {
        let of = |count: usize| b"1 x\n".repeat(count);
        assert_eq!(unpack(&of(BUNDLE_MAX)).map(|orders| orders.len()), Some(BUNDLE_MAX));
        assert_eq!((unpack(&of(BUNDLE_MAX + 1)), unpack(b""), unpack(b"\n"), unpack(b"1 x")), (None, None, None, None));
    }
}
