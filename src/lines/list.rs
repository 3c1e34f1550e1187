//! The sealed list of a raffle with its ranks: read page by page, checked against the digest of the seal, and ranked.
//!
//! Input: what the seal says. Output: the ranks, which never change. A crash leaves nothing.

use crate::domain::draw::{ListDigest, Ranks, key};
use crate::domain::ids::SaleId;
use crate::lines::rows::{ID_PAGE, LineRows, SealedList};
use crate::store::mysql::DbError;
use std::sync::Arc;

/// Why a list cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ListFault {
    #[error("{0}")]
    Database(DbError),
    #[error("the list has {0} entries or a digest that are not those it was sealed with")]
    Changed(u64),
    #[error("the task that read it was stopped")]
    Stopped,
}

/// The ranks of a sealed list, by its seed, or by seed and beacon.
///
/// # Errors
/// [`ListFault`].
pub(crate) async fn read_list(
    rows: &LineRows,
    sale: &SaleId,
    (sealed, beacon): (SealedList, Option<String>),
) -> Result<Arc<Ranks>, ListFault> {
    let mut ids: Vec<u64> = Vec::with_capacity(usize::try_from(sealed.entries).unwrap_or_default().min(5_000_000));
    loop {
        let page = rows.listed_ids(sale, ids.last().copied().unwrap_or_default()).await.map_err(ListFault::Database)?;
        let is_last = page.len() < ID_PAGE;
        ids.extend(page);
        // A list that grew is no list that was sealed.
        if is_last || ids.len() as u64 > sealed.entries {
            break;
        }
    }
    let ranked = tokio::task::spawn_blocking(move || {
        let holds = ids.len() as u64 == sealed.entries && ListDigest::of(&ids) == sealed.digest;
        let count = ids.len() as u64;
        let drawn = || Arc::new(Ranks::new(ids, &key(&sealed.seed, beacon.as_deref()), &sealed.digest));
        if holds { Ok(drawn()) } else { Err(ListFault::Changed(count)) }
    });
    ranked.await.unwrap_or(Err(ListFault::Stopped))
}
