//! `sale archive` (E13): a closed sale that adds up is exported to files, checked, and removed from the database.
//!
//! Input: a closed sale of which Redis has nothing any more, and a folder. Output: a file of JSON lines for each table and
//! `manifest.json` with counts, sums and hashes (`export`); then, if wanted, the rows are gone and one row of `archived_sales` keeps
//! the sums (`remove`).
//!
//! A crash during the export leaves whole files and one `.part`; the repeat keeps the whole ones and writes the others. A
//! crash during the removal leaves the row in `archived_sales`, the sale's own row, and what was not removed yet: P5 leaves such a
//! sale alone, and the repeat goes on.

mod export;
mod manifest;
mod remove;

pub use manifest::{Filed, Manifest, SeriesSum};
pub use remove::Removed;

use super::audit::{Window, audit_sale};
use super::context::{ReconcileContext, ReconcileError};
use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::store::mysql::archive::{self, ArchivePage, ArchiveSum, ArchiveTable, Archived, PageKey, Section};
use crate::store::mysql::books::{self, Series};
use crate::store::mysql::codes::FailureStatus;
use crate::store::mysql::failed_requests::{self, FailedRequestFilter};
use crate::store::mysql::{DbError, sales};
use std::path::{Path, PathBuf};

/// Why a sale was not archived; the text says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// No such sale.
    #[error("there is no sale {0}; see seckill sale list")]
    NoSuchSale(SaleId),
    /// It was removed before.
    #[error("sale {0} was archived before; its rows are in the export whose manifest.json has the SHA-256 {1}")]
    Gone(SaleId, String),
    /// Its removal has begun, so it cannot be exported again.
    #[error(
        "sale {0} is being removed; go on with --remove and the folder of the export whose manifest.json has the SHA-256 {1}"
    )]
    HalfGone(SaleId, String),
    /// It still sells, or may.
    #[error("sale {0} is {1}, only a closed sale is archived; run seckill sale close {0} first")]
    NotClosed(SaleId, &'static str),
    /// Redis still has its keys.
    #[error(
        "redis still has sale {0}: p5 removes a closed sale when all of it is settled and p5_reconcile.ledger_retention_s is over; wait for that, seckill audit --sale {0} says what is open"
    )]
    InRedis(SaleId),
    /// The audit found something.
    #[error("sale {0} does not add up, {1}; seckill audit --now --sale {0} tells all of it, repair that first")]
    Inconsistent(SaleId, String),
    /// Requests wait for a person.
    #[error("requests of sale {0} are open in the register; land them or give them up first, see seckill dlq list")]
    Open(SaleId),
    /// What is in the files is not what is in the database.
    #[error(
        "{table} of sale {sale_id}: {filed:?} in {file}, {counted:?} in the database; somebody changed one of them, delete the folder and export again"
    )]
    Differs {
        /// The sale.
        sale_id: SaleId,
        /// The table.
        table: &'static str,
        /// Its file.
        file: PathBuf,
        /// What is in the file.
        filed: ArchiveSum,
        /// What is in the database.
        counted: ArchiveSum,
    },
    /// The files are not those of the manifest.
    #[error("{0} is not what its manifest says; take another copy of the folder, or delete it and export again")]
    Damaged(PathBuf),
    /// There is no export.
    #[error("{0} has no export of the sale; run it without --remove first")]
    NoExport(PathBuf),
    /// The sale was changed after it was exported.
    #[error("sale {0} was changed meanwhile and nothing was removed; delete the folder and export again")]
    Changed(SaleId),
    /// A file could not be written or read.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The audit could not be made.
    #[error(transparent)]
    Audit(#[from] ReconcileError),
    /// The database.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// The archiving of one sale.
pub struct Archive {
    context: ReconcileContext,
    sale_id: SaleId,
    folder: PathBuf,
    told: Box<dyn Fn(&str) + Send + Sync>,
}

impl Archive {
    /// Of `sale_id`, in a folder of its name under `to`. `told` is called with words of what is going on.
    #[must_use]
    pub fn new(context: ReconcileContext, sale_id: SaleId, to: &Path, told: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        let folder = to.join(sale_id.as_str());
        Self { context, sale_id, folder, told }
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its row and what is kept of it, if it was archived.
    async fn found(&self) -> Result<(Option<Sale>, Option<Archived>), ArchiveError> {
        let kept = archive::get(&self.context.db, &self.sale_id).await?;
        Ok((sales::get(&self.context.db, &self.sale_id).await?, kept))
    }

    /// Refuses a sale of which anything can still change.
    async fn at_rest(&self, sale: &Sale) -> Result<(), ArchiveError> {
        let id = || self.sale_id.clone();
        if sale.status != SaleStatus::Closed {
            return Err(ArchiveError::NotClosed(id(), sale.status.code()));
        }
        for shard in 0..self.context.shards {
            let there = self.context.redis.sale_keys.count(&self.sale_id, shard).await;
            if there.map_err(ReconcileError::from)?.is_some() {
                return Err(ArchiveError::InRedis(id()));
            }
        }
        (self.told)("auditing");
        let audit = audit_sale(&self.context, sale, Window::Now).await?;
        if !audit.consistent() {
            let first = audit.findings.first().map_or_else(String::new, |found| found.detail.clone());
            return Err(ArchiveError::Inconsistent(id(), first));
        }
        let open = FailedRequestFilter {
            status: Some(FailureStatus::Open),
            sale_id: Some(id()),
            limit: 1,
            ..FailedRequestFilter::default()
        };
        if !failed_requests::list(&self.context.db, &open).await?.is_empty() {
            return Err(ArchiveError::Open(id()));
        }
        Ok(())
    }

    async fn series(&self) -> Result<Vec<Series>, ArchiveError> {
        let known = books::known(&self.context.db, &self.sale_id).await?;
        Ok(known.into_iter().map(|known| known.series).collect())
    }

    /// Every row of a table as the database has it, summed page by page.
    async fn counted(&self, table: &ArchiveTable, series: &[Series]) -> Result<ArchiveSum, ArchiveError> {
        let mut sum = ArchiveSum::default();
        for section in table.sections(series) {
            let mut walk = Walk::new(table, &section);
            while let Some(page) = walk.next(&self.context, &self.sale_id).await? {
                sum += archive::sum(&self.context.db, &self.sale_id, page).await?;
            }
        }
        // What no walk meets would be left out of the export.
        sum.rows = sum.rows.max(archive::count(&self.context.db, &self.sale_id, table).await?);
        Ok(sum)
    }
}

/// A walk over a section, page by page.
struct Walk<'a> {
    table: &'a ArchiveTable,
    section: &'a Section,
    after: PageKey,
    to: PageKey,
}

impl<'a> Walk<'a> {
    const fn new(table: &'a ArchiveTable, section: &'a Section) -> Self {
        Self { table, section, after: PageKey::before_all(table), to: PageKey::before_all(table) }
    }

    /// The next page; `None` at the end.
    async fn next(&mut self, context: &ReconcileContext, sale_id: &SaleId) -> Result<Option<ArchivePage<'_>>, DbError> {
        self.after = self.to.clone();
        match archive::page_end(&context.db, sale_id, self.table, self.section, &self.after).await? {
            Some(to) => self.to = to,
            None => return Ok(None),
        }
        Ok(Some(ArchivePage { table: self.table, section: self.section, after: &self.after, to: &self.to }))
    }
}
