//! The counts of lines, for many screens: one read of a line at a time, and none while the last one is fresh.
//!
//! Input: a line. Output: how many entries are in each state, two seconds old at most. A crash leaves nothing.

use crate::domain::ids::SaleId;
use crate::http::problem::Problem;
use crate::lines::rows::{EntryTally, LineRows};
use crate::store::mysql::DbError;
use moka::future::Cache;
use std::sync::Arc;
use std::time::Duration;

/// Counts are at most this old: counting walks all entries of a line.
const TALLY_TTL: Duration = Duration::from_secs(2);
/// Lines whose counts are remembered.
const LINES_MAX: u64 = 1_000;

/// The counts of lines, each read by one caller at a time.
pub(super) struct Tallies(Cache<SaleId, Arc<EntryTally>>);

impl Tallies {
    pub(super) fn new() -> Self {
        Self(Cache::builder().max_capacity(LINES_MAX).time_to_live(TALLY_TTL).build())
    }

    /// The counts of a line.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub(super) async fn of(&self, rows: &LineRows, sale: &SaleId) -> Result<Arc<EntryTally>, Problem> {
        let read = async { rows.tally(sale).await.map(Arc::new) };
        self.0.try_get_with(sale.clone(), read).await.map_err(|error: Arc<DbError>| Problem::from((*error).clone()))
    }
}
