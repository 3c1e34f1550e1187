//! What is said of a buyer beside the orders: whether the buyer may buy (Q3), and passes with facts (Q1).
//!
//! Input: an operator's wish. Output: rows, which each api process reads into its memory (`p1_entry::block_list`), or a signed text. A
//! block and its act are one transaction: a crash leaves both or neither.

pub(crate) mod forms;
pub(crate) mod passes;
pub mod rows;
