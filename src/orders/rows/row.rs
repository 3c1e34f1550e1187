//! A row of `orders`, and what its sale says of it: the one shape in which orders are read, whatever for.
//!
//! Input: rows. Output: values of the domain; a value that this build does not know is an error of its row. Nothing here writes, so a
//! crash leaves nothing.
//!
//! 0.2.0 and earlier know no states. Beside this version, during an upgrade, such a process cancels an order by `cancelled_at` alone,
//! and gives its unit back; a migration has filled in the states of those that were cancelled before, and cannot those. So
//! [`OrderRow::lacks_its_state`] is asked where an order is changed and swept. The sweep (`deadline`) mends those that are UNPAID, and
//! that part is needed no more by the release after the one that has states. The others (state NULL, PAID or EXPIRED) stay as they are
//! until their sale is archived. Here, in `cancel` and in P5's `books/life` they are known until a later migration has set the state
//! where `cancelled_at` is not NULL, or no such sale is left.

use crate::domain::buyer::limit_key;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::{OrderState, ReturnedPurchase};
use crate::domain::policy::{LimitBy, PurchasePolicy};
use crate::events::published::PublishedEvent;
use crate::store::mysql::columns::{MaybeOrderState, MaybeUnixMs, UnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{orders, sales};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// The columns of an [`OrderRow`], for statements whose orders are called `o`.
pub(super) const COLUMNS: &str = "o.request_id, o.sale_id, o.user_id, o.person, o.quantity, o.amount_cents, o.source, o.accepted_at, \
    o.created_at, o.cancelled_at, o.cancelled_by, o.cancel_reason, o.state, o.state_at, o.pay_by, o.version";

/// A row of `orders`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, QueryableByName)]
#[diesel(table_name = orders)]
pub struct OrderRow {
    /// The request that became this order.
    pub request_id: RequestId,
    /// The sale that sold it.
    pub sale_id: SaleId,
    /// The buyer who owns it: the account.
    pub user_id: UserId,
    /// The person behind it, where the sale limits by person.
    pub person: Option<UserId>,
    /// Number of units, at least 1.
    pub quantity: u32,
    /// What it costs, in the currency's smallest unit.
    pub amount_cents: i64,
    /// The path that brought it to the database, as stored.
    pub source: String,
    /// When Redis accepted it, Unix milliseconds by its clock.
    #[diesel(column_name = accepted_at, deserialize_as = UnixMs)]
    pub accepted_at_ms: i64,
    /// When it was written, Unix milliseconds by the database's clock.
    #[diesel(column_name = created_at, deserialize_as = UnixMs)]
    pub created_at_ms: i64,
    /// When it was cancelled, Unix milliseconds by the database's clock.
    #[diesel(column_name = cancelled_at, deserialize_as = MaybeUnixMs)]
    pub cancelled_at_ms: Option<i64>,
    /// Who cancelled it.
    pub cancelled_by: Option<String>,
    /// Why it was cancelled, in words.
    pub cancel_reason: Option<String>,
    /// Where it is; `None`: its sale has no payment step.
    #[diesel(deserialize_as = MaybeOrderState)]
    pub state: Option<OrderState>,
    /// When it got its state, Unix milliseconds by the database's clock.
    #[diesel(column_name = state_at, deserialize_as = MaybeUnixMs)]
    pub state_at_ms: Option<i64>,
    /// The deadline that its buyer sees, Unix milliseconds.
    #[diesel(column_name = pay_by, deserialize_as = MaybeUnixMs)]
    pub pay_by_ms: Option<i64>,
    /// Grows with each event of it, from 1.
    pub version: u32,
}

impl OrderRow {
    /// What comes back of it to a limit.
    pub(super) fn returned(&self) -> ReturnedPurchase {
        ReturnedPurchase(limit_key(&self.user_id, self.person.as_ref()).clone(), self.request_id, self.quantity)
    }

    /// Whether it is cancelled, and its state does not say so.
    pub(super) fn lacks_its_state(&self) -> bool {
        self.cancelled_at_ms.is_some() && self.state != Some(OrderState::Cancelled)
    }

    /// An event of a change of it, with what every one says of its order; `version` after the change.
    pub(super) fn event<'a>(
        &'a self,
        change: PublishedEvent<'a>,
        terms: &'a OrderTerms,
        version: u32,
        at: i64,
    ) -> PublishedEvent<'a> {
        PublishedEvent {
            sale: Some(self.sale_id.as_str()),
            user: Some(self.user_id.as_str()),
            quantity: Some(self.quantity),
            amount: Some(self.amount_cents),
            currency: Some(&terms.currency),
            version: Some(version),
            at: Some(at),
            ..change
        }
    }
}

/// What a sale says of its orders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrderTerms {
    /// ISO 4217 code.
    pub currency: String,
    /// What the sale calls itself.
    pub title: String,
    /// Whether an order that ends unpaid no longer counts against its buyer's limit.
    pub limit_returns: bool,
    /// Whether units are counted by buyer (`purchases`).
    pub limited: bool,
    /// The drop it is of, whose limit its orders count against as well.
    pub drop_id: Option<Vec<u8>>,
}

/// The terms of these sales; of a sale that is not there none.
pub(super) async fn terms_of(conn: &mut Conn, sales: &[&SaleId]) -> Result<HashMap<SaleId, OrderTerms>, DbError> {
    let mut ids: Vec<&[u8]> = sales.iter().map(|sale| sale.as_str().as_bytes()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = sales::table.filter(sales::sale_id.eq_any(ids));
    type TermsRow = ((SaleId, String, String, bool), (Option<u32>, String), Option<Vec<u8>>);
    let named = (sales::sale_id, sales::currency, sales::title, sales::limit_returns);
    let limit = (sales::per_user_limit, sales::limit_by);
    let rows: Vec<TermsRow> = wanted.select((named, limit, sales::drop_id)).load(conn).await?;
    let terms = |((sale, currency, title, limit_returns), (limit, limit_by), drop_id): TermsRow| {
        let limited = PurchasePolicy::from_limit(limit).is_counted(LimitBy::from_code(&limit_by).unwrap_or_default());
        (sale, OrderTerms { currency, title, limit_returns, limited, drop_id })
    };
    Ok(rows.into_iter().map(terms).collect())
}

/// The terms of a sale that has orders.
pub(super) async fn terms_of_sale(conn: &mut Conn, sale: &SaleId) -> Result<OrderTerms, DbError> {
    let no_row = || DbError::Other(format!("sale {sale} has orders and no row"));
    terms_of(conn, &[sale]).await?.remove(sale).ok_or_else(no_row)
}
