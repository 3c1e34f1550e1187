//! Money that has to go back: listed, counted, and marked when it went.
//!
//! A crash before COMMIT leaves the money on the list, after it a repeat finds the mark.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::operator::OperatorAct;
use crate::domain::payment::PaymentState;
use crate::faults::crash_point;
use crate::orders::rows::acts;
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::payment::Payment;
use crate::store::mysql::codes::datetime;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::payments;
use crate::store::mysql::transaction::transaction;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;

/// Most payments whose money has to go back that are counted.
pub const REFUNDS_COUNTED_MAX: i64 = 10_000;

/// Most payments of a page of [`refunds_needed`].
pub const REFUNDS_PAGE_MAX: u16 = 1000;

/// What became of the word that money went back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundMark {
    /// It is on record: the payment as it is now.
    Refunded(Payment),
    /// It was on record before.
    Before(Payment),
    /// This payment paid its order: cancel the order first.
    NotNeeded(Payment),
    /// There is no such payment of this order.
    NoPayment,
}

impl OrderRows {
    /// The money of a payment went back, and that is an act. Repeating is safe.
    pub async fn refunded(
        &self,
        request_id: RequestId,
        payment_id: &str,
        act: Option<&OperatorAct>,
    ) -> Result<RefundMark, DbError> {
        let marked = self
            .db
            .run("payment_refunded", async |conn| {
                transaction(conn, async |conn| {
                    let needed = payments::table
                        .find(payment_id.as_bytes())
                        .filter(payments::request_id.eq(request_id.get()))
                        .filter(payments::state.eq(PaymentState::RefundNeeded.code()));
                    let now = diesel::dsl::sql("NOW(3)");
                    let set = (payments::state.eq(PaymentState::Refunded.code()), payments::state_at.eq(now));
                    let marked = diesel::update(needed).set(set).execute(conn).await?;
                    if marked > 0 {
                        let of = payments::table.find(payment_id.as_bytes()).select(payments::sale_id);
                        let sale: Option<Vec<u8>> = of.first(conn).await?;
                        acts::write_refunded(conn, act, sale.as_deref()).await?;
                        crash_point!(RefundWritten);
                    }
                    Ok::<_, DbError>(marked)
                })
                .await
            })
            .await?;
        if marked > 0 {
            crash_point!(RefundCommitted);
        }
        let Some(row) = self.payment_by_id(payment_id).await?.filter(|row| row.request_id == request_id) else {
            return Ok(RefundMark::NoPayment);
        };
        Ok(match row.state {
            PaymentState::Refunded if marked > 0 => RefundMark::Refunded(row),
            PaymentState::Refunded => RefundMark::Before(row),
            PaymentState::Applied | PaymentState::RefundNeeded => RefundMark::NotNeeded(row),
        })
    }

    /// How many payments there are whose money has to go back, at most [`REFUNDS_COUNTED_MAX`]: this is asked every second.
    pub async fn refunds_needed_count(&self) -> Result<i64, DbError> {
        self.db.run("refunds_needed_count", async |conn| count(conn, None).await).await
    }
}

/// The same, of one sale or of all. Each open console asks: the entries of an index are counted up to a bound.
async fn count(conn: &mut Conn, sale: Option<&SaleId>) -> Result<i64, DbError> {
    #[derive(QueryableByName)]
    struct Counted {
        #[diesel(sql_type = BigInt)]
        n: i64,
    }
    let of_sale = if sale.is_some() { " AND sale_id = ?" } else { "" };
    let text = format!(
        "/* orders::refunds_needed_count */ SELECT COUNT(*) AS n FROM (SELECT 1 FROM payments WHERE state = '{}'{of_sale} \
         LIMIT {REFUNDS_COUNTED_MAX}) AS first",
        PaymentState::RefundNeeded.code()
    );
    let mut query = diesel::sql_query(text).into_boxed::<Mysql>();
    if let Some(sale) = sale {
        query = query.bind::<Binary, _>(sale.as_str().as_bytes());
    }
    let Counted { n } = query.get_result(conn).await?;
    Ok(n)
}

/// Where a page of [`refunds_needed`] ended. It stays a place when that payment's money went back meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundPlace {
    /// Since when the money of the page's last payment has to go back, Unix milliseconds by the database's clock.
    pub state_at_ms: i64,
    /// That payment.
    pub payment_id: String,
}

/// Which payments are asked for whose money has to go back.
#[derive(Debug, Clone, Default)]
pub struct RefundsFilter {
    /// Of this sale only.
    pub sale: Option<SaleId>,
    /// Those behind this place.
    pub after: Option<RefundPlace>,
    /// Most payments, up to [`REFUNDS_PAGE_MAX`]; 0: only how many there are.
    pub limit: u16,
}

/// Payments whose money has to go back, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededRefunds {
    /// One page of them.
    pub payments: Vec<Payment>,
    /// How many there are on all pages, counted up to [`REFUNDS_COUNTED_MAX`].
    pub count: i64,
}

impl OrderRows {
    /// One page of the payments whose money has to go back.
    pub async fn refunds_needed(&self, query: &RefundsFilter) -> Result<NeededRefunds, DbError> {
        let after = query.after.as_ref().map(|place| Ok::<_, DbError>((datetime(place.state_at_ms)?, place)));
        let after = after.transpose()?;
        self.db
            .run("refunds_needed", async |conn| {
                let needed = || {
                    let all =
                        payments::table.filter(payments::state.eq(PaymentState::RefundNeeded.code())).into_boxed();
                    match &query.sale {
                        Some(sale) => all.filter(payments::sale_id.eq(sale.as_str().as_bytes())),
                        None => all,
                    }
                };
                let mut page = needed();
                if let Some((state_at, place)) = after {
                    let behind =
                        payments::state_at.gt(state_at).or(payments::payment_id.gt(place.payment_id.as_bytes()));
                    page = page.filter(payments::state_at.ge(state_at)).filter(behind);
                }
                let oldest = page.order((payments::state_at, payments::payment_id));
                let oldest = oldest.limit(query.limit.min(REFUNDS_PAGE_MAX).into());
                let payments = oldest.select(Payment::as_select()).load(conn).await?;
                Ok(NeededRefunds { payments, count: count(conn, query.sale.as_ref()).await? })
            })
            .await
    }
}
