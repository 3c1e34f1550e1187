//! The list of sales for buyers: read from the database at most once a second, by one request at a time.
//!
//! Input: the table of sales. Output: the sales that are not closed; an old list while the database does not answer. A crash
//! leaves nothing.

use crate::domain::sale::{Sale, SaleStatus};
use crate::http::problem::{Kind, Problem};
use crate::store::mysql::{Db, sales};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The list is read from the database at most this often.
const LIST_TTL: Duration = Duration::from_secs(1);

/// The last list that was read.
pub struct SaleList {
    db: Db,
    read: Mutex<Option<(Instant, Arc<Vec<Sale>>)>>,
}

impl SaleList {
    /// Nothing read yet.
    #[must_use]
    pub(crate) fn new(db: Db) -> Self {
        Self { db, read: Mutex::default() }
    }

    /// The sales that are not closed, newest first as the database has them.
    pub(super) async fn get(&self) -> Result<Arc<Vec<Sale>>, Problem> {
        let mut read = self.read.lock().await;
        if let Some((at, sales)) = read.as_ref()
            && at.elapsed() < LIST_TTL
        {
            return Ok(sales.clone());
        }
        match sales::list(&self.db).await {
            Ok(mut found) => {
                found.retain(|sale| sale.status != SaleStatus::Closed);
                let sales = Arc::new(found);
                *read = Some((Instant::now(), sales.clone()));
                Ok(sales)
            }
            Err(error) => {
                tracing::warn!(phase = "p1_entry", %error, "the list of sales cannot be read");
                // An old list is better than none.
                read.as_ref()
                    .map(|(_, sales)| sales.clone())
                    .ok_or_else(|| Kind::Unavailable.because("the sales cannot be listed right now"))
            }
        }
    }
}
