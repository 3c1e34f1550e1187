//! The rows of a table's section, page by page.

use super::rows::ArchiveRows;
use crate::domain::ids::SaleId;
use crate::p5_reconcile::archive::rows::{ArchivePage, ArchiveTable, PageKey, Section};
use crate::store::mysql::DbError;

/// The rows of a section, page by page.
pub(super) struct TablePages<'a> {
    table: &'a ArchiveTable,
    section: &'a Section,
    after: PageKey,
    to: PageKey,
}

impl<'a> TablePages<'a> {
    pub(crate) const fn new(table: &'a ArchiveTable, section: &'a Section) -> Self {
        Self { table, section, after: PageKey::before_all(table), to: PageKey::before_all(table) }
    }

    /// The next page; `None` at the end.
    pub(crate) async fn next(
        &mut self,
        archive: &ArchiveRows,
        sale_id: &SaleId,
    ) -> Result<Option<ArchivePage<'_>>, DbError> {
        self.after = self.to.clone();
        match archive.page_end(sale_id, self.table, self.section, &self.after).await? {
            Some(to) => self.to = to,
            None => return Ok(None),
        }
        Ok(Some(ArchivePage { table: self.table, section: self.section, after: &self.after, to: &self.to }))
    }
}
