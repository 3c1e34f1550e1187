//! What an accepted request is from the script to its outcome: in the outbox, at the broker, in the database, in a DLQ.

use crate::domain::decimal::push_decimal;
use crate::domain::request::Purchase;
use sha2::{Digest, Sha256};

/// A request that reached `P2-R0`: stock is taken, the ledger knows it, and it must end as an order or a recorded failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderMessage {
    /// The purchase itself.
    pub purchase: Purchase,
    /// The buyer's home shard when it was accepted.
    pub shard: u16,
    /// The sale's epoch when it was accepted.
    pub epoch: u32,
    /// The acceptance number: 1, 2, 3 … without gaps in each (sale, shard, epoch).
    pub number: u64,
    /// When it was accepted, Unix milliseconds by Redis' clock.
    pub accepted_at_ms: i64,
}

/// Fingerprint of what was accepted; the same request id with another fingerprint is a forgery or a bug (window 74).
pub(crate) type PayloadHash = [u8; 16];

impl OrderMessage {
    /// First 128 bits of SHA-256 over the meaning, not the encoding, so that two versions of the envelope agree.
    #[must_use]
    pub fn payload_hash(&self) -> PayloadHash {
        let Purchase { request_id, sale_id, quantity, .. } = &self.purchase;
        // The buyer comes last, and no id has a control character, so the fields cannot run into each other.
        let mut canonical = String::with_capacity(128);
        push_decimal(&mut canonical, request_id.get());
        canonical.extend(["\n", sale_id.as_str(), "\n"]);
        for number in [quantity.get().into(), self.shard.into(), self.epoch.into(), self.number] {
            push_decimal(&mut canonical, number);
            canonical.push('\n');
        }
        canonical.push_str(&self.purchase.buyer_text());
        let digest = Sha256::digest(canonical.as_bytes());
        let mut hash = PayloadHash::default();
        hash.copy_from_slice(&digest[..16]);
        hash
    }
}

#[cfg(test)]
pub(in crate::domain) mod tests {
    use super::*;
    use crate::domain::ids::{RequestId, SaleId, UserId};
    use crate::domain::policy::Quantity;
    use proptest::prelude::*;

    pub(in crate::domain) fn any_order_message() -> impl Strategy<Value = OrderMessage> {
        (
            1u64..=i64::MAX.unsigned_abs(),
            "[A-Za-z0-9_-]{1,64}",
            ("[^\\p{Cc}]{1,16}", prop::option::of("[^\\p{Cc}]{1,16}")),
            1u32..,
            0u16..,
            0u32..,
            1u64..1 << 53,
            0i64..1 << 53,
        )
            .prop_map(|(rid, sale, (user, person), quantity, shard, epoch, number, at)| OrderMessage {
                purchase: Purchase {
                    request_id: RequestId::new(rid).unwrap(),
                    sale_id: SaleId::parse(&sale).unwrap(),
                    user_id: UserId::parse(&user).unwrap(),
                    person: person.map(|person| UserId::parse(&person).unwrap()),
                    quantity: Quantity::new(quantity).unwrap(),
                },
                shard,
                epoch,
                number,
                accepted_at_ms: at,
            })
    }

    #[test]
    fn the_hash_is_the_one_that_the_database_has_from_earlier_versions() {
        let message = br#"{"v":1,"rid":"5","sale":"s","user":"a b","qty":2,"shard":3,"epoch":4,"no":6,"at":9}"#;
        let accepted = crate::domain::message::decode(message).unwrap();
        let digest = Sha256::digest(b"5\ns\n2\n3\n4\n6\na b");
        assert_eq!(accepted.payload_hash(), digest[..16]);
    }

    proptest! {
        #[test]
        fn the_hash_covers_every_field_that_matters(a in any_order_message()) {
            let mut others = vec![a.clone(); 5];
            others[0].number += 1;
            others[1].epoch = a.epoch.wrapping_add(1);
            others[2].shard = a.shard.wrapping_add(1);
            others[3].purchase.quantity = Quantity::new(a.purchase.quantity.get().wrapping_add(1).max(1)).unwrap();
            others[4].purchase.person = a.purchase.person.is_none().then(|| a.purchase.user_id.clone());
            for other in others.iter().filter(|o| **o != a) {
                prop_assert_ne!(other.payload_hash(), a.payload_hash());
            }
        }
    }
}
