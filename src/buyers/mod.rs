//! What is said of a buyer beside the orders: whether the buyer may buy (Q3), passes with facts (Q1), and that the buyer is forgotten (N2).
//!
//! Input: an operator's wish. Output: rows, which each api process reads into its memory (`p1_entry::block_list`), a signed text, or a
//! pseudonym in the place of an id. A block and its act are one transaction: a crash leaves both or neither.

pub(crate) mod forget;
pub(crate) mod forms;
pub(crate) mod passes;
pub mod rows;
pub mod spelling;
