//! An envelope of a version that is not there yet, for tests of two versions side by side; no release has it.
//!
//! `{"v":2,"rid":"…","order":{"sale":"…","user":"…","qty":1},"shard":0,"epoch":1,"no":17,"at":1763720000123}`
//!
//! Another shape, so that the reader of version 1 cannot take it for one of its own. The script appends the same end to both.

use super::order_message::OrderMessage;
use crate::domain::buyer::Buyer;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::policy::Quantity;
use crate::domain::request::Purchase;
use serde::Deserialize;
use std::sync::atomic::{AtomicBool, Ordering};

const VERSION: u32 = 2;

static PLAYED: AtomicBool = AtomicBool::new(false);

/// From now on this process writes this envelope, and reads both. Set once, at its start.
pub(crate) fn play() {
    PLAYED.store(true, Ordering::Relaxed);
}

/// Whether this process does.
pub(crate) fn is_played() -> bool {
    PLAYED.load(Ordering::Relaxed)
}

#[derive(Deserialize)]
struct NextEnvelope {
    v: u32,
    rid: RequestId,
    order: NextOrder,
    shard: u16,
    epoch: u32,
    no: u64,
    at: i64,
}

#[derive(Deserialize)]
struct NextOrder {
    sale: SaleId,
    user: Buyer,
    qty: Quantity,
}

/// The function of `lua/reserve.lua` that writes the head of an envelope, when this version is played.
pub(crate) fn head_in_lua() -> Option<String> {
    let order = r#"'","order":{"sale":"' .. sale .. '","user":' .. quoted(user) .. ',"qty":' .. quantity .. '}'"#;
    is_played().then(|| {
        format!(r#"local function head(id, user, quantity) return '{{"v":{VERSION},"rid":"' .. id .. {order} end"#)
    })
}

pub(super) fn head(purchase: &Purchase, out: &mut String) {
    let Purchase { request_id, sale_id, quantity, .. } = purchase;
    let order = serde_json::json!({ "sale": sale_id.as_str(), "user": purchase.buyer_text(), "qty": quantity.get() });
    out.push_str(&format!(r#"{{"v":{VERSION},"rid":"{request_id}","order":{order}"#));
}

/// What was accepted, if the bytes are an envelope of this version.
pub(super) fn decode(bytes: &[u8]) -> Option<OrderMessage> {
    let NextEnvelope { v, rid, order, shard, epoch, no, at } = serde_json::from_slice(bytes).ok()?;
    let NextOrder { sale, user: Buyer { user_id, person }, qty } = order;
    (v == VERSION).then_some(OrderMessage {
        purchase: Purchase { request_id: rid, sale_id: sale, user_id, person, quantity: qty },
        shard,
        epoch,
        number: no,
        accepted_at_ms: at,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{MessageError, any_order_message};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_a_reader_of_this_version_reads_it_and_the_other_says_which_it_is(accepted in any_order_message()) {
            let mut text = String::new();
            head(&accepted.purchase, &mut text);
            let OrderMessage { shard, epoch, number, accepted_at_ms, .. } = accepted;
            text.push_str(&format!(r#","shard":{shard},"epoch":{epoch},"no":{number},"at":{accepted_at_ms}}}"#));
            prop_assert!(text.len() <= super::super::BYTES_MAX);
            prop_assert_eq!(decode(text.as_bytes()), Some(accepted.clone()));
            prop_assert!(matches!(super::super::decode(text.as_bytes()), Err(MessageError::UnknownVersion(VERSION))));
            prop_assert_eq!(decode(super::super::encode(&accepted).as_bytes()), None);
        }
    }
}
