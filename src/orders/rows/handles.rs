//! What a process may touch of the rows of orders: everything that becomes of an order, what is on record of a request, the register.
//! A handle has no state of its own but what it shares with its clones.

use crate::events::webhooks::rows::Subscriptions;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Db;

mysql_handle! {
    /// What is on record of a request: its outcome, its order, its payments. Reads only.
    pub(super) RequestRows
}
mysql_handle! {
    /// The register of failed requests.
    pub(super) RegisterRows
}

/// The rows of orders, their payments and their register: the handle of P6 and of its front ends. Clones share what they know.
#[derive(Clone)]
pub struct OrderRows {
    pub(super) db: Db,
    pub(super) subscriptions: Subscriptions,
}

impl OrderRows {
    /// For the webhooks of these subscriptions.
    #[must_use]
    pub const fn new(db: Db, subscriptions: Subscriptions) -> Self {
        Self { db, subscriptions }
    }

    /// The same with a longer deadline, for what counts.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self { db: self.db.patient().clone(), subscriptions: self.subscriptions.clone() }
    }
}
