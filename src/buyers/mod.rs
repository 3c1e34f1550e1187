//! What is known of a buyer beside the orders: so far, whether the buyer may buy (Q3).
//!
//! Input: an operator's wish. Output: rows, which each api process reads into its memory (`p1_entry::block_list`). An act and its
//! change are one transaction: a crash leaves both or neither.

pub(crate) mod forms;
pub(crate) mod passes;
pub mod rows;
