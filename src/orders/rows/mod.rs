//! The rows of orders and payments: what happens to an order after it was confirmed (P6), and how its rows are read. Each change is one conditional UPDATE, whose condition is made from the
//! table of domain/order_life.rs, in one transaction with everything that follows from it: stock, journal, grant, payment, event.
//!
//! Input: a payment, a start of one, a cancellation, a passed deadline. Output: what became of it; the loser of a race gets the state
//! that holds. A crash before COMMIT leaves nothing; after it, a repeat finds what was decided, the grant is open until the api or
//! P5 gives it to Redis, and the event waits in `order_events`.
//!
//! Locks are taken in the order of persisting, by every one of these: orders by ascending id, payments, journal, buyers, the hot
//! sale row, the grant.

mod acts;
mod by_id;
mod cancel;
mod deadline;
mod early_payments;
pub mod failed_requests;
mod handles;
mod lists;
mod locked;
mod of_buyer;
mod of_sale;
pub mod outcomes;
mod overdue;
mod paying;
mod payment;
mod payments;
pub mod purchases;
mod query;
mod refunds;
pub mod request_records;
mod row;
pub(crate) mod series;
mod units;

pub(crate) use cancel::cancel_grant;
pub use cancel::{CancelRequest, Cancelled};
pub use deadline::{BATCH_MAX, ExpiredBatch};
pub use handles::{OrderRows, RegisterRows, RequestRows};
pub use lists::{FoundOrders, ListedOrder};
pub use overdue::{OverdueOrder, OverdueSale};
pub use paying::PaymentStart;
pub use payment::{NewPayment, Payment, PaymentAnswer, PaymentRecorded};
pub use query::{OrdersQuery, PAGE_MAX};
pub use refunds::{NeededRefunds, REFUNDS_COUNTED_MAX, REFUNDS_PAGE_MAX, RefundMark, RefundPlace, RefundsFilter};
pub use row::{OrderRow, OrderTerms};
