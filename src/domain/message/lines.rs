//! Several orders in lines, the form of a stream's entries: what they have in common once, then a line for each.
//!
//! ```text
//! @<shard> <epoch> <at_ms> <first acceptance number> <sale>
//! <request id> <quantity> <buyer>
//! ```
//!
//! Every line is ended. The numbers of a block follow each other. Blocks may stand one behind the other, so entries of the
//! outbox become one message by being put together. `lua/reserve.lua` writes a block; the relay passes it on unopened.

use super::{BUNDLE_MAX, OrderMessage};
use crate::domain::buyer::Buyer;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::policy::Quantity;
use crate::domain::request::Purchase;

/// Why bytes are no orders in lines, with the line that is wrong.
#[derive(Debug, thiserror::Error)]
#[error("message is not orders in lines: {0:?}")]
pub struct LinesError(String);

/// What the orders of a block have in common.
struct Block {
    sale_id: SaleId,
    shard: u16,
    epoch: u32,
    accepted_at_ms: i64,
    /// Acceptance number of the next order.
    next: u64,
}

impl Block {
    /// Reads the line of a block, without its `@`.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(5, ' ');
        let shard = fields.next()?.parse().ok()?;
        let epoch = fields.next()?.parse().ok()?;
        let accepted_at_ms = fields.next()?.parse().ok()?;
        let next = fields.next()?.parse().ok()?;
        let sale_id = SaleId::parse(fields.next()?).ok()?;
        Some(Self { sale_id, shard, epoch, accepted_at_ms, next })
    }

    /// Reads the next order.
    fn order(&mut self, line: &str) -> Option<OrderMessage> {
        let mut fields = line.splitn(3, ' ');
        let request_id = RequestId::parse(fields.next()?).ok()?;
        let quantity = Quantity::new(fields.next()?.parse().ok()?)?;
        let Buyer { user_id, person } = Buyer::parse(fields.next()?).ok()?;
        let number = self.next;
        self.next = number.checked_add(1)?;
        Some(OrderMessage {
            purchase: Purchase { request_id, sale_id: self.sale_id.clone(), user_id, person, quantity },
            shard: self.shard,
            epoch: self.epoch,
            number,
            accepted_at_ms: self.accepted_at_ms,
        })
    }
}

/// Reads the orders of a message: 1 to [`BUNDLE_MAX`].
///
/// # Errors
/// [`LinesError`] with the first line that is none; then no order of the message is read.
pub fn decode_lines(bytes: &[u8]) -> Result<Vec<OrderMessage>, LinesError> {
    let wrong = |what: &str| LinesError(what.chars().take(100).collect());
    let text = std::str::from_utf8(bytes).map_err(|_not_text| wrong("it is not text"))?;
    let text = text.strip_suffix('\n').ok_or_else(|| wrong("its last line is not ended"))?;
    let (mut block, mut orders) = (None, Vec::with_capacity(BUNDLE_MAX));
    for line in text.split('\n') {
        if let Some(head) = line.strip_prefix('@') {
            block = Some(Block::read(head).ok_or_else(|| wrong(line))?);
            continue;
        }
        let order = block.as_mut().and_then(|block: &mut Block| block.order(line)).ok_or_else(|| wrong(line))?;
        if orders.len() == BUNDLE_MAX {
            return Err(wrong("it has more orders than a message may have"));
        }
        orders.push(order);
    }
    if orders.is_empty() { Err(wrong("it has no order")) } else { Ok(orders) }
}

/// The request ids of a block, as far as they can be read.
pub(crate) fn request_ids_of_lines(bytes: &[u8]) -> impl Iterator<Item = RequestId> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| line.first() != Some(&b'@'));
    lines.filter_map(|line| {
        let id = line.split(|byte| *byte == b' ').next()?;
        RequestId::parse(std::str::from_utf8(id).ok()?).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::any_order_message;
    use proptest::prelude::*;

    /// As the script writes a block.
    fn encode(orders: &[OrderMessage]) -> String {
        let first = &orders[0];
        let OrderMessage { shard, epoch, number, accepted_at_ms, .. } = first;
        let mut text = format!("@{shard} {epoch} {accepted_at_ms} {number} {}\n", first.purchase.sale_id);
        for OrderMessage { purchase, .. } in orders {
            let (id, quantity) = (purchase.request_id, purchase.quantity.get());
            text.push_str(&format!("{id} {quantity} {}\n", purchase.buyer_text()));
        }
        text
    }

    /// Orders as one call of the script accepts them.
    fn block(orders: Vec<OrderMessage>) -> Vec<OrderMessage> {
        let first = orders[0].clone();
        let same = |(at, order): (u64, OrderMessage)| OrderMessage {
            purchase: Purchase { sale_id: first.purchase.sale_id.clone(), ..order.purchase },
            number: first.number.min(1 << 52) + at,
            ..first.clone()
        };
        (0..).zip(orders).map(same).collect()
    }

    proptest! {
        #[test]
        fn what_the_script_writes_is_read_block_by_block(
            first in prop::collection::vec(any_order_message(), 1..BUNDLE_MAX / 2),
            second in prop::collection::vec(any_order_message(), 1..BUNDLE_MAX / 2),
        ) {
            let (first, second) = (block(first), block(second));
            let text = encode(&first) + &encode(&second);
            let ids: Vec<RequestId> = first.iter().chain(&second).map(|order| order.purchase.request_id).collect();
            prop_assert_eq!(request_ids_of_lines(text.as_bytes()).collect::<Vec<_>>(), ids);
            prop_assert_eq!(decode_lines(text.as_bytes()).unwrap(), [first, second].concat());
        }

        #[test]
        fn garbage_is_an_error_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode_lines(&bytes).is_err());
        }
    }

    #[test]
    fn a_damaged_message_says_which_line_is_wrong() {
        for (text, wrong) in [
            ("", "not ended"),
            ("\n", "\"\""),
            ("@0 1 9 1 s\n", "no order"),
            ("@0 1 9 1 s\n5 1 u", "not ended"),
            ("5 1 u\n", "5 1 u"),
            ("@0 1 9 s\n5 1 u\n", "@0 1 9 s"),
            ("@0 1 9 1 s\n5 0 u\n", "5 0 u"),
            ("@0 1 9 1 s\n05 1 u\n", "05 1 u"),
            ("@0 1 9 1 s\n5 1 \n", "5 1 "),
        ] {
            let error = decode_lines(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(wrong), "{text:?}: {error}");
        }
        let many = format!("@0 1 9 1 s\n{}", "5 1 u\n".repeat(BUNDLE_MAX + 1));
        assert!(decode_lines(many.as_bytes()).unwrap_err().to_string().contains("more orders"));
        assert_eq!(decode_lines(b"@0 1 9 7 s\n5 1 a b\n").unwrap()[0].purchase.user_id.as_str(), "a b");
    }
}
