//! Receipts of entries: signed, so that a buyer can show that he was in the line. Checked without storage; they do not expire.

use crate::config::Secret;
use crate::domain::ids::{EntryId, SaleId, UserId};
use crate::p1_entry::signed::Signer;
use serde::{Deserialize, Serialize};

/// Keeps receipts apart from purchase tokens and places, which the same keys sign.
const AUDIENCE: &str = "seckill-line-entry";

/// What a receipt says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    aud: String,
    /// The entry.
    pub(crate) entry: EntryId,
    /// The sale.
    pub(crate) sale: SaleId,
    /// The buyer.
    pub(crate) sub: UserId,
    /// Units wanted.
    pub(crate) quantity: u32,
    /// When it was written, Unix milliseconds by the database's clock.
    pub(crate) entered_at_ms: i64,
}

/// Signs and reads receipts.
pub(crate) struct Receipts(Signer);

impl Receipts {
    /// The first of `secrets` signs, all of them verify.
    #[must_use]
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        Self(Signer::new(secrets, AUDIENCE))
    }

    /// The receipt of an entry; `None` when it cannot be signed.
    #[must_use]
    pub(crate) fn sign(
        &self,
        (entry, sale): (EntryId, &SaleId),
        sub: &UserId,
        quantity: u32,
        entered_at_ms: i64,
    ) -> Option<String> {
        let (sale, sub) = (sale.clone(), sub.clone());
        self.0.sign(&Receipt { aud: AUDIENCE.to_owned(), entry, sale, sub, quantity, entered_at_ms })
    }

    /// What a receipt says; `None`: it is none of ours.
    #[must_use]
    pub(crate) fn read(&self, text: &str) -> Option<Receipt> {
        self.0.read(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p1_entry::purchase_tokens::PurchaseTokens;

    #[test]
    fn a_receipt_says_what_was_entered_and_a_changed_one_says_nothing() {
        let secrets = [Secret::new("k".repeat(32))];
        let (receipts, id) = (Receipts::new(&secrets), EntryId::new(7).unwrap());
        let (sale, user) = (SaleId::parse("s").unwrap(), UserId::parse("买家").unwrap());
        let text = receipts.sign((id, &sale), &user, 2, 5).unwrap();
        let said = receipts.read(&text).unwrap();
        assert_eq!((said.entry, said.sub, said.quantity, said.entered_at_ms), (id, user.clone(), 2, 5));
        let mut changed = text.clone().into_bytes();
        changed[text.len() / 2] ^= 1;
        assert_eq!(receipts.read(&String::from_utf8_lossy(&changed)), None);
        assert_eq!(Receipts::new(&[Secret::new("x".repeat(32))]).read(&text), None);
        let request = crate::domain::ids::RequestId::new(7).unwrap();
        let token = PurchaseTokens::new(&secrets, 60).issue(request, (&user, None), &sale, 5).unwrap().0;
        assert_eq!(receipts.read(&token), None, "another kind, by the same key");
    }
}
