//! What an order is: how it is written (`persist`, P4 and P5's compensation), what becomes of its row after that (`rows`, P6), and the
//! forms and documents by which callers ask and are answered.
//!
//! Input: accepted requests, and what buyers, the shop and the deadline do to an order. Output: rows, and the events of `events`. Each
//! change is one transaction: a crash before COMMIT leaves nothing, after it a repeat finds what was decided.

pub mod document;
pub mod forms;
pub mod persist;
pub mod refunds;
pub mod rows;
