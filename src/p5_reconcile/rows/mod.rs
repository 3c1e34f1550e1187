//! What P5 reads and writes in the database: the books, decided requests, its findings, sales that are over. Reads may be repeated; a
//! write is one transaction.

pub mod books;
pub mod decided;
pub mod ended;
pub mod findings;
pub mod totals;
