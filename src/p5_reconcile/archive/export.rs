//! The export: one file a table, in pages that move, then the manifest. See [`super`] for what a crash leaves.

use super::error::ArchiveError;
use super::manifest::{self, ExportedFile, FORMAT, Manifest, SeriesSum};
use super::pages::TablePages;
use super::sale_archive::Archive;
use crate::p5_reconcile::archive::rows::{ArchiveSum, ArchiveTable, TABLES};
use crate::p5_reconcile::rows::books::{KnownSeries, Series, SeriesQuery};
use crate::runtime::now_ms;
use crate::sales::rows::archived::SaleSums;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufWriter, Write};

impl Archive {
    /// Exports the sale and compares the files with the database. A finished export is only compared again. Returns the manifest
    /// and its SHA-256. Repeating is safe, and goes on where it stopped.
    pub async fn export(&self) -> Result<(Manifest, String), ArchiveError> {
        let (sale, kept) = self.found().await?;
        let sale = match (sale, kept) {
            (Some(sale), None) => sale,
            (Some(_), Some(kept)) => return Err(ArchiveError::HalfGone(self.sale_id.clone(), kept.manifest)),
            (None, Some(kept)) => return Err(ArchiveError::Gone(self.sale_id.clone(), kept.manifest)),
            (None, None) => return Err(ArchiveError::NoSuchSale(self.sale_id.clone())),
        };
        self.check_final(&sale).await?;
        if Manifest::read(&self.folder)?.is_some() {
            return self.verified().await;
        }
        std::fs::create_dir_all(&self.folder).map_err(|error| ArchiveError::File(self.folder.clone(), error))?;
        let known = self.context.rows.books.known(&self.sale_id).await?;
        let series: Vec<Series> = known.iter().map(|known| known.series).collect();
        let mut files = Vec::with_capacity(TABLES.len());
        for table in &TABLES {
            (self.on_progress)(&format!("exporting {}", table.name));
            let filed = match manifest::read(&self.folder, table)? {
                Some(filed) => filed,
                None => self.write(table, &series).await?,
            };
            self.compare(table, &filed, &series).await?;
            files.push(filed);
        }
        let of = |name: &str| {
            files.iter().find(|filed| filed.table == name).map_or(ArchiveSum::default(), |filed| filed.sum)
        };
        let sums = SaleSums {
            sale_id: sale.sale_id,
            title: sale.title,
            granted: sale.granted,
            stock: sale.stock,
            ordered: of("orders").units,
            orders_count: of("orders").rows,
            outcomes_count: of("request_outcome").rows,
        };
        let manifest = Manifest {
            format: FORMAT,
            sums,
            series: self.series_sums(&known).await?,
            files,
            program: format!("seckill {}", env!("CARGO_PKG_VERSION")),
            exported_at_ms: now_ms(),
        };
        let hash = manifest.write(&self.folder)?;
        Ok((manifest, hash))
    }

    /// Compares a finished export with the database.
    pub(super) async fn verified(&self) -> Result<(Manifest, String), ArchiveError> {
        let (manifest, hash) = self.intact()?;
        let series = self.series().await?;
        for table in &TABLES {
            (self.on_progress)(&format!("comparing {}", table.name));
            let filed = manifest.files.iter().find(|filed| filed.table == table.name);
            let filed = filed.ok_or_else(|| ArchiveError::Damaged(self.folder.join(manifest::NAME)))?;
            self.compare(table, filed, &series).await?;
        }
        Ok((manifest, hash))
    }

    /// Compares the files with the manifest, and not with the database.
    pub(super) fn intact(&self) -> Result<(Manifest, String), ArchiveError> {
        let (manifest, hash) =
            Manifest::read(&self.folder)?.ok_or_else(|| ArchiveError::NoExport(self.folder.clone()))?;
        if manifest.sums.sale_id != self.sale_id {
            return Err(ArchiveError::Damaged(self.folder.join(manifest::NAME)));
        }
        for table in &TABLES {
            (self.on_progress)(&format!("reading {}", table.file()));
            let filed = manifest::read(&self.folder, table)?;
            if filed.as_ref() != manifest.files.iter().find(|filed| filed.table == table.name) || filed.is_none() {
                return Err(ArchiveError::Damaged(self.folder.join(table.file())));
            }
        }
        Ok((manifest, hash))
    }

    async fn compare(
        &self,
        table: &'static ArchiveTable,
        filed: &ExportedFile,
        series: &[Series],
    ) -> Result<(), ArchiveError> {
        let counted = self.counted(table, series).await?;
        if counted == filed.sum {
            return Ok(());
        }
        let (sale_id, file) = (self.sale_id.clone(), self.folder.join(&filed.file));
        Err(ArchiveError::Differs { sale_id, table: table.name, file, filed: filed.sum, counted })
    }

    async fn write(&self, table: &ArchiveTable, series: &[Series]) -> Result<ExportedFile, ArchiveError> {
        let name = table.file();
        let path = self.folder.join(format!("{name}.part"));
        let failed = |error: std::io::Error| ArchiveError::File(path.clone(), error);
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).map_err(failed)?);
        let (mut hash, mut sum) = (Sha256::new(), ArchiveSum::default());
        for section in table.sections(series) {
            let mut pages = TablePages::new(table, &section);
            while let Some(page) = pages.next(&self.context.rows.archive, &self.sale_id).await? {
                let (lines, of_page) = self.context.rows.archive.lines(&self.sale_id, page).await?;
                for line in lines {
                    let line = line + "\n";
                    hash.update(line.as_bytes());
                    file.write_all(line.as_bytes()).map_err(failed)?;
                }
                sum += of_page;
                (self.on_progress)(&format!("exporting {}, {} rows", table.name, sum.rows));
            }
        }
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        manifest::finish(&file, &self.folder, &name).map_err(failed)?;
        Ok(ExportedFile { table: table.name.to_owned(), file: name, sum, sha256: manifest::hex(&hash.finalize()) })
    }

    /// Outcomes by epoch and shard.
    async fn series_sums(&self, known: &[KnownSeries]) -> Result<Vec<SeriesSum>, ArchiveError> {
        let mut sums = Vec::with_capacity(known.len());
        for known in known {
            let wanted =
                SeriesQuery { series: known.series, after: 0, to: known.number, holes: Vec::new(), above: false };
            let read = self.context.rows.books.count(&self.sale_id, &wanted).await?;
            sums.push(SeriesSum {
                epoch: known.series.epoch,
                shard: known.series.shard,
                number: known.number,
                outcomes: read.pieces.iter().map(|piece| piece.tally.count).sum(),
            });
        }
        Ok(sums)
    }
}
