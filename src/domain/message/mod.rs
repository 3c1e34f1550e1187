//! The message an accepted request travels as (outbox entry → RabbitMQ → consumer): a versioned JSON envelope.
//!
//! `{"v":1,"rid":"…","sale":"…","user":"…","qty":1,"shard":0,"epoch":1,"no":17,"at":1763720000123}`
//!
//! `lua/reserve.lua` writes it into the outbox, and [`encode`] writes the same where a request is sent again. The relay treats
//! the bytes as opaque. A message may also hold several orders in lines ([`lines`]).

mod lines;
#[cfg(feature = "faults")]
mod next;
mod order_message;

pub use lines::decode_lines;
pub(crate) use lines::request_ids_of_lines;
#[cfg(feature = "faults")]
pub(crate) use next::{
    head_in_lua as next_version_head_in_lua, is_played as is_next_version_played, play as play_next_version,
};
pub use order_message::OrderMessage;
pub(crate) use order_message::PayloadHash;
#[cfg(test)]
pub(super) use order_message::tests::any_order_message;

use super::buyer::Buyer;
use super::decimal::push_decimal;
use super::ids::{RequestId, SaleId};
use super::policy::Quantity;
use super::request::Purchase;
use serde::Deserialize;

/// The version written by this build. A reader takes every version it knows; others wait in the retry queues for a reader
/// that does, then in the MQ DLQ, and P5 persists their requests from the ledger. None is dropped.
pub(crate) const VERSION: u32 = 1;
/// Longest message, in bytes: a full envelope with 64-byte ids of escaped characters stays well below.
pub(crate) const BYTES_MAX: usize = 4096;
/// Most orders that share one message to the broker: one bit each, where it is noted which of them are settled.
pub(crate) const BUNDLE_MAX: usize = 64;
/// Most events of one message, and of a row that waits to be one; about 20 kB.
pub(crate) const EVENTS_MAX: usize = 100;

/// Why bytes are not a message of ours. Such a message is parked with this text, neither retried nor dropped (C6).
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Longer than any message of ours.
    #[error("message has {0} bytes, at most {BYTES_MAX} are read")]
    TooLong(usize),
    /// Not the JSON of an envelope.
    #[error("message is not an order envelope: {0}")]
    Malformed(#[from] serde_json::Error),
    /// An envelope of a version this build does not know.
    #[error("message has envelope version {0}, this build reads version {VERSION}")]
    UnknownVersion(u32),
}

#[derive(Deserialize)]
struct Envelope {
    v: u32,
    rid: RequestId,
    sale: SaleId,
    user: Buyer,
    qty: Quantity,
    shard: u16,
    epoch: u32,
    no: u64,
    at: i64,
}

/// Appends the head of an envelope, up to and without the comma before `"shard"`, to `out`.
fn head(purchase: &Purchase, out: &mut String) {
    #[cfg(feature = "faults")]
    if next::is_played() {
        return next::head(purchase, out);
    }
    const { assert!(VERSION == 1, "as it is spelled below") };
    out.push_str(r#"{"v":1,"rid":""#);
    push_decimal(out, purchase.request_id.get());
    out.extend([r#"","sale":""#, purchase.sale_id.as_str(), r#"","user":""#]);
    // An id has no control characters, and a TAB is between two: JSON escapes nothing else but these three.
    for part in purchase.buyer_text().split_inclusive(['"', '\\', '\t']) {
        match part.strip_suffix(['"', '\\', '\t']) {
            Some(plain) if part.ends_with('\t') => out.extend([plain, r"\t"]),
            Some(plain) => out.extend([plain, r"\", part.get(plain.len()..).unwrap_or_default()]),
            None => out.push_str(part),
        }
    }
    out.push_str(r#"","qty":"#);
    push_decimal(out, purchase.quantity.get().into());
}

/// The whole message, as the script would have written it; used where an accepted request is sent again from the ledger.
#[must_use]
pub fn encode(accepted: &OrderMessage) -> String {
    let mut text = String::with_capacity(192);
    head(&accepted.purchase, &mut text);
    let OrderMessage { shard, epoch, number, accepted_at_ms, .. } = accepted;
    text.push_str(&format!(r#","shard":{shard},"epoch":{epoch},"no":{number},"at":{accepted_at_ms}}}"#));
    text
}

/// What one unit costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnitPrice {
    /// In the smallest unit of the currency, 0 or more.
    pub(crate) cents: i64,
    currency: [u8; 3],
}

impl UnitPrice {
    /// A price; `currency` is an ISO 4217 code.
    pub(crate) fn new(cents: i64, currency: &str) -> Self {
        let currency = <[u8; 3]>::try_from(currency.as_bytes()).ok().filter(|code: &[u8; 3]| code.is_ascii());
        Self { cents, currency: currency.unwrap_or(*b"XXX") }
    }

    /// ISO 4217 code.
    pub(crate) fn currency(&self) -> &str {
        std::str::from_utf8(&self.currency).unwrap_or("XXX")
    }
}

/// Events as one message's body: `{"v":1,"events":[…]}`.
#[must_use]
pub(crate) fn events<'a>(bodies: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let mut text = Vec::with_capacity(bodies.clone().map(|body| body.len() + 1).sum::<usize>() + 32);
    text.extend_from_slice(format!(r#"{{"v":{VERSION},"events":["#).as_bytes());
    for (at, body) in bodies.enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(body);
    }
    text.extend_from_slice(b"]}");
    text
}

/// Reads a message.
///
/// # Errors
/// [`MessageError`] when the bytes are not an envelope of a known version. Unknown fields are let through: a newer sender
/// may add some while both versions run side by side.
pub fn decode(bytes: &[u8]) -> Result<OrderMessage, MessageError> {
    if bytes.len() > BYTES_MAX {
        return Err(MessageError::TooLong(bytes.len()));
    }
    #[cfg(feature = "faults")]
    if next::is_played()
        && let Some(accepted) = next::decode(bytes)
    {
        return Ok(accepted);
    }
    #[derive(Deserialize)]
    struct EnvelopeVersion {
        v: u32,
    }
    let envelope: Envelope = match serde_json::from_slice(bytes) {
        Ok(envelope) => envelope,
        // A later version may have other fields altogether: say that rather than name a missing field.
        Err(error) => match serde_json::from_slice::<EnvelopeVersion>(bytes) {
            Ok(EnvelopeVersion { v }) if v != VERSION => return Err(MessageError::UnknownVersion(v)),
            Ok(_) | Err(_) => return Err(error.into()),
        },
    };
    if envelope.v != VERSION {
        return Err(MessageError::UnknownVersion(envelope.v));
    }
    Ok(OrderMessage {
        purchase: Purchase {
            request_id: envelope.rid,
            sale_id: envelope.sale,
            user_id: envelope.user.user_id,
            person: envelope.user.person,
            quantity: envelope.qty,
        },
        shard: envelope.shard,
        epoch: envelope.epoch,
        number: envelope.no,
        accepted_at_ms: envelope.at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(accepted in any_order_message()) {
            let text = encode(&accepted);
            prop_assert!(text.len() <= BYTES_MAX);
            prop_assert_eq!(decode(text.as_bytes()).unwrap(), accepted);
        }

        #[test]
        fn garbage_is_an_error_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode(&bytes).is_err());
        }
    }

    #[test]
    fn a_later_version_is_named_as_such_and_new_fields_of_ours_are_let_through() {
        assert!(matches!(decode(br#"{"v":2,"order":"x"}"#), Err(MessageError::UnknownVersion(2))));
        let with_extra =
            br#"{"v":1,"rid":"5","sale":"s","user":"u","qty":1,"shard":0,"epoch":1,"no":1,"at":9,"trace":"t"}"#;
        assert_eq!(decode(with_extra).unwrap().number, 1);
        let zero = br#"{"v":1,"rid":"5","sale":"s","user":"u","qty":0,"shard":0,"epoch":1,"no":1,"at":9}"#;
        assert!(matches!(decode(zero), Err(MessageError::Malformed(_))));
    }
}
