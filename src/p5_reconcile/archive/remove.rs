//! The removal of a sale that was exported: the export is compared with the database once more, `archived_sales` gets its row, and
//! the rows go page by page: a row before the row it refers to, the sale's own row last. Payments stay. See [`super`] for what a crash
//! leaves.

use super::error::ArchiveError;
use super::manifest::Manifest;
use super::pages::TablePages;
use super::sale_archive::Archive;
use crate::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use crate::p5_reconcile::archive::rows::TABLES;
use crate::sales::rows::archived::Archived;
use serde_json::json;

/// What a removal came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// All of it is gone, but for its payments.
    All,
    /// It stopped after `pages_max` pages; a repeat goes on.
    Stopped,
}

impl Archive {
    /// Removes the sale, or goes on with it; at most `pages_max` pages of a few thousand rows (a test stops in between).
    /// Nothing is removed when the export is not what the database has. Repeating is safe.
    pub async fn remove(&self, actor: &Actor, pages_max: usize) -> Result<Removed, ArchiveError> {
        let (sale, kept) = self.found().await?;
        let of_drop = sale.as_ref().and_then(|sale| sale.in_drop.clone());
        let (manifest, hash) = match (sale, kept) {
            (Some(_), Some(kept)) => {
                let (manifest, hash) = self.intact()?;
                if hash != kept.manifest {
                    return Err(ArchiveError::HalfGone(self.sale_id.clone(), kept.manifest));
                }
                (manifest, hash)
            }
            (Some(sale), None) => {
                self.check_final(&sale).await?;
                let (manifest, hash) = self.verified().await?;
                self.context.rows.archive.may_remove().await?;
                let kept = kept_of(&manifest, &hash, actor);
                if !self.context.rows.archived.begin(&sale, &kept).await? {
                    return Err(ArchiveError::Changed(self.sale_id.clone()));
                }
                (manifest, hash)
            }
            (None, Some(kept)) => return Err(ArchiveError::Gone(self.sale_id.clone(), kept.manifest)),
            (None, None) => return Err(ArchiveError::NoSuchSale(self.sale_id.clone())),
        };
        self.note(actor, &manifest, &hash).await?;
        if let Some(drop) = of_drop {
            while self.context.rows.archive.remove_of_drop(&drop).await? > 0 {}
        }
        self.remove_rows(pages_max).await
    }

    /// Before the first row goes: the sums outlive the rows twice.
    async fn note(&self, actor: &Actor, manifest: &Manifest, hash: &str) -> Result<(), ArchiveError> {
        let sums = &manifest.sums;
        let mut act = OperatorAct::new(actor, Operation::SaleArchive, ActTarget::Sale(self.sale_id.clone()));
        act.after = Some(json!({
            "granted": sums.granted, "stock": sums.stock, "ordered": sums.ordered,
            "orders": sums.orders_count, "outcomes": sums.outcomes_count, "manifest_sha256": hash,
            "folder": self.folder.display().to_string(),
        }));
        Ok(self.context.rows.acts.record(&[act]).await?)
    }

    async fn remove_rows(&self, pages_max: usize) -> Result<Removed, ArchiveError> {
        // Orders are read along the outcomes, so the outcomes and their ends go after them.
        let series = self.series().await?;
        let (mut removed_pages, mut rows) = (0, 0);
        for table in &TABLES {
            if table.stays {
                continue;
            }
            for section in table.sections(&series) {
                let mut pages = TablePages::new(table, &section);
                while let Some(page) = pages.next(&self.context.rows.archive, &self.sale_id).await? {
                    if removed_pages == pages_max {
                        return Ok(Removed::Stopped);
                    }
                    rows += self.context.rows.archive.remove(&self.sale_id, page).await?;
                    removed_pages += 1;
                    (self.on_progress)(&format!("removing {}, {rows} rows are gone", table.name));
                }
            }
        }
        Ok(Removed::All)
    }
}

fn kept_of(manifest: &Manifest, hash: &str, actor: &Actor) -> Archived {
    Archived { sums: manifest.sums.clone(), manifest: hash.to_owned(), archived_by: actor.label(), archived_at_ms: 0 }
}
