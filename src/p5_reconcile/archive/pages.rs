//! The rows of a table's section, page by page.

use crate::domain::ids::SaleId;
use crate::store::mysql::archive::{self, Key, Page, Section, Table};
use crate::store::mysql::{Db, DbError};

/// The rows of a section, page by page.
pub(super) struct TablePages<'a> {
    table: &'a Table,
    section: &'a Section,
    after: Key,
    to: Key,
}

impl<'a> TablePages<'a> {
    pub const fn new(table: &'a Table, section: &'a Section) -> Self {
        Self { table, section, after: Key::before_all(table), to: Key::before_all(table) }
    }

    /// The next page; `None` at the end.
    pub async fn next(&mut self, db: &Db, sale_id: &SaleId) -> Result<Option<Page<'_>>, DbError> {
        self.after = self.to.clone();
        match archive::page_end(db, sale_id, self.table, self.section, &self.after).await? {
            Some(to) => self.to = to,
            None => return Ok(None),
        }
        Ok(Some(Page { table: self.table, section: self.section, after: &self.after, to: &self.to }))
    }
}
