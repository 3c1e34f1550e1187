//! The archiving of one sale: what may be archived, and its sums in the database.

use super::error::ArchiveError;
use super::pages::TablePages;
use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::orders::rows::RefundsFilter;
use crate::orders::rows::failed_requests::FailedRequestFilter;
use crate::p5_reconcile::archive::rows::{ArchiveSum, ArchiveTable};
use crate::p5_reconcile::audit::{Window, audit_sale};
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::rows::books::Series;
use crate::sales::rows::archived::Archived;
use crate::store::mysql::codes::FailureStatus;
use std::path::{Path, PathBuf};

/// The archiving of one sale.
pub struct Archive {
    pub(super) context: ReconcileContext,
    pub(super) sale_id: SaleId,
    pub(super) folder: PathBuf,
    pub(super) on_progress: Box<dyn Fn(&str) + Send + Sync>,
}

impl Archive {
    /// For `sale_id`, in a folder of its name under `to`. `on_progress` is called with words for a person.
    #[must_use]
    pub fn new(
        context: ReconcileContext,
        sale_id: SaleId,
        to: &Path,
        on_progress: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        let folder = to.join(sale_id.as_str());
        Self { context, sale_id, folder, on_progress }
    }

    /// The folder of the files.
    #[must_use]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The row of the sale, and the row of sums if it was archived.
    pub(super) async fn found(&self) -> Result<(Option<Sale>, Option<Archived>), ArchiveError> {
        let kept = self.context.rows.archived.get(&self.sale_id).await?;
        Ok((self.context.rows.giving.sales.get(&self.sale_id).await?, kept))
    }

    /// Refuses a sale that can still change.
    pub(super) async fn check_final(&self, sale: &Sale) -> Result<(), ArchiveError> {
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
        if self.context.rows.giving.grants.is_withdrawing(&self.sale_id).await.map_err(ReconcileError::from)? {
            return Err(ArchiveError::Withdrawing(id()));
        }
        (self.on_progress)("auditing");
        let audit = audit_sale(&self.context, sale, Window::Now).await?;
        if !audit.consistent() {
            let first = audit.findings.first().map_or_else(String::new, |found| found.detail.clone());
            return Err(ArchiveError::Inconsistent(id(), first));
        }
        let unpaid = audit.counted.life.unpaid;
        if unpaid > 0 {
            return Err(ArchiveError::Unpaid(id(), unpaid));
        }
        let open = FailedRequestFilter {
            status: Some(FailureStatus::Open),
            sale_id: Some(id()),
            limit: 1,
            ..FailedRequestFilter::default()
        };
        if !self.context.rows.register.list(&open).await?.is_empty() {
            return Err(ArchiveError::Open(id()));
        }
        let only_count = RefundsFilter { sale: Some(self.sale_id.clone()), ..RefundsFilter::default() };
        let refunds = self.context.rows.orders.refunds_needed(&only_count).await?.count;
        if refunds > 0 {
            return Err(ArchiveError::RefundsNeeded(id(), refunds));
        }
        Ok(())
    }

    pub(super) async fn series(&self) -> Result<Vec<Series>, ArchiveError> {
        let known = self.context.rows.books.known(&self.sale_id).await?;
        Ok(known.into_iter().map(|known| known.series).collect())
    }

    /// Every row of a table as the database has it, summed page by page.
    pub(super) async fn counted(&self, table: &ArchiveTable, series: &[Series]) -> Result<ArchiveSum, ArchiveError> {
        let mut sum = ArchiveSum::default();
        for section in table.sections(series) {
            let mut pages = TablePages::new(table, &section);
            while let Some(page) = pages.next(&self.context.rows.archive, &self.sale_id).await? {
                sum += self.context.rows.archive.sum(&self.sale_id, page).await?;
            }
        }
        // A row that no page has would be left out of the export.
        sum.rows = sum.rows.max(self.context.rows.archive.count(&self.sale_id, table).await?);
        Ok(sum)
    }
}
