//! What P5 reads and writes in the database: the books, decided requests, its findings, sales that are over. Reads may be repeated; a
//! write is one transaction.

pub mod books;
pub mod decided;
pub mod ended;
pub mod findings;
pub(crate) mod opening;
pub mod totals;

use crate::store::mysql::mysql_handle;

mysql_handle! {
    /// The books of sales: what was granted, sold, given back and numbered.
    BookRows
}
mysql_handle! {
    /// Decided requests, as a rebuild reads them and opens the next epoch.
    DecidedRows
}
mysql_handle! {
    /// Findings of the audits.
    FindingRows
}
