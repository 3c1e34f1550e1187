//! The walk over the rows of a sale in one table: a few sections; each has a key that grows, so that a page begins where the last one
//! ended, however many rows are there.

use super::table::{ArchiveTable, Sections};
use crate::p5_reconcile::rows::books::Series;

/// A part of a walk.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) filter: String,
    pub(crate) key: String,
    /// The columns of the index in front of the key.
    pub(crate) order: String,
}

impl ArchiveTable {
    /// The parts of the walk over a sale that has these series.
    #[must_use]
    pub(crate) fn sections(&self, series: &[Series]) -> Vec<Section> {
        let (of, key) = (self.of, self.key.to_owned());
        match self.sections {
            Sections::Whole => vec![Section { filter: "TRUE".to_owned(), key, order: "t.sale_id".to_owned() }],
            Sections::ByStatus => ["open", "failed_final", "resolved"]
                .iter()
                .map(|status| {
                    let filter = format!("t.status >= '{status}' AND t.status <= '{status}'");
                    Section { filter, key: key.clone(), order: "t.sale_id, t.status".to_owned() }
                })
                .collect(),
            Sections::BySeries => series
                .iter()
                .flat_map(|Series { epoch, shard }| {
                    let filter = format!(
                        "{of}.shard >= {shard} AND {of}.shard <= {shard} AND {of}.epoch >= {epoch} AND {of}.epoch <= {epoch}"
                    );
                    let order = format!("{of}.sale_id, {of}.shard, {of}.epoch");
                    let unnumbered = Section {
                        filter: format!("{filter} AND {of}.number IS NULL"),
                        key: format!("{of}.request_id"),
                        order: format!("{order}, {of}.number"),
                    };
                    [Section { filter, key: key.clone(), order }, unnumbered]
                })
                .collect(),
        }
    }
}
