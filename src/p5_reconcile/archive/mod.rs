//! `sale archive` (E13): a closed sale that adds up is exported to files, checked, and removed from the database.
//!
//! Input: a closed sale that is not in Redis any more, and a folder. Output: a file of JSON lines for each table and
//! `manifest.json` with counts, sums and hashes (`export`); then, if wanted, the rows are gone and one row of `archived_sales` keeps
//! the sums (`remove`). Rows of `payments` are exported and stay: money is on record for good, also money that a provider reports
//! while the sale is being removed.
//!
//! A crash during the export leaves whole files and one `.part`; the repeat keeps the whole ones and writes the others. A
//! crash during the removal leaves the row in `archived_sales`, the sale's own row, and what was not removed yet: P5 leaves such a
//! sale alone, and the repeat goes on.

mod error;
mod export;
mod manifest;
mod pages;
mod remove;
pub mod rows;
mod sale_archive;

pub use error::ArchiveError;
pub use remove::Removed;
pub use sale_archive::Archive;
